"""Public encoders against transformers, CTranslate2 and torch's own Transformer layers.

``PRIVASR_ENCODERS`` names a folder that holds ``tiny.en`` and ``base``, as ``privasr encoder get
tiny.en --out FOLDER/tiny.en`` makes them. Without it the tests of real models are left out.
"""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from privasr_k2.encoders.loading import load_encoder
from privasr_k2.encoders.log_mel import log_mel
from tests.support.tiny_encoders import (
    WAV2VEC_CONFIG,
    ctranslate2_arrays,
    quantized,
    save_ctranslate2,
    speechlike,
    tiny_whisper,
)

MODELS = [*itertools.product(("Wav2Vec2", "Hubert", "WavLM"), ("group", "layer"), (False, True))]


def utterances(shared_data: Path) -> list[torch.Tensor]:
    """Real audio (S,), of three lengths."""
    soundfile = pytest.importorskip("soundfile")
    paths = sorted((shared_data / "LibriSpeech" / "test-other").glob("*/*/*.flac"))[:3]
    return [torch.from_numpy(soundfile.read(path, dtype="float32")[0]) for path in paths]


def encoded(encoder, audio, **options):
    """Outputs of one signal, and the encoder's input."""
    with torch.no_grad():
        features, lengths = encoder.features(audio[None], torch.tensor([len(audio)]))
        return encoder(features, lengths, **options)[0], features


def drawn(model):
    """A model of transformers with other weights than those it begins with."""
    torch.manual_seed(3)
    for weight in model.parameters():
        weight.data.add_(0.1 * torch.randn_like(weight))
    return model.eval()


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "norm", "stable"), MODELS)
def test_wav2vec_of_transformers(tmp_path, shared_data, name, norm, stable):
    transformers = pytest.importorskip("transformers")
    settings = {k: v for k, v in WAV2VEC_CONFIG.items() if "bucket" not in k or name == "WavLM"}
    config = getattr(transformers, f"{name}Config")(
        **settings, feat_extract_norm=norm, do_stable_layer_norm=stable, conv_bias=norm == "layer"
    )
    kind = "ForCTC" if norm == "layer" else "Model"
    model = drawn(getattr(transformers, f"{name}{kind}")(config))
    model.save_pretrained(tmp_path, safe_serialization=True)
    encoder, bare = load_encoder(tmp_path), model.base_model
    for audio in utterances(shared_data):
        outputs, features = encoded(encoder, audio, layers=range(3))
        theirs = transformers.Wav2Vec2FeatureExtractor()(audio.numpy(), sampling_rate=16000)
        np.testing.assert_allclose(features[0, :, 0], theirs.input_values[0], atol=1e-4)
        with torch.no_grad():
            theirs = bare(features[:, :, 0], output_hidden_states=True)
        # From version 5 on the last hidden state lacks the norm at the end.
        expected = [*theirs.hidden_states[:-1], theirs.last_hidden_state]
        torch.testing.assert_close(outputs, torch.stack(expected), atol=1e-4, rtol=0)


@pytest.mark.shared_data
@pytest.mark.parametrize("with_decoder", [False, True])
def test_whisper_of_transformers(tmp_path, shared_data, with_decoder):
    transformers = pytest.importorskip("transformers")
    sizes = {"d_model": 64, "encoder_layers": 3, "encoder_attention_heads": 4}
    sizes |= {"encoder_ffn_dim": 80, "decoder_layers": 1, "decoder_attention_heads": 4}
    config = transformers.WhisperConfig(**sizes, decoder_ffn_dim=32, vocab_size=60, pad_token_id=0)
    kind = "WhisperForConditionalGeneration" if with_decoder else "WhisperModel"
    model = drawn(getattr(transformers, kind)(config))
    model.save_pretrained(tmp_path, safe_serialization=True)
    encoder = load_encoder(tmp_path, pad_seconds=30.0)
    for audio in utterances(shared_data):
        outputs, features = encoded(encoder, audio, layers=range(4))
        theirs = transformers.WhisperFeatureExtractor()(audio.numpy(), sampling_rate=16000)
        np.testing.assert_allclose(features[0].T, theirs.input_features[0], atol=1e-5)
        with torch.no_grad():
            whole = model.get_encoder()(features.transpose(1, 2), output_hidden_states=True)
        states = [*whole.hidden_states[:-1], whole.last_hidden_state]
        expected = torch.stack(states)[:, :, : outputs.size(2)]
        torch.testing.assert_close(outputs, expected, atol=1e-4, rtol=0)


def of_ctranslate2(ctranslate2, folder, features):
    """(1, 1500, D) of CTranslate2 at float32, for log-mel spectra (1, 3000, F)."""
    model = ctranslate2.models.Whisper(str(folder), compute_type="float32", intra_threads=1)
    given = np.ascontiguousarray(features.transpose(1, 2).numpy())
    return np.array(model.encode(ctranslate2.StorageView.from_array(given)))


def apart(ours, theirs) -> float:
    """The largest difference, of the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["tiny.en", "base"])
def test_real_whisper_of_ctranslate2(shared_data, name):
    ctranslate2 = pytest.importorskip("ctranslate2")
    folder = Path(os.environ.get("PRIVASR_ENCODERS", "")) / name
    if "PRIVASR_ENCODERS" not in os.environ or not folder.is_dir():
        pytest.skip(f"no {name}: set PRIVASR_ENCODERS")
    encoder = load_encoder(folder, pad_seconds=30.0)
    for audio in utterances(shared_data):
        outputs, features = encoded(encoder, audio)
        theirs = of_ctranslate2(ctranslate2, folder, features)
        assert theirs.shape == (1, 1500, encoder.dim)
        assert apart(outputs.numpy(), theirs[:, : outputs.size(1)]) <= 1e-3


def complete(arrays):
    """The variables of a decoder, which CTranslate2 wants before it reads an encoder."""
    dim, vocabulary, rest = 64, 51864, {}
    block = "decoder/layer_0"
    for part in ("self_attention", "attention", "ffn"):
        for kind, value in (("gamma", np.ones), ("beta", np.zeros)):
            rest[f"{block}/{part}/layer_norm/{kind}"] = value(dim, dtype=np.float32)
    shapes = {"self_attention/linear_0": 3 * dim, "self_attention/linear_1": dim}
    shapes |= {"attention/linear_0": dim, "attention/linear_1": 2 * dim}
    shapes |= {"attention/linear_2": dim, "ffn/linear_0": dim, "ffn/linear_1": dim}
    for name, rows in shapes.items():
        rest[f"{block}/{name}/weight"] = np.ones((rows, dim), dtype=np.float32)
        rest[f"{block}/{name}/bias"] = np.zeros(rows, dtype=np.float32)
    rest["decoder/layer_norm/gamma"] = np.ones(dim, dtype=np.float32)
    rest["decoder/layer_norm/beta"] = np.zeros(dim, dtype=np.float32)
    rest["decoder/embeddings/weight"] = np.ones((vocabulary, dim), dtype=np.float32)
    rest["decoder/projection/weight"] = np.ones((vocabulary, dim), dtype=np.float32)
    rest["decoder/position_encodings/encodings"] = np.zeros((448, dim), dtype=np.float32)
    flags = {"activation": 2, "alibi": 0, "pre_norm": 1, "scale_embeddings": 0}
    flags["start_from_zero_embedding"] = 0
    rest |= {f"decoder/{name}": np.int8(value) for name, value in flags.items()}
    rest |= {"decoder/num_heads": np.int16(1), "decoder/alignment_layer": np.int16(-1)}
    rest["decoder/alignment_heads"] = np.int16(1)
    return {**arrays, **rest}


@pytest.mark.parametrize("kind", ["float32", "int8", "int16"])
def test_quantized_whisper_of_ctranslate2(tmp_path, kind):
    ctranslate2 = pytest.importorskip("ctranslate2")
    arrays = complete(ctranslate2_arrays(tiny_whisper()))
    save_ctranslate2(
        tmp_path / "model.bin", arrays if kind == "float32" else quantized(arrays, kind)
    )
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "vocabulary.txt").write_text("\n".join(f"w{i}" for i in range(51864)))
    encoder = load_encoder(tmp_path, pad_seconds=30.0)
    (audio,), _ = speechlike(50000)
    outputs, features = encoded(encoder, audio)
    theirs = of_ctranslate2(ctranslate2, tmp_path, features)
    assert apart(outputs.numpy(), theirs[:, : outputs.size(1)]) <= 1e-3


def test_whisper_is_torch_s_transformer_with_norms_in_front():
    whisper = tiny_whisper()
    (audio,), _ = speechlike(20000)
    outputs, features = encoded(whisper, audio)
    x = features.transpose(1, 2)
    with torch.no_grad():
        x = nn.functional.gelu(whisper.conv2(nn.functional.gelu(whisper.conv1(x))))
        x = x.transpose(1, 2) + whisper.positions[: x.size(2)]
        for block in whisper.blocks:
            x = torch_layer(block)(x)
        torch.testing.assert_close(outputs, whisper.norm(x), atol=1e-5, rtol=1e-5)


def torch_layer(block) -> nn.Module:
    """torch's layer with a block's weights."""
    dim, feedforward = block.narrow.out_features, block.narrow.in_features
    layer = nn.TransformerEncoderLayer(
        *(dim, block.attention.heads, feedforward, 0.0, "gelu"), batch_first=True, norm_first=True
    )
    attention = block.attention
    parts = (attention.query, attention.key, attention.value)
    biases = [torch.zeros(dim) if part.bias is None else part.bias for part in parts]
    layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    layer.self_attn.in_proj_bias.copy_(torch.cat(biases))
    pairs = ((layer.self_attn.out_proj, attention.out), (layer.norm1, block.attention_norm))
    pairs += ((layer.norm2, block.feedforward_norm), (layer.linear1, block.wide))
    for theirs, ours in (*pairs, (layer.linear2, block.narrow)):
        theirs.load_state_dict(ours.state_dict())
    return layer.eval()


def slow_log_mel(samples: list[float], bins: int) -> np.ndarray:
    """The definition, with the sum of the Fourier transform, silence behind the end."""

    def mel(hertz: float) -> float:
        linear = hertz * 3 / 200
        return linear if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)

    def hertz(value: float) -> float:
        return value * 200 / 3 if value < 15 else 1000 * 6.4 ** ((value - 15) / 27)

    edges = [hertz(mel(8000) * i / (bins + 1)) for i in range(bins + 2)]
    frames = -(-len(samples) // 160)
    turns = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    rows = []
    for t in range(frames + 2):
        at = [abs(n) for n in range(160 * t - 200, 160 * t + 200)]
        frame = np.array([samples[n] if n < len(samples) else 0.0 for n in at])
        power = np.abs(turns @ (frame * window)) ** 2
        row = []
        for low, centre, high in zip(edges, edges[1:], edges[2:]):
            energy = 0.0
            for k, value in enumerate(power):
                f = 40.0 * k
                slope = min((f - low) / (centre - low), (high - f) / (high - centre))
                energy += max(0.0, slope) * 2 / (high - low) * value
            row.append(math.log10(max(energy, 1e-10)))
        rows.append(row)
    logs = np.array(rows)
    return (np.maximum(logs, logs.max() - 8)[:frames] + 4) / 4


@pytest.mark.parametrize(("count", "bins"), [(3000, 80), (1601, 128), (100, 80)])
def test_log_mel_is_as_defined(count, bins):
    audio, lengths = speechlike(count)
    found, frames = log_mel(audio, lengths, bins, 0)
    expected = slow_log_mel(audio[0].tolist(), bins)
    assert frames.tolist() == [len(expected)]
    np.testing.assert_allclose(found[0], expected, atol=1e-4)
