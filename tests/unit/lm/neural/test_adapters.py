"""A language model with adapters scores as the model that they are merged into."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.errors import ConfigError
from privasr_k2.lm.neural.files import load_lm, save_lm
from privasr_k2.lm.neural.kinds import spec_of
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.training.trainable import LoraConfig, choose_trained, names_of_part
from tests.support.small_lm import MODELS, nbest_lists, random_words, settings, tiny

EVERY = pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
LAYERS = LoraConfig(rank=2, scale=1.0, layers=["linear", "head", "down.0", "up.0", "project"])


def adapted(model: NeuralLm) -> NeuralLm:
    """The model with adapters of softmax and projection that were trained."""
    generator = torch.Generator().manual_seed(6)
    names = choose_trained(model, ["lora"], LAYERS, seed=5)
    with torch.no_grad():
        for name in names:
            parameter = model.get_parameter(name)
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


@EVERY
def test_all_scores_are_those_of_the_merged_model(
    kind: str, softmax: str, tied: bool, tmp_path: Path
) -> None:
    plain, vocabulary = tiny(kind, softmax, tied)
    model = adapted(copy.deepcopy(plain))
    save_lm(tmp_path, spec_of(settings(kind, softmax, tied)), model.state_dict(), vocabulary)
    merged, _ = load_lm(tmp_path)
    assert merged.state_dict().keys() == plain.state_dict().keys()
    words = random_words(5, 7)
    found, wanted, old = ([*scores(each, words)] for each in (model, merged, plain))
    for ours, theirs, before in zip(found, wanted, old):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
        assert not torch.allclose(theirs, before, atol=1e-2)
    lists = nbest_lists(4)
    trees = [
        NeuralScorer(each, vocabulary).nbest_token_log_probs(lists) for each in (model, merged)
    ]
    np.testing.assert_allclose(*trees, atol=1e-3, rtol=1e-4)


def scores(model: NeuralLm, words: torch.Tensor):
    """Each way to the probabilities: of all words, and of one word with and without gradients."""
    with torch.no_grad():
        yield model.log_probs(words)
        yield model.target_log_probs(words[:, :-1], words[:, 1:])
    yield model.target_log_probs(words[:, :-1], words[:, 1:]).detach()


@EVERY
def test_parts_of_a_language_model(kind: str, softmax: str, tied: bool) -> None:
    model, _ = tiny(kind, softmax, tied)
    names = [name for name, _ in model.named_parameters()]
    output = [name for name in names if name.startswith("output.")]
    assert list(names_of_part(model, "output")) == output
    last = set(names_of_part(model, "last_block"))
    between = ("blocks.1.", "norm.") if kind == "transformer" else ("project.",)
    expected = {name for name in names if name.endswith("_l1") or name.startswith(between)}
    assert last == expected | set(output) and last != set(names)


def test_an_lstm_has_no_linear_layer() -> None:
    model, _ = tiny("lstm")
    with pytest.raises(ConfigError):
        choose_trained(model, ["lora"], LoraConfig(rank=1, scale=1.0, layers=["lstm"]))
