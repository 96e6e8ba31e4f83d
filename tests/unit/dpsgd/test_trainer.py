"""A step of DP-SGD: what one unit can change in it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from privasr_k2.dpsgd import trainer as module
from privasr_k2.dpsgd.trainer import PrivateData, halves
from privasr_k2.dpsgd.units import Part, Unit
from privasr_k2.errors import ConfigError, PrivasrError
from privasr_k2.privacy.streams import Drawn
from tests.support.private_speech import config, made_data, made_model, trainer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PrivateData:
    return made_data(tmp_path_factory.mktemp("data"))[0]


def summed(
    data: PrivateData, units: list[Unit], *changes: str, step: int = 3, kind: str = "ctc"
) -> torch.Tensor:
    """The sum of clipped gradients."""
    made = trainer(data, *changes, kind=kind)
    return made.step(step, units, None).gradient.double() * made.optimizer.expected_batch_size


@pytest.mark.parametrize("kind", ["ctc", "las"])
@pytest.mark.parametrize("unit", ["speaker", "utterance"])
@pytest.mark.parametrize("clip_by", ["whole", "layer"])
def test_a_unit_moves_the_sum_by_the_clip_at_most(
    clip_by: str, unit: str, kind: str, tmp_path: Path
) -> None:
    data = made_data(tmp_path, unit)[0]
    augmented = ["time_stretch=0.3", "spec_augment.time_masks_per_second=5"]
    augmented += ["clip=0.01", f"unit={unit}"]
    augmented += [f"clip_by={clip_by}"]
    units = list(data.units)
    for left_out in (0, 2):
        whole = summed(data, units, *augmented, kind=kind)
        others = [one for one in units if one is not units[left_out]]
        moved = float((whole - summed(data, others, *augmented, kind=kind)).norm())
        if clip_by == "whole":  # every gradient here is longer than the clip
            assert moved == pytest.approx(0.01, rel=1e-3)
        assert 0.005 < moved < 0.01 * (1 + 1e-6)


def test_units_alone_and_in_parts_of_any_size_give_the_same(data: PrivateData) -> None:
    units = list(data.units)
    limits = ("max_duration=0.01", "max_duration=2", "gradients_mb=0.001")
    for clip in ("0.02", "0.02 clip_by=layer", "1000"):
        shared = (*f"clip={clip}".split(), "within=sum", "isolate_units=false")
        whole = summed(data, units, *shared)
        for setting in ("isolate_units=true", *limits):
            found = summed(data, units, *shared, setting)
            torch.testing.assert_close(found, whole, rtol=1e-4, atol=1e-6 * float(whole.norm()))


def test_by_default_units_are_computed_alone(data: PrivateData) -> None:
    assert trainer(data)._rows() == 0


def test_a_units_gradient_is_the_mean_of_its_utterances(data: PrivateData) -> None:
    unit = data.units[1]
    names = [name for copies in unit.copies for name in copies]
    assert len(names) == 3
    apart = [summed(data, [Unit("x", ((name,),))], "clip=1000") for name in names]
    whole, expected = summed(data, [unit], "clip=1000"), torch.stack(apart).mean(0)
    torch.testing.assert_close(whole, expected, rtol=1e-3, atol=1e-5)
    few = summed(data, [unit], "clip=1000", "most_utterances=1")
    assert min(float((few - one).norm()) for one in apart) < 1e-5 * float(few.norm())


def test_copies_count_as_one(data: PrivateData) -> None:
    [(first,), (second,), *_] = data.units[0].copies
    copies = [Unit("x", ((first, second),))]
    both = summed(data, copies, "within=sum", "clip=1000")
    apart = [summed(data, [Unit("x", ((name,),))], "clip=1000") for name in (first, second)]
    torch.testing.assert_close(both, torch.stack(apart).mean(0), rtol=1e-3, atol=1e-5)
    # Inside the clip: two copies of one utterance are no more than that.
    assert float(summed(data, copies, "within=sum", "clip=0.01").norm()) <= 0.01


def test_masks_are_of_the_utterance_and_the_step_alone(data: PrivateData) -> None:
    masks = ["spec_augment.time_masks_per_second=20", "spec_augment.max_time_share=0.9"]
    masks += ["clip=1000"]
    one, other = [data.units[0]], [data.units[2]]
    apart = summed(data, one, *masks) + summed(data, other, *masks)
    torch.testing.assert_close(summed(data, one + other, *masks), apart, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(summed(data, one, *masks), summed(data, one, *masks, step=4))


def test_nobody_and_units_without_utterances(data: PrivateData) -> None:
    made = trainer(data)
    before = copy.deepcopy(made.model.state_dict())
    assert made.step(0, [], None).units == 0
    assert all(torch.equal(value, before[name]) for name, value in made.model.state_dict().items())
    assert not summed(data, [Unit("silent", ())]).any()


def test_chosen_parameters_alone_are_trained(data: PrivateData) -> None:
    made = trainer(data, "trained=[output]")
    before = {name: value.clone() for name, value in made.model.named_parameters()}
    step = made.step(0, list(data.units), None)
    now = dict(made.model.named_parameters())
    moved = {name for name, value in before.items() if not torch.equal(value, now[name])}
    assert moved == {"output.weight", "output.bias"} and len(step.gradient) == 4 * 8 + 4
    with pytest.raises(ConfigError, match="encoder output"):
        trainer(data, "trained=[out]")


def test_a_given_gradient_is_clipped_too(data: PrivateData) -> None:
    size = sum(one.numel() for one in made_model().parameters())
    canary = torch.zeros(size)
    canary[5] = 7.0
    replaced = PrivateData(data.units, data.speech, {data.units[0].name: canary})
    found = summed(replaced, [data.units[0]], "clip=0.5")
    assert found.nonzero().flatten().tolist() == [5] and float(found[5]) == pytest.approx(0.5)


@pytest.mark.parametrize("trained", ["all", "lora,bias"])
def test_layers_are_modules_with_their_own_parameters(data: PrivateData, trained: str) -> None:
    changes = (f"trained=[{trained}]", "lora.layers=[output]", "lora.rank=2", "clip_by=layer")
    made = trainer(data, *changes)
    names, found = [*made.trained], []
    for sizes in made.optimizer.layers:
        own, names = names[: len(sizes)], names[len(sizes) :]
        assert sizes == [made.trained[name].numel() for name in own]
        found.append(own)
    assert not names
    if trained == "all":
        modules = [m for m in made.model.modules() if [*m.parameters(recurse=False)]]
        assert [*map(len, found)] == [len([*m.parameters(recurse=False)]) for m in modules]
        assert ["output.weight", "output.bias"] in found
    else:
        assert found[-2:] == [
            ["output.bias"], ["output.lora.down.weight", "output.lora.up.weight"],
        ]  # fmt: skip


def test_batches_come_from_the_secret(data: PrivateData) -> None:
    class Watched(Drawn):
        def stream(self, *names):  # type: ignore[no-untyped-def]
            asked.append(names)
            return super().stream(*names)

    asked: list[tuple[object, ...]] = []
    made = trainer(data, "rate=0.5")
    drawn = [one.units for one in made.steps(Watched("batches", 1), 2)]
    again = [one.units for one in trainer(data, "rate=0.5").steps(Drawn("batches", 1), 2)]
    assert asked == [("cohort", number) for number in range(2, 6)] and drawn == again


def test_out_of_memory_halves_parts(data: PrivateData, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = summed(data, list(data.units), "clip=0.02")
    real = module.Trainer._gradients

    def tight(self: module.Trainer, part: Part, number: int) -> None:
        real(self, part, number)
        if len(part.names) > limit:
            raise MemoryError("out of memory")

    limit = 2
    monkeypatch.setattr(module.Trainer, "_gradients", tight)
    found = summed(data, list(data.units), "clip=0.02")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    limit = 0
    with pytest.raises(PrivasrError, match="memory for one utterance"):
        summed(data, list(data.units))


@pytest.mark.parametrize(
    "owners", [(0, 0, 0, 1), (0, 1, 1, 1), (0, 0, 1, 1), (0, 1), (0, 0, 0), (0, 0, 1, 2, 2)]
)
def test_halves_keep_units_together(owners: tuple[int, ...]) -> None:
    whole = Part(tuple("abcde"[: len(owners)]), (1.0,) * len(owners), owners, True)
    first, second = halves(whole)
    assert first.names + second.names == whole.names and first.names and second.names
    assert first.owners[0] == second.owners[0] == 0
    shared = owners[len(first.names) - 1] == owners[len(first.names)]
    assert shared == (len(set(owners)) == 1) and first.ends == (not shared) and second.ends


def test_a_gradient_that_is_not_finite_is_left_out(
    data: PrivateData, caplog: pytest.LogCaptureFixture
) -> None:
    name = data.units[0].copies[0][0]
    long = copy.copy(data.speech)
    # CTC cannot spread it over its frames.
    long.targets = {**data.speech.targets, name: (1, 1) * 40}
    broken = PrivateData(data.units, long)
    made = trainer(broken)
    step = made.step(0, list(data.units), None)
    assert step.left_out == 1 and step.units == 3 and bool(step.gradient.isfinite().all())
    assert "left out" in caplog.text


def test_claims_need_a_noise_stream(data: PrivateData) -> None:
    made = module.Trainer(made_model(), data, config("noise=1.0"), noise=1.0)
    with pytest.raises(ValueError, match="stream"):
        made.step(0, [], None)
