"""wav2vec 2.0, HuBERT and WavLM: files, batches, layers, gradients."""

from __future__ import annotations

import itertools
import json

import pytest
import torch

from privasr_k2.encoders.loading import load_encoder
from privasr_k2.errors import ConfigError, DataError
from tests.support.tiny_encoders import (
    WAV2VEC_CONFIG,
    save_safetensors,
    speechlike,
    tiny_wav2vec,
    wav2vec_tensors,
)

VARIANTS = [*itertools.product(("wav2vec2", "hubert", "wavlm"), ("group", "layer"), (False, True))]


def config_of(model_type, norm, stable):
    variant = {"feat_extract_norm": norm, "do_stable_layer_norm": stable}
    own = {"model_type": model_type, "conv_bias": norm == "layer"}
    return {**WAV2VEC_CONFIG, **variant, **own}


@pytest.mark.parametrize(("model_type", "norm", "stable"), VARIANTS)
def test_from_its_files_alone_and_in_a_batch(tmp_path, model_type, norm, stable):
    model = tiny_wav2vec(model_type, norm, stable)
    prefix = "" if stable else f"{model_type}."
    tensors = wav2vec_tensors(model, prefix, parametrized=stable)
    tensors["lm_head.weight"] = torch.zeros(5, 24)
    encoder = load_encoder(save_safetensors(tmp_path, tensors, config_of(model_type, norm, stable)))
    lengths = (20000, 400, 14321)
    audio, _ = speechlike(*lengths)
    with torch.no_grad():
        expected, frames = model(*model.features(*speechlike(*lengths)))
        read, _ = encoder(*encoder.features(*speechlike(*lengths)))
        torch.testing.assert_close(read, expected, atol=1e-5, rtol=0)
        assert frames.tolist() == [62, 1, 44]
        for i, length in enumerate(lengths):
            alone, _ = model(*model.features(audio[i : i + 1], torch.tensor([length])))
            torch.testing.assert_close(expected[i, : frames[i]], alone[0], atol=1e-5, rtol=0)
            assert not expected[i, frames[i] :].any()
    assert (encoder.dim, encoder.num_layers, encoder.frame_shift) == (24, 2, 0.02)


def test_a_checkpoint_of_torch_is_read_too(tmp_path):
    model = tiny_wav2vec("wavlm", "layer", True)
    tensors = wav2vec_tensors(model, "wavlm.", parametrized=False)
    folder = save_safetensors(tmp_path, tensors, config_of("wavlm", "layer", True))
    read = load_encoder(folder).state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(tensors, str(folder / "pytorch_model.bin"))
    again = load_encoder(folder).state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in read.items())


def test_the_waveform_is_normalized_unless_the_model_says_no(tmp_path):
    model = tiny_wav2vec("wav2vec2", "layer", True)
    tensors = wav2vec_tensors(model, "", parametrized=False)
    save_safetensors(tmp_path, tensors, config_of("wav2vec2", "layer", True))
    audio, lengths = speechlike(9000, 5000)
    normalized, _ = load_encoder(tmp_path).features(audio, lengths)
    assert abs(normalized[1, :5000].mean()) < 1e-5 and not normalized[1, 5000:].any()
    assert abs(normalized[1, :5000].std() - 1) < 1e-3
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"do_normalize": False}))
    plain, _ = load_encoder(tmp_path).features(audio, lengths)
    assert torch.equal(plain[1, :5000, 0], audio[1, :5000])


def test_layers_and_gradients():
    model = tiny_wav2vec("wavlm", "group", False)
    features = model.features(*speechlike(9000, 5000))
    every, _ = model(*features, layers=range(3))
    some, _ = model(*features, layers=[1])
    assert torch.equal(some[0], every[1]) and every.shape == (3, 2, 27, 24)
    every.square().sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())
    assert max(weight.grad.abs().max() for weight in model.parameters()) < 1e6


def test_too_short_audio_is_refused():
    model = tiny_wav2vec("hubert", "group", False)
    with pytest.raises(DataError, match="399 samples"):
        model.features(*speechlike(9000, 399))


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("hidden_act", "relu", "hidden_act"),
        ("conv_pos_batch_norm", True, "conv_pos_batch_norm"),
        ("add_adapter", True, "add_adapter"),
        ("hidden_size", "24", "hidden_size, a number"),
        ("conv_kernel", [10, 3], "of one length"),
        ("hidden_size", 30, "shape"),
        ("num_hidden_layers", 3, "blocks.2"),
        ("model_type", "data2vec-audio", "weights of .*wav2vec, whisper"),
    ],
)
def test_other_models_are_refused(tmp_path, key, value, part):
    tensors = wav2vec_tensors(tiny_wav2vec("hubert", "group", False), "", parametrized=False)
    config = {**config_of("hubert", "group", False), key: value}
    with pytest.raises(DataError, match=part):
        load_encoder(save_safetensors(tmp_path, tensors, config))


def test_it_hears_no_silence(tmp_path):
    tensors = wav2vec_tensors(tiny_wav2vec("hubert", "group", False), "", parametrized=False)
    folder = save_safetensors(tmp_path, tensors, config_of("hubert", "group", False))
    with pytest.raises(ConfigError, match="pad_seconds"):
        load_encoder(folder, pad_seconds=30.0)
