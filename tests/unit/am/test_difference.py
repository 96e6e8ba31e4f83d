"""What was trained upon a public encoder: kept apart, put together again, checked by hash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from privasr_k2.am.difference import (
    combined,
    difference,
    low_rank,
    public_weights,
    put_together,
    write_difference,
)
from privasr_k2.encoders.common import PublicEncoder
from privasr_k2.encoders.loading import load_encoder
from privasr_k2.errors import DataError
from privasr_k2.fileio import parse_json, write_json, write_text
from privasr_k2.training.weights import load_tensors, read_header, save_tensors
from tests.support.tiny_encoders import (
    WAV2VEC_CONFIG,
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    tiny_wav2vec,
    tiny_whisper,
    wav2vec_tensors,
)
from tests.support.verbs import call, refused

TOKENS = "<blk> 0\n${a} 1\nb 2\n"


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    tensors = hugging_face_tensors(tiny_whisper())
    return save_safetensors(tmp_path / "tiny", tensors, WHISPER_CONFIG)


def trained_upon(state: dict[str, Tensor], block: str) -> dict[str, Tensor]:
    """A state whose query got an adapter of rank 2, whose biases and one weight were trained."""
    state = {name: tensor.clone() for name, tensor in state.items()}
    query = f"{block}.attention.query.weight"
    state[query] += 0.3 * drawn(64, 2) @ drawn(2, 64, seed=1)
    state[f"{block}.wide.bias"] += 0.1 * drawn(48)
    state[f"{block}.narrow.weight"] += 0.1 * drawn(64, 48)
    return {**state, "output.weight": drawn(3, 64), "mean": drawn(64, seed=2)}


def model_folder(folder: Path, encoder: PublicEncoder, first: int) -> dict[str, Tensor]:
    """A folder of a model with the encoder's layers above ``first``."""
    origin = {"name": encoder.name, "sha256": encoder.origin.sha256, "source": "here"}
    about = {"family": encoder.family, "first": first, "origin": origin}
    write_json(folder / "model.yaml", {"kind": "ctc", "public": about})  # JSON is YAML
    write_text(folder / "tokens.txt", TOKENS)
    state = public_weights(folder, encoder)
    weights = trained_upon(state, "public.blocks.0")
    save_tensors(folder / "model.safetensors", weights, {"untrained": False})
    return weights


@pytest.mark.parametrize("first", [0, 1])
def test_only_what_was_trained_is_kept_and_it_becomes_the_model_again(
    tmp_path: Path, encoder: Path, first: int
) -> None:
    public = load_encoder(encoder)
    weights = model_folder(tmp_path / "am", public, first)
    flags = f"--in-public-encoder {encoder} --out-difference {tmp_path}/trained.safetensors"
    call(f"export --in-model {tmp_path}/am {flags}")
    kept = load_tensors(tmp_path / "trained.safetensors")
    block = "public.blocks.0"
    query = f"{block}.attention.query.weight"
    assert {name: tuple(tensor.shape) for name, tensor in kept.items()} == {
        f"{query}.left": (64, 2),
        f"{query}.right": (2, 64),
        f"{block}.wide.bias": (48,),
        f"{block}.narrow.weight": (64, 48),
        "output.weight": (3, 64),
        "mean": (64,),
    }
    flags = f"--in-public-encoder {encoder} --out-model {tmp_path}/again"
    call(f"export --in-difference {tmp_path}/trained.safetensors {flags}")
    again = load_tensors(tmp_path / "again/model.safetensors")
    assert again.keys() == weights.keys()
    for name, tensor in weights.items():
        assert torch.equal(again[name], tensor) == (name != query), name
    torch.testing.assert_close(again[query], weights[query], atol=3e-7, rtol=0)
    for name in ("model.yaml", "tokens.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "am" / name).read_bytes()
    assert read_header(tmp_path / "again/model.safetensors") == {"untrained": False}


def test_outputs_are_the_same(tmp_path: Path, encoder: Path) -> None:
    public = load_encoder(encoder)
    weights = model_folder(tmp_path / "am", public, 0)
    write_difference(tmp_path / "am", public, tmp_path / "d.safetensors")
    put_together(tmp_path / "d.safetensors", public, tmp_path / "again")
    inputs = public.features(0.1 * drawn(2, 16000), torch.tensor([16000, 9000]))
    outputs = []
    for state in (weights, load_tensors(tmp_path / "again/model.safetensors")):
        own = {n.removeprefix("public."): t for n, t in state.items() if n.startswith("public.")}
        public.load_state_dict({**public.state_dict(), **own})
        with torch.no_grad():
            outputs.append(public(*inputs)[0] @ state["output.weight"].T)
    scores = [output.log_softmax(dim=2) for output in outputs]
    torch.testing.assert_close(scores[1], scores[0], atol=1e-5, rtol=1e-5)  # some float32 steps
    assert float((scores[0] - scores[1]).abs().max()) > 0  # the factors are not the weight itself


def test_what_the_header_says(tmp_path: Path, encoder: Path) -> None:
    public = load_encoder(encoder)
    model_folder(tmp_path / "am", public, 1)
    write_difference(tmp_path / "am", public, tmp_path / "d.safetensors")
    with safe_open(str(tmp_path / "d.safetensors"), "pt") as file:
        header = parse_json(file.metadata()["json"], "d")
    origin = header["public_encoder"]
    assert origin["sha256"] == public.origin.sha256 == header["public_files"]["model.safetensors"]
    assert (origin["name"], origin["licence"]) == ("tiny", "not stated")
    assert "not known" in origin["training_data"] and header["texts"]["tokens.txt"] == TOKENS


def test_wav2vec_has_distances_too(tmp_path: Path) -> None:
    wavlm = tiny_wav2vec("wavlm", "layer", stable=True)
    tensors = wav2vec_tensors(wavlm, "", parametrized=False)
    config = {**WAV2VEC_CONFIG, "model_type": "wavlm", "feat_extract_norm": "layer"}
    config |= {"do_stable_layer_norm": True, "conv_bias": True}
    public = load_encoder(save_safetensors(tmp_path / "wavlm", tensors, config))
    upper = {"first": 1, "origin": {"sha256": public.origin.sha256}}
    write_json(tmp_path / "am/model.yaml", {"kind": "ctc", "public": upper})
    names = public_weights(tmp_path / "am", public)
    assert names.keys() >= {"public.distances.weight", "public.norm.bias"}
    assert not any(
        name.startswith(("public.convs", "public.projection", "public.blocks.1")) for name in names
    )
    assert torch.equal(names["public.distances.weight"], wavlm.state_dict()["distances.weight"])


@pytest.mark.parametrize("shape", [(40, 30), (30, 40, 1), (20, 12, 5)])
@pytest.mark.parametrize("size", [1e-4, 1.0, 30.0])
def test_the_rank_is_that_of_the_adapter_behind_the_rounding(
    shape: tuple[int, ...], size: float
) -> None:
    public = drawn(*shape)
    rows, columns = public.flatten(1).shape
    for rank in (0, 1, 5):
        change = size * drawn(rows, rank, seed=rank) @ drawn(rank, columns, seed=9)
        tensor = public + change.view(shape)
        left, right = low_rank(tensor, public)
        assert left.shape == (rows, rank) and right.shape == (rank, columns)
        again = combined({"w.left": left, "w.right": right}, {"w": public})["w"]
        bound = 4 * 2**-24 * float(tensor.abs().max() + public.abs().max())
        torch.testing.assert_close(again, tensor, atol=bound, rtol=0)
    assert low_rank(public + drawn(*shape, seed=5), public) is None
    broken = public.clone()
    broken.view(-1)[3] = float("nan")
    assert low_rank(broken, public) is None


def test_factors_only_where_they_are_smaller() -> None:
    public = torch.zeros(6, 6)
    for rank, smaller in ((2, True), (3, False)):
        tensor = drawn(6, rank) @ drawn(rank, 6, seed=1)
        assert (difference({"w": tensor}, {"w": public}).keys() == {"w"}) != smaller


def test_bits_are_compared() -> None:
    zero = torch.zeros(3)
    kept = difference({"a": zero, "b": -zero, "c": zero.half()}, dict.fromkeys("abc", zero))
    assert kept.keys() == {"b", "c"}


def test_another_encoder_is_refused(tmp_path: Path, encoder: Path) -> None:
    public = load_encoder(encoder)
    model_folder(tmp_path / "am", public, 0)
    write_difference(tmp_path / "am", public, tmp_path / "d.safetensors")
    changed = {name: 1.01 * tensor for name, tensor in hugging_face_tensors(tiny_whisper()).items()}
    other = save_safetensors(tmp_path / "other", changed, WHISPER_CONFIG)
    with refused(f"expected the encoder tiny with sha256 {public.origin.sha256}"):
        flags = f"--in-public-encoder {other} --out-model {tmp_path}/again"
        call(f"export --in-difference {tmp_path}/d.safetensors {flags}")
    assert not (tmp_path / "again").exists()
    with refused("model.yaml: expected the encoder tiny"):
        flags = f"--in-public-encoder {other} --out-difference {tmp_path}/e.safetensors"
        call(f"export --in-model {tmp_path}/am {flags}")


def test_other_files_are_refused(tmp_path: Path, encoder: Path) -> None:
    public = load_encoder(encoder)
    weights = model_folder(tmp_path / "am", public, 0)
    path = tmp_path / "d.safetensors"
    write_difference(tmp_path / "am", public, path)
    with pytest.raises(DataError, match="a new folder"):
        put_together(path, public, tmp_path / "am")
    with pytest.raises(DataError, match="another header"):
        put_together(tmp_path / "am/model.safetensors", public, tmp_path / "x")
    kept, header = load_tensors(path), read_header(path)
    del kept["mean"]
    save_tensors(path, kept, header)
    with pytest.raises(DataError, match="the tensor mean"):
        put_together(path, public, tmp_path / "x")
    for wrong in ({"output.weight": weights["output.weight"]}, {"public.norm.bias": drawn(3)}):
        save_tensors(tmp_path / "am/model.safetensors", wrong)
        with pytest.raises(DataError, match="layers of the encoder tiny"):
            write_difference(tmp_path / "am", public, path)
    public.origin = replace(public.origin, sha256="0" * 64)
    with pytest.raises(DataError, match="sha256 0000"):
        put_together(path, public, tmp_path / "x")
