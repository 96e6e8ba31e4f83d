"""Training the softmax alone: all else stays bit for bit, also of a tied model."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_text
from privasr_k2.lm.neural.files import WEIGHTS, continue_lm, load_lm, save_lm
from privasr_k2.lm.neural.kinds import spec_of
from privasr_k2.lm.neural.train import LmTask, train_lm
from privasr_k2.training.weights import load_tensors, read_header
from tests.support.lm_training import ALONE, Stop
from tests.support.small_lm import MODELS, WORDS, grammar_sentences, random_words, settings, tiny

EVERY = pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
TIED = pytest.mark.parametrize(("kind", "softmax"), [(k, s) for k, s, tied in MODELS if tied])
# The tiny vocabulary, so that every cluster has words to learn.
TEXT = [list(WORDS[n % 7 : n % 7 + 4 * (n % 5) : n % 3 + 1]) or ["word1"] for n in range(40)]
DEV = TEXT[:20]
QUICK = ("lr=0.02", "max_words=60", "network.dropout=0.2", "weight_decay=0.5", "average_over=last")


def begun(kind: str, softmax: str, tied: bool, folder: Path) -> Path:
    """A model's folder, as training leaves it."""
    model, vocabulary = tiny(kind, softmax, tied)
    save_lm(folder, spec_of(settings(kind, softmax, tied)), model.state_dict(), vocabulary)
    return folder


def tune(kind: str, softmax: str, folder: Path, init: Path, *more: str) -> dict[str, torch.Tensor]:
    """Train the softmax alone further, and give the weights that come out."""
    config = settings(kind, softmax, False, *QUICK, "trained=output", "epochs=2", "avg=2", *more)
    train_lm(TEXT, DEV, WORDS, folder, config, ALONE, init=init)
    return load_tensors(folder / WEIGHTS)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit."""
    return one.dtype == other.dtype and one.numpy().tobytes() == other.numpy().tobytes()


def check_frozen(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> None:
    """All but the outputs as it was; all outputs changed."""
    outputs = {name for name in after if name.startswith("output.")}
    copies = {name for name in after if name.startswith("vectors.")}
    assert outputs and set(after) - copies == set(before)
    assert [name for name in before.keys() - outputs if not same(before[name], after[name])] == []
    assert [name for name in outputs if same(before[name], after[name])] == []
    for name in copies:
        assert same(before[name.replace("vectors.", "output.")], after[name]), name


@EVERY
def test_only_the_outputs_change(kind: str, softmax: str, tied: bool, tmp_path: Path) -> None:
    """Also where steps begin with decay and end with an average of epochs."""
    init = begun(kind, softmax, tied, tmp_path / "first")
    after = tune(kind, softmax, tmp_path / "tuned", init)
    check_frozen(load_tensors(init / WEIGHTS), after)
    assert any(name.startswith("vectors.") for name in after) == tied
    _, vocabulary = load_lm(tmp_path / "tuned")
    assert vocabulary.words == WORDS
    # Once more from what came out: the form stays, and so do the weights that stayed.
    further = tune(kind, softmax, tmp_path / "further", tmp_path / "tuned", "epochs=1", "avg=1")
    assert further.keys() == after.keys()
    changed = {name for name in after if not same(after[name], further[name])}
    assert changed == {name for name in after if name.startswith("output.")}
    forms = [(tmp_path / run / "model.yaml").read_bytes() for run in ("further", "tuned")]
    assert forms[0] == forms[1]


@pytest.mark.parametrize(
    ("kind", "softmax", "tied"), [("lstm", "adaptive", True), ("transformer", "full", False)]
)
def test_also_after_an_interruption(
    kind: str, softmax: str, tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = begun(kind, softmax, tied, tmp_path / "first")
    whole = tune(kind, softmax, tmp_path / "whole", init, "save_every=3")
    steps, loss = 0, LmTask.loss

    def stopping(self, model, batch, generator):
        nonlocal steps
        steps += generator is not None
        if steps == 8:
            steps += 1
            raise Stop
        return loss(self, model, batch, generator)

    monkeypatch.setattr(LmTask, "loss", stopping)
    with pytest.raises(Stop):
        tune(kind, softmax, tmp_path / "parts", init, "save_every=3")
    latest = load_tensors(tmp_path / "parts/checkpoints/latest.safetensors")
    learning = sum(name.startswith("output.") for name in whole)
    assert len({name.split("/")[1] for name in latest if name.startswith("optimizer/")}) == learning
    parts = tune(kind, softmax, tmp_path / "parts", init, "save_every=3")
    total = read_header(tmp_path / "whole/checkpoints/latest.safetensors")["place"]["step"]
    assert steps == 9 + total - 6  # it went on from its last checkpoint
    check_frozen(load_tensors(init / WEIGHTS), parts)
    files = [(tmp_path / run / WEIGHTS).read_bytes() for run in ("parts", "whole")]
    assert files[0] == files[1]


@TIED
def test_untying_changes_no_probability(kind: str, softmax: str, tmp_path: Path) -> None:
    """Of sentences and steps, and after writing and reading."""
    init = begun(kind, softmax, True, tmp_path / "first")
    tied, _ = load_lm(init)
    spec = spec_of(settings(kind, softmax, False))
    untied, vocabulary, form = continue_lm(init, spec, WORDS)
    assert (form.untied, form.output.tied) == (True, False)
    save_lm(tmp_path / "untied", form, untied.state_dict(), vocabulary)
    for model in (untied.eval(), load_lm(tmp_path / "untied")[0]):
        for words in (random_words(5, 9), random_words(1, 1), random_words(40, 3)):
            assert same(model.log_probs(words).detach(), tied.log_probs(words).detach())
        words = torch.tensor([3, 20, 9])
        assert same(*(m.step(words, m.initial_state(3))[0].detach() for m in (model, tied)))
    # And they are two sets of weights: what is predicted no longer changes what is read.
    every = torch.arange(24)
    before = untied.embed(every).detach().clone()
    with torch.no_grad():
        for parameter in untied.output.parameters():
            parameter.mul_(2)
    assert same(untied.embed(every).detach(), before)


@TIED
def test_an_untied_model_is_trained_as_a_whole(kind: str, softmax: str, tmp_path: Path) -> None:
    init = begun(kind, softmax, True, tmp_path / "first")
    model, _, _ = continue_lm(init, spec_of(settings(kind, softmax, False)), WORDS)
    model(random_words(2, 4) % 5, random_words(2, 4)).sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    config = settings(kind, softmax, False, *QUICK, "epochs=1")
    train_lm(TEXT, DEV, WORDS, tmp_path / "untied", config, ALONE, init=init)
    before, after = load_tensors(init / WEIGHTS), load_tensors(tmp_path / "untied" / WEIGHTS)
    assert [name for name in before if same(before[name], after[name])] == []
    copies = [name for name in after if name.startswith("vectors.")]
    outputs = [name.replace("vectors.", "output.") for name in copies]
    assert copies and not any(same(after[a], after[b]) for a, b in zip(copies, outputs))


def test_nothing_is_derived_below_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A step goes no further back than it has to; layers below drop values, as in any training."""
    seen: list[tuple[bool, bool]] = []
    loss = LmTask.loss

    def looking(self, model, batch, generator):
        hidden = model.hidden(batch.inputs)
        if model.training:
            differs = not torch.equal(hidden, model.hidden(batch.inputs))
            seen.append((hidden.requires_grad, differs))
        return loss(self, model, batch, generator)

    monkeypatch.setattr(LmTask, "loss", looking)
    init = begun("lstm", "full", True, tmp_path / "first")
    with caplog.at_level(logging.INFO):
        tune("lstm", "full", tmp_path / "tuned", init)
    assert set(seen) == {(False, True)}
    assert "0.00 M of them trained" in caplog.text


def test_models_are_not_tied_again(tmp_path: Path) -> None:
    init = begun("lstm", "full", True, tmp_path / "first")
    tune("lstm", "full", tmp_path / "tuned", init)
    with pytest.raises(DataError, match="the weights of this model"):
        continue_lm(tmp_path / "tuned", spec_of(settings("lstm", "full", True)), WORDS)
    with pytest.raises(DataError, match="the weights of this model"):
        continue_lm(init, spec_of(settings("lstm", "adaptive", False)), WORDS)


def test_a_folder_from_before_says_nothing_of_untying(tmp_path: Path) -> None:
    folder = begun("lstm", "adaptive", True, tmp_path)
    text = (folder / "model.yaml").read_text()
    assert "untied: false\n" in text
    write_text(folder / "model.yaml", text.replace("untied: false\n", ""))
    models = load_lm(folder)[0], tiny("lstm", "adaptive", True)[0]
    assert same(*(model.log_probs(random_words(2, 5)).detach() for model in models))


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_what_cannot_be_trained(kind: str, tmp_path: Path) -> None:
    message = r"trained=output needs output.tied=false.*set it, and a tied model"
    with pytest.raises(ConfigError, match=message):
        settings(kind, "full", True, "trained=output")
    with pytest.raises(ConfigError, match="trained must be one of all, output"):
        settings(kind, "full", False, "trained=softmax")
    config = replace(settings(kind, "full", False), trained="output")
    with pytest.raises(
        ConfigError, match=r"trained=output: expected a trained model.*\n.*--in-init"
    ):
        train_lm(grammar_sentences(5), DEV, WORDS, tmp_path / "x", config, ALONE)
    assert not (tmp_path / "x").exists()
