"""Clients that train parts of a model: only these are sent, bounded, hidden and changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.errors import ConfigError
from privasr_k2.federated import fedlm
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.round_files import RoundFiles
from privasr_k2.federated.settings import FedLmConfig, spending
from privasr_k2.federated.train import load_initial, train_fedlm
from privasr_k2.federated.weighting import prepare
from privasr_k2.fileio import read_json
from privasr_k2.lm.neural.files import load_lm, save_lm
from privasr_k2.lm.neural.kinds import new_lm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.privacy.noise import standard_normal_vector
from privasr_k2.privacy.streams import Drawn
from privasr_k2.training.distributed import Process
from privasr_k2.training.trainable import merged_adapters
from privasr_k2.training.weights import load_tensors
from tests.support.fed_small import (
    PRIVATE,
    SPEC,
    VOCABULARY,
    made_clients,
    norm,
    saved_model,
    settings,
    trainer,
)

ALONE = Process(0, 1, torch.device("cpu"))
EVERYONE = (*PRIVATE, "sampling=everyone")
LORA = ("trained=[lora]", "lora.rank=2")
#: Settings, and the names of weights that they change.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[str], bool]]] = {
    "all": ((), lambda name: True),
    "output": (("trained=[output]",), lambda name: name.startswith("output.")),
    "bias": (("trained=[bias]",), lambda name: "bias" in name),
    "last_block": (("trained=[last_block]",), lambda name: name != "embedding.weight"),
    "a beginning": (("trained=[recurrent]",), lambda name: name.startswith("recurrent.")),
    "lora": (LORA, lambda name: name == "output.linear.weight"),
}
EVERY = pytest.mark.parametrize("part", PARTS)


def trained(folder: Path, init: Path, *more: str) -> dict[str, torch.Tensor]:
    """The weights of a model that clients have trained."""
    train_fedlm(made_clients(12), [], init, folder, settings(*more), ALONE, None)
    return load_tensors(folder / "model.safetensors")


def federation(config: FedLmConfig, **more) -> Federation:
    return Federation(
        prepare(made_clients(12), VOCABULARY, config.confidences), trainer(config), **more
    )


@EVERY
@pytest.mark.parametrize("claim", [(), EVERYONE])
def test_what_is_not_trained_keeps_its_bits(
    part: str, claim: tuple[str, ...], tmp_path: Path
) -> None:
    """Also where there is noise. All else is changed."""
    chosen, changes = PARTS[part]
    init = saved_model(tmp_path / "init")
    after = trained(tmp_path / "out", init, *claim, *chosen, "server.lr=0.1")
    before = load_tensors(init / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert changed == {name for name in before if changes(name)}
    about = read_json(tmp_path / "out" / "federated.json")
    sent = len(trainer(settings(*chosen)).vector)
    assert (about["trained_parameters"], about["update_bytes"]) == (sent, 4 * sent)
    everything = sum(value.numel() for value in before.values())
    assert sent == everything if part == "all" else sent < everything
    load_lm(tmp_path / "out")


@EVERY
def test_the_noise_is_of_the_parts_size(part: str) -> None:
    """Nobody sends anything: what is released is the noise, a number for each trained value."""
    config = settings(*EVERYONE, *PARTS[part][0], "privacy.noise=40.0", "rounds=1")
    made, secrets = federation(config, fail=lambda number, name: "no power"), Drawn("cohorts", 2)
    [done] = rounds(made, config, ALONE, secrets, None)
    assert done.delta is not None
    size, scale = len(made.trainer.vector), 40.0 * 0.5 / 12
    drawn = standard_normal_vector(secrets.noise(0, "sum", 0), size)
    np.testing.assert_allclose(done.delta.numpy() / scale, drawn, atol=0.01)
    assert norm(done.delta) == pytest.approx(scale * size**0.5, rel=0.2)


@EVERY
def test_one_client_moves_the_sum_by_at_most_the_clip(part: str) -> None:
    """With and without each client; the clip is below what some of them send."""
    config = settings(*EVERYONE, *PARTS[part][0], "privacy.clip=0.02")
    made = federation(config)

    def summed(*chosen: int) -> np.ndarray:
        total, _ = fedlm._sum(made, config, ALONE, np.array(chosen), 0, 0.02)
        return total.values().numpy()

    whole = summed(*range(12))
    moved = [norm(whole - summed(*(n for n in range(12) if n != left))) for left in range(12)]
    assert max(moved) <= 0.02 and max(moved) > 0.02 * 0.999


@pytest.mark.parametrize("claim", [(), EVERYONE])
def test_adapters_are_the_same_ones_in_all_rounds(claim: tuple[str, ...], tmp_path: Path) -> None:
    """Stopped after two rounds and continued by a new trainer, which draws adapters of its own."""
    config = settings(*claim, *LORA, "rounds=4", "save_every=2", "server.lr=0.05")
    secrets = Drawn("cohorts", 5)
    whole = [*rounds(federation(config), config, ALONE, secrets, None)]
    files = RoundFiles(tmp_path / "checkpoints", "one", writes=True)
    steps = rounds(federation(config), config, ALONE, secrets, files)
    first = [next(steps), next(steps)]
    steps.close()
    rest = [*rounds(federation(config), config, ALONE, secrets, files)]
    assert len(rest) == 2
    begun = trainer(config).vector
    for one, other in zip(whole, [*first, *rest]):
        assert torch.equal(one.stand.server.weights, other.stand.server.weights)
        size = 2 * SPEC.network.dim  # of the random half, which is first
        assert not torch.equal(one.stand.server.weights[:size], begun[:size])


def test_what_is_written_is_the_last_stand_without_adapters(tmp_path: Path) -> None:
    init, config = saved_model(tmp_path / "init"), settings(*LORA, "server.lr=0.05")
    after = trained(tmp_path / "out", init, *LORA, "server.lr=0.05")
    stand = load_tensors(tmp_path / "out/checkpoints/latest.safetensors")["weights"]
    made = trainer(config)
    made.load(stand)
    merged = merged_adapters(made.model.state_dict())
    assert merged.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in merged.items())
    text = [["w1", "w2", "w5"], ["w3"]]
    found = NeuralScorer(*load_lm(tmp_path / "out")).token_log_probs(text)
    apart = NeuralScorer(made.model, VOCABULARY).token_log_probs(text)
    np.testing.assert_allclose(found, apart, atol=1e-5)
    assert not np.allclose(found, NeuralScorer(*load_lm(init)).token_log_probs(text), atol=1e-3)


@pytest.mark.parametrize("other", ["trained=[bias]", "lora.rank=3"])
def test_another_part_trains_anew(
    other: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    init = saved_model(tmp_path / "init")
    trained(tmp_path / "out", init, *LORA)
    again = trained(tmp_path / "out", init, *LORA, other)
    fresh = trained(tmp_path / "fresh", init, *LORA, other)
    assert caplog.text.count("training anew") == 1
    assert all(torch.equal(value, again[name]) for name, value in fresh.items())


@pytest.mark.parametrize("part", ["output", "last_block", "lora"])
@pytest.mark.parametrize("layers", ["[output.linear]", "[linear]"])
def test_a_tied_model(part: str, layers: str, tmp_path: Path) -> None:
    """It reads a copy of its vectors where its softmax is trained or has adapters."""
    chosen, spec = PARTS[part][0], replace(SPEC, output=replace(SPEC.output, tied=True))
    chosen = (*chosen, f"lora.layers={layers}")
    init = tmp_path / "init"
    save_lm(init, spec, new_lm(spec, VOCABULARY, seed=1).state_dict(), VOCABULARY)
    begun, _, _ = load_initial(init, settings(*chosen))
    scorers = NeuralScorer(begun.eval(), VOCABULARY), NeuralScorer(*load_lm(init))
    np.testing.assert_allclose(*(one.token_log_probs([["w1", "w2"]]) for one in scorers), atol=1e-6)
    before = load_tensors(init / "model.safetensors")
    after = trained(tmp_path / "out", init, *chosen, "server.lr=0.1")
    vectors, read = "output.linear.weight", "vectors.linear.weight"
    assert not torch.equal(after[vectors], before[vectors])
    # An adapter of any linear layer moves what is read alike: there is no copy.
    stays = part == "lora" and layers == "[linear]"
    assert set(after) - set(before) == (set() if stays else {read})
    assert torch.equal(after.get(read, before[vectors]), before[vectors])
    same = {name for name in before if torch.equal(before[name], after[name])}
    recurrent = {name for name in before if name.startswith("recurrent.")}
    project = {"project.weight", "project.bias"}
    bias = {"output.linear.bias"}
    assert same == {
        "output": recurrent | project,
        "last_block": set(),
        "lora": recurrent | project | bias,
    }[part]  # fmt: skip


def test_the_ledger_names_the_part() -> None:
    chosen = {"output": "[output]", "output and bias": "[output,bias]", "": "[all]"}
    entered = {
        name: spending(settings(*PRIVATE, f"trained={value}"), 12, "speaker")
        for name, value in chosen.items()
    }
    whole = spending(settings(*PRIVATE), 12, "speaker")
    assert all(one.released.endswith(name) for name, one in entered.items())
    assert len({one.released for one in entered.values()}) == 3 and entered[""] == whole
    assert all(one.event == whole.event for one in entered.values())


@pytest.mark.parametrize(
    "wrong", [("trained=[softmax]",), ("trained=[lora]", "lora.layers=[lstm]")]
)
def test_parts_that_there_are_not(wrong: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_initial(saved_model(tmp_path / "init"), settings(*wrong))
