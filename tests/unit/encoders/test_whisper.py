"""Whisper's encoder: files of three sources, batches, silence, layers, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privasr_k2.encoders.attention import gelu
from privasr_k2.encoders.loading import load_encoder
from privasr_k2.errors import ConfigError, DataError
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    ctranslate2_arrays,
    hugging_face_tensors,
    openai_tensors,
    quantized,
    save_ctranslate2,
    save_openai,
    save_safetensors,
    speechlike,
    tiny_whisper,
)


def outputs(encoder, *lengths, layers=None):
    """Outputs and lengths for made audio."""
    with torch.no_grad():
        return encoder(*encoder.features(*speechlike(*lengths)), layers=layers)


@pytest.mark.parametrize("prefix", ["model.encoder.", "encoder."])
def test_hugging_face(tmp_path, prefix):
    whisper = tiny_whisper()
    save_safetensors(tmp_path, hugging_face_tensors(whisper, prefix), WHISPER_CONFIG)
    expected, read = outputs(whisper, 20000), outputs(load_encoder(tmp_path), 20000)
    assert torch.equal(expected[0], read[0]) and read[1].tolist() == [63]


def test_openai(tmp_path):
    whisper = tiny_whisper()
    path = save_openai(tmp_path / "tiny.pt", whisper)
    encoder = load_encoder(path)
    assert torch.equal(outputs(whisper, 20000)[0], outputs(encoder, 20000)[0])
    assert (encoder.name, encoder.dim, encoder.num_layers, encoder.frame_shift) == (
        *("tiny", 64, 2),
        0.02,
    )


@pytest.mark.parametrize(
    ("kind", "at_most"), [("float32", 0), ("float16", 1e-2), ("int8", 0.2), ("int16", 2e-2)]
)
def test_ctranslate2(tmp_path, kind, at_most):
    whisper = tiny_whisper()
    arrays = ctranslate2_arrays(whisper)
    if kind.startswith("int"):
        arrays = quantized(arrays, kind)
    else:
        floats = {n: a.astype(kind) for n, a in arrays.items() if a.dtype == np.float32}
        arrays = {**arrays, **floats}
    save_ctranslate2(tmp_path / "model.bin", arrays)
    expected, read = outputs(whisper, 20000)[0], outputs(load_encoder(tmp_path), 20000)[0]
    assert (expected - read).abs().max() <= at_most


@pytest.mark.parametrize("pad_seconds", [0.0, 1.6, 30.0])
def test_alone_as_in_a_batch(pad_seconds):
    whisper = tiny_whisper()
    whisper.pad_seconds = pad_seconds
    lengths = (20000, 7, 24001, 11111)
    together, frames = outputs(whisper, *lengths)
    assert frames.tolist() == [63, 1, 76, 35]
    audio, _ = speechlike(*lengths)
    for i, length in enumerate(lengths):
        with torch.no_grad():
            alone, _ = whisper(*whisper.features(audio[i : i + 1], torch.tensor([length])))
        assert alone.shape == (1, frames[i], 64)
        torch.testing.assert_close(together[i, : frames[i]], alone[0], atol=1e-5, rtol=0)
        assert not together[i, frames[i] :].any()


def test_silence_is_heard_but_not_given_out():
    whisper = tiny_whisper()
    bare, _ = outputs(whisper, 20000)
    whisper.pad_seconds = 30.0
    features, lengths = whisper.features(*speechlike(20000))
    assert features.shape == (1, 3000, 80) and lengths.tolist() == [125]
    with torch.no_grad():
        padded, _ = whisper(features, lengths)
    assert padded.shape == bare.shape and (padded - bare).abs().max() > 1e-3


def test_features_of_the_true_length_are_the_first_of_those_with_silence():
    whisper = tiny_whisper()
    bare, _ = whisper.features(*speechlike(20000))
    whisper.pad_seconds = 30.0
    padded, _ = whisper.features(*speechlike(20000))
    torch.testing.assert_close(padded[:, :125], bare, atol=1e-6, rtol=0)


def test_layers_are_those_that_were_asked_for():
    whisper = tiny_whisper()
    every, _ = outputs(whisper, 9000, 5000, layers=[0, 1, 2])
    last, _ = outputs(whisper, 9000, 5000)
    some, _ = outputs(whisper, 9000, 5000, layers=[1, 0, 1])
    assert torch.equal(every[2], last) and torch.equal(some, every[[1, 0, 1]])
    from_the_end, _ = outputs(whisper, 9000, 5000, layers=[-1, -3])
    assert torch.equal(from_the_end, every[[2, 0]])
    for wrong in ([], [3], [-4]):
        with pytest.raises(ConfigError, match="0 to 2"):
            outputs(whisper, 9000, layers=wrong)


def test_gradients_reach_every_weight_and_the_audio():
    whisper = tiny_whisper()
    audio, lengths = speechlike(9000, 5000)
    audio.requires_grad_(True)
    encoded, _ = whisper(*whisper.features(audio, lengths))
    encoded.square().sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in whisper.parameters())
    assert 0 < audio.grad[0].abs().sum() < 1e6 and not audio.grad[1, 5000:].any()


def test_gelu_has_the_right_gradient_in_whatever_order_it_is_laid_out():
    x, gradient = torch.randn(2, 8, 5), torch.randn(2, 5, 8).transpose(1, 2)
    one, other = (x.clone().requires_grad_(True) for _ in range(2))
    gelu(one).backward(gradient)
    torch.nn.functional.gelu(other).backward(gradient.contiguous())
    torch.testing.assert_close(one.grad, other.grad)


def test_what_cannot_be_heard_is_refused():
    whisper = tiny_whisper()
    for audio, lengths in (
        (torch.zeros(1, 480001), torch.tensor([480001])),
        (torch.zeros(1, 100), torch.tensor([0])),
        (torch.zeros(1, 100), torch.tensor([101])),
        (torch.zeros(100), torch.tensor([100])),
    ):
        with pytest.raises(DataError):
            whisper.features(audio, lengths)
    for seconds in (0.5, 31.0, 20.01):
        whisper.pad_seconds = seconds
        with pytest.raises(ConfigError, match="pad_seconds"):
            whisper.features(*speechlike(20000))


def test_weights_of_another_size_are_refused(tmp_path):
    tensors = hugging_face_tensors(tiny_whisper())
    for key, value in (("d_model", 128), ("encoder_layers", 3), ("num_mel_bins", 128)):
        save_safetensors(tmp_path, tensors, {**WHISPER_CONFIG, key: value})
        with pytest.raises(DataError, match=f"{key} = {value}"):
            load_encoder(tmp_path)
    name = "model.encoder.layers.1.fc2.weight"
    save_safetensors(tmp_path, {**tensors, name: torch.zeros(64, 47)}, WHISPER_CONFIG)
    with pytest.raises(DataError, match=r"blocks\.1\.narrow\.weight of shape \[64, 48\]"):
        load_encoder(tmp_path)
    save_safetensors(tmp_path, {n: t for n, t in tensors.items() if n != name}, WHISPER_CONFIG)
    with pytest.raises(DataError, match=r"narrow\.weight, found none"):
        load_encoder(tmp_path)
    some = {n: t for n, t in tensors.items() if ".layers." not in n}
    with pytest.raises(DataError, match="a part of them"):
        load_encoder(save_safetensors(tmp_path, some, WHISPER_CONFIG))


def test_keys_with_a_bias_are_refused(tmp_path):
    arrays = ctranslate2_arrays(tiny_whisper())
    arrays["encoder/layer_1/self_attention/linear_0/bias"] += 1
    save_ctranslate2(tmp_path / "model.bin", arrays)
    with pytest.raises(DataError, match="keys without a bias"):
        load_encoder(tmp_path)


def test_a_state_dict_alone_is_read(tmp_path):
    whisper = tiny_whisper()
    torch.save(openai_tensors(whisper), str(tmp_path / "w.pt"))
    encoder = load_encoder(tmp_path / "w.pt")
    assert torch.equal(outputs(whisper, 9000)[0], outputs(encoder, 9000)[0])
