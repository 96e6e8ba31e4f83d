"""The upper layers of a public encoder, alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
import yaml

from privasr_k2.encoders.chunks import ChunkConfig, chunk_cuts, encode_long
from privasr_k2.encoders.common import Origin
from privasr_k2.encoders.loading import load_encoder
from privasr_k2.encoders.upper import new_upper, read_upper, upper_of, upper_spec
from privasr_k2.errors import ConfigError, DataError
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    speechlike,
    tiny_wav2vec,
    tiny_whisper,
)

WAV2VECS = [*itertools.product(("wav2vec2", "wavlm"), ("group", "layer"), (False, True))]
ENCODERS = [("whisper",), *WAV2VECS]
CHUNKS = ChunkConfig(28.0, 4.0, batch=1)


def encoder_of(kind: str, *variant):
    encoder = tiny_wav2vec(kind, *variant) if variant else tiny_whisper()
    encoder.family = "wav2vec" if variant else "whisper"
    encoder.origin = Origin("tiny", "0" * 64, "MIT", "a test", {})
    return encoder


def written(folder: Path) -> Path:
    return save_safetensors(folder, hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)


@pytest.mark.parametrize("variant", ENCODERS)
@pytest.mark.parametrize("first", [0, 1])
def test_they_give_the_encoders_outputs(variant, first: int) -> None:
    encoder = encoder_of(*variant)
    with torch.no_grad():
        inputs = encoder.features(*speechlike(20000, 14321))
        expected, lengths = encoder(*inputs)
        below, _ = encoder(*inputs, layers=[first])
        spec = upper_spec(encoder, first, CHUNKS)
        # As model.yaml gives it: lists in place of tuples.
        again = new_upper(type(spec)(**yaml.safe_load(yaml.safe_dump(vars(spec)))))
        again.load_state_dict(upper_of(encoder, first).state_dict())
        outputs = again(below[0], lengths)
    for row, of_row, length in zip(outputs, expected, lengths):
        torch.testing.assert_close(row[:length], of_row[:length], atol=1e-5, rtol=0)
    assert len(again.blocks) == encoder.num_layers - first


def test_a_copy_changes_nothing_in_the_encoder() -> None:
    encoder = encoder_of("whisper")
    copied = upper_of(encoder, 1)
    copied.norm.weight.data.zero_()
    assert encoder.norm.weight.any()


@pytest.mark.parametrize("variant", [("whisper",), ("wavlm", "layer", True)])
def test_long_utterances_are_read_in_the_chunks_of_their_frames(variant) -> None:
    encoder, chunks = encoder_of(*variant), ChunkConfig(0.8, 0.2, batch=1)
    made = new_upper(upper_spec(encoder, 0, chunks))
    made.load_state_dict(upper_of(encoder, 0).state_dict())
    audio, samples = speechlike(40000, 9000, 26007)
    with torch.no_grad():
        rows = [
            encode_long(encoder, row[:num], chunks, layers=[0])[0]
            for row, num in zip(audio, samples)
        ]
        lengths = torch.tensor([len(row) for row in rows])
        below = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        found = made(below, lengths)
        for row, of_row, length in zip(found, below, lengths.tolist()):
            cuts = chunk_cuts(length, encoder.frame_shift, chunks)
            for begin, end in itertools.pairwise(cuts):
                part = made.through(
                    of_row[None, begin:end], torch.tensor([end - begin]), made.blocks
                )
                part = part if made.norm is None else made.norm(part)
                torch.testing.assert_close(row[begin:end], part[0], atol=1e-5, rtol=0)
        half = made.below(below, lengths, 1)
        again = made(half, lengths, 1)
    for row, of_row, length in zip(again, found, lengths):
        torch.testing.assert_close(row[:length], of_row[:length])
    assert lengths.max() * encoder.frame_shift > 2


def feats(folder: Path, about: dict) -> Path:
    folder.mkdir()
    (folder / "features.yaml").write_text(yaml.safe_dump(about))
    return folder


def test_the_layer_is_that_of_the_features(tmp_path: Path) -> None:
    encoder = written(tmp_path / "tiny")
    sha256 = load_encoder(encoder).origin.sha256
    long = {"pad_seconds": 0.0, "chunk_seconds": 20.0, "chunk_overlap": 3.0}
    about = {
        "encoder": {"layers": [-2], **long},
        "public_encoder": {"sha256": sha256},
    }
    spec, layers = read_upper(encoder, feats(tmp_path / "feats", about))
    assert (spec.family, spec.first, spec.origin["sha256"]) == ("whisper", 1, sha256)
    assert (spec.chunk_seconds, spec.chunk_overlap) == (20.0, 3.0)
    expected = load_encoder(encoder).blocks[1].state_dict()
    found = layers.blocks[0].state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    wrong = [
        {},
        {**about, "public_encoder": {"sha256": "0" * 64}},
        {**about, "encoder": {"layers": [], **long}},
        {**about, "encoder": {"layers": [0, 1], **long}},
        {**about, "encoder": {"layers": [0], **long, "pad_seconds": 30.0}},
    ]
    for number, other in enumerate(wrong):
        with pytest.raises(DataError):
            read_upper(encoder, feats(tmp_path / f"feats{number}", other))
    last = {**about, "encoder": {"layers": [2], **long}}
    with pytest.raises(ConfigError):
        read_upper(encoder, feats(tmp_path / "last", last))


def test_a_program_has_no_layers_to_train() -> None:
    encoder = encoder_of("whisper")
    encoder.sizes = None
    with pytest.raises(ConfigError):
        upper_spec(encoder, 0, CHUNKS)
