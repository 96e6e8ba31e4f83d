"""Layers of a public encoder in an acoustic model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from privasr_k2.am.checkpoints import continue_model, load_model, save_model
from privasr_k2.am.ctc import CtcModel, CtcTask
from privasr_k2.am.kinds import new_model
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig, masked
from privasr_k2.data.batches import pad_batch
from privasr_k2.encoders.common import Origin
from privasr_k2.encoders.upper import upper_of, upper_spec
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.training.trainable import LoraConfig, choose_trained
from tests.support.small_am import CHUNKS, features, tiny_model
from tests.support.tiny_encoders import speechlike, tiny_whisper

TOKENS = ["<blk>", "a", "b", "c"]
LORA = LoraConfig(rank=2, scale=1.0, layers=["query", "value"])


@pytest.fixture
def whisper():
    encoder = tiny_whisper()
    encoder.family, encoder.origin = "whisper", Origin("tiny", "0" * 64, "MIT", "a test", {})
    return encoder


def head_of(kind: str) -> CtcModel:
    """A model of Whisper's outputs that subtracts a mean, as after training."""
    spec = replace(tiny_model(kind, subsampling=1).spec, feature_dim=64, utterance_mean=False)
    head = new_model(spec, seed=2)
    head.mean.add_(0.5)
    head.deviation.mul_(2.0)
    return head


def joined(folder: Path, whisper, first: int, kind: str = "tdnn") -> tuple[CtcModel, CtcModel]:
    head = head_of(kind)
    save_model(folder, head.spec, head.state_dict(), TOKENS)
    upper = upper_spec(whisper, first, CHUNKS), upper_of(whisper, first)
    return head.eval(), continue_model(folder, head.spec, TOKENS, upper).eval()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", ["tdnn", "blstm", "conformer"])
def test_it_begins_as_the_head_on_the_frozen_encoder(tmp_path, whisper, kind, first) -> None:
    head, model = joined(tmp_path / "head", whisper, first, kind)
    with torch.no_grad():
        inputs = whisper.features(*speechlike(20000, 14321))
        outputs, lengths = whisper(*inputs)
        below, _ = whisper(*inputs, layers=[first])
        expected, frames = head.log_probs(outputs, lengths)
        found, _ = model.log_probs(below[0], lengths)
        for row, of_row, length in zip(found, expected, frames):
            torch.testing.assert_close(row[:length], of_row[:length], atol=1e-4, rtol=0)
        save_model(tmp_path / "model", model.spec, model.state_dict(), TOKENS)
        again = load_model(tmp_path / "model")
        assert torch.equal(again.log_probs(below[0], lengths)[0], found)
    assert again.spec.public == model.spec.public and again.spec.public.first == first
    further = continue_model(tmp_path / "model", head.spec, TOKENS)
    assert torch.equal(further.public.norm.weight, whisper.norm.weight)
    with pytest.raises(DataError):  # it has them already
        upper = upper_spec(whisper, first, CHUNKS), upper_of(whisper, first)
        continue_model(tmp_path / "model", head.spec, TOKENS, upper)


@pytest.mark.parametrize(
    ("trained", "is_own"),
    [
        (["head"], lambda name: not name.startswith("public.")),
        (["last_block"], lambda name: not name.startswith("public.blocks.0.")),
        (["bias"], lambda name: name.endswith("bias")),
        (["lora"], lambda name: ".lora." in name),
        (["lora", "head"], lambda name: ".lora." in name or not name.startswith("public.")),
        (["all"], lambda name: True),
    ],
)
def test_parts(tmp_path, whisper, trained, is_own) -> None:
    _, model = joined(tmp_path / "head", whisper, 0)
    names = choose_trained(model, trained, LORA)
    assert names and set(names) == {n for n, _ in model.named_parameters() if is_own(n)}
    if "lora" in trained:
        matrices = [name for name in names if ".lora." in name]
        assert len(matrices) == 2 * 2 * 2  # of two layers in two blocks
    if trained != ["head"]:
        assert any(name.startswith("public.") for name in names)


def test_a_step_changes_what_is_trained_alone(tmp_path, whisper) -> None:
    _, model = joined(tmp_path / "head", whisper, 0)
    names = set(choose_trained(model, ["lora"], LORA))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    own = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=0.1, weight_decay=0.1)
    with torch.no_grad():
        below, lengths = whisper(*whisper.features(*speechlike(20000, 14321)), layers=[0])
    for _ in range(2):  # at first B is zero, and A has no gradient
        optimizer.zero_grad()
        model(below[0], lengths)[0][..., 0].sum().backward()
        optimizer.step()
    changed = {n for n, value in model.state_dict().items() if not torch.equal(value, before[n])}
    assert changed == names


def test_masks_are_behind_the_public_layers(tmp_path, whisper) -> None:
    head, model = joined(tmp_path / "head", whisper, 1)
    masks = SpecAugment(SpecAugmentConfig(5.0, 5, 0.5, 2, 20), frame_shift=0.02)
    with torch.no_grad():
        inputs = whisper.features(*speechlike(20000, 14321))
        outputs, lengths = whisper(*inputs)
        below, _ = whisper(*inputs, layers=[1])
        rows = [row[:length] for row, length in zip(below[0], lengths)]
        batch = pad_batch(["a", "b"], rows, [[1, 2], [3]])
        found = CtcTask(masks).loss(model, batch, torch.Generator().manual_seed(1)).sums
        drawn = masks(outputs, lengths, torch.Generator().manual_seed(1))
        scores = head(masked(outputs, lengths, drawn), lengths)
        plain = CtcTask().loss(model, batch, torch.Generator()).sums
    expected = ctc_loss(*scores, batch.targets, batch.target_lengths)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)
    assert float((found - plain).abs().min()) > 0.01


def test_a_model_without_them_has_no_head() -> None:
    with pytest.raises(ConfigError):
        choose_trained(tiny_model("tdnn"), ["head"])


def test_a_mixture_of_layers_reads_them_side_by_side() -> None:
    spec = replace(tiny_model("tdnn", subsampling=1).spec, feature_dim=10, mixed_layers=2)
    model = new_model(spec, seed=1).eval()
    x, lengths = features(20, 14, dim=10)
    plain = tiny_model("tdnn", subsampling=1).eval()
    own = {name: value for name, value in model.state_dict().items() if name in plain.state_dict()}
    plain.load_state_dict({**own, "mean": torch.zeros(5), "deviation": torch.ones(5)})
    mean = x.view(2, 20, 2, 5).mean(2)
    torch.testing.assert_close(model(x, lengths)[0], plain(mean, lengths)[0])
    assert model.mixture.weights.shape == (2,)
    with pytest.raises(ConfigError):
        new_model(replace(spec, mixed_layers=3), seed=1)
