"""The folder of a finished model: what is written comes back, and damage is named."""

from __future__ import annotations

import pytest
import torch

from privasr_k2.am.checkpoints import load_model, save_model
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import read_tokens
from tests.support.small_am import KINDS, features, tiny_model

TOKENS = ("<blk>", "a", "b", "c")


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind):
    model = tiny_model(kind)
    model.mean += 0.5
    save_model(tmp_path, model.spec, model.state_dict(), TOKENS)
    found = load_model(tmp_path)
    x = features(30, 11)
    assert torch.equal(found.log_probs(*x)[0], model.log_probs(*x)[0])
    assert found.tokens == list(TOKENS) and found.num_tokens == 4
    assert (found.subsampling, found.feature_dim) == (3, 5)
    assert found.spec == model.spec


def test_no_pickle_is_written(tmp_path):
    model = tiny_model("tdnn")
    save_model(tmp_path, model.spec, model.state_dict(), TOKENS)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["model.safetensors", "model.yaml", "tokens.txt"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.yaml", None, "an acoustic model"),
        (
            "model.yaml",
            b"kind: hmm\n",
            "kind: one of ctc, ctc_attention, las, rnnt, whisper, foreign, found",
        ),
        ("model.safetensors", None, "a safetensors file, found no such file"),
        ("model.safetensors", b"not one", "a whole safetensors file"),
        ("tokens.txt", b"<blk> 0\na 1\n", "the 4 outputs of the model, found 2 tokens"),
        ("tokens.txt", b"<blk> 0\na 2\n", "a token and the number 1"),
    ],
)
def test_damage_is_named(tmp_path, name, content, message):
    model = tiny_model("tdnn")
    save_model(tmp_path, model.spec, model.state_dict(), TOKENS)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}.*: expected {message}"):
        load_model(tmp_path)


def test_weights_of_another_model_are_named(tmp_path):
    save_model(tmp_path, tiny_model("tdnn").spec, tiny_model("blstm").state_dict(), TOKENS)
    with pytest.raises(DataError, match=r"model\.safetensors: expected the weights of this model"):
        load_model(tmp_path)


def test_disambiguation_symbols_are_no_outputs_and_number_0_is_the_blank(tmp_path):
    (tmp_path / "tokens.txt").write_text("<eps> 0\n#x 1\nb 2\n#0 3\n#1 4\n")
    assert read_tokens(tmp_path / "tokens.txt") == ["<blk>", "#x", "b"]
