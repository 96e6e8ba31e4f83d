"""ONNX and TorchScript files as frozen encoders: inputs of every kind, batches, refusals."""

from __future__ import annotations

import inspect
import json

import pytest
import torch
from torch import nn

from privasr_k2.data.features import extract
from privasr_k2.encoders.chunks import ChunkConfig, encode_long
from privasr_k2.encoders.loading import load_encoder
from privasr_k2.errors import ConfigError, DataError
from tests.support.tiny_encoders import speechlike, tiny_whisper

LENGTHS = (20000, 16000, 9999)


class Zipformer(nn.Module):
    """As icefall's: filter banks and lengths, of which padding changes the last frames."""

    def __init__(self, dim: int = 80) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.Conv1d(dim, 6, 9, stride=4)

    def forward(self, x: torch.Tensor, x_lens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        outputs = torch.relu(self.conv(x.transpose(1, 2)).transpose(1, 2))
        return outputs, torch.div(x_lens - 9, 4, rounding_mode="floor") + 1


class Wrapped(nn.Module):
    """As ``export.py --jit 1`` writes it: the encoder is a part, the whole is not called."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Zipformer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Waves(nn.Module):
    """A waveform, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.conv = nn.Conv1d(1, 5, 400, stride=320)

    def forward(self, input_values: torch.Tensor) -> torch.Tensor:
        return self.conv(input_values.unsqueeze(1)).transpose(1, 2)


class Masked(Waves):
    """A waveform with a mask."""

    def forward(self, input_values: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return super().forward(input_values * attention_mask.to(input_values.dtype))


class Spectra(nn.Module):
    """Whisper's encoder over (N, 80, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.whisper = tiny_whisper()
        self.whisper.pad_seconds = 30.0

    def forward(self, input_features: torch.Tensor) -> torch.Tensor:
        lengths = torch.tensor([3000])
        return self.whisper(input_features.transpose(1, 2), lengths)[0]


def to_onnx(path, module, example, open_sizes):
    """Export; ``open_sizes``: the dimensions of each input that stay open."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    names = list(inspect.signature(module.forward).parameters)
    tracing = (
        {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    )
    axes = {name: {d: f"{name}_{d}" for d in sizes} for name, sizes in zip(names, open_sizes)}
    options = {"opset_version": 14, "input_names": names, "dynamic_axes": axes, **tracing}
    torch.onnx.export(module.eval(), example, str(path), **options)
    return path


def encoded(encoder, *lengths):
    return encoder(*encoder.features(*speechlike(*lengths)))


def expected_of(zipformer):
    """(T', D) of each utterance alone."""
    audio, _ = speechlike(*LENGTHS)
    rows = []
    for row, length in zip(audio, LENGTHS):
        fbank = torch.from_numpy(extract(row[:length].numpy(), 16000, "fbank"))[None]
        rows.append(zipformer(fbank, torch.tensor([fbank.size(1)]))[0][0])
    return rows


def check(encoder, rows, frame_shift):
    with torch.no_grad():
        outputs, frames = encoded(encoder, *LENGTHS)
    assert frames.tolist() == [len(row) for row in rows]
    for output, row in zip(outputs, rows):
        torch.testing.assert_close(output[: len(row)], row, atol=1e-5, rtol=1e-5)
        assert not output[len(row) :].any()
    assert encoder.frame_shift == pytest.approx(frame_shift) and not encoder.trainable
    assert (encoder.dim, encoder.num_layers) == (rows[0].size(1), 0)


@pytest.mark.parametrize("make", [Zipformer, Wrapped])
def test_torchscript_of_icefall(tmp_path, make):
    module = make()
    torch.jit.save(torch.jit.script(module), str(tmp_path / "jit_script.pt"))
    with torch.no_grad():
        check(load_encoder(tmp_path), expected_of(getattr(module, "encoder", module)), 0.04)


def test_onnx_of_icefall(tmp_path):
    zipformer = Zipformer()
    example = (torch.zeros(1, 100, 80), torch.tensor([100]))
    path = to_onnx(tmp_path / "encoder.onnx", zipformer, example, [(0, 1), (0,)])
    encoder = load_encoder(path)
    with torch.no_grad():
        check(encoder, expected_of(zipformer), 0.04)
    assert encoder.name == "encoder"
    (audio,), _ = speechlike(40000)
    whole, _ = encoded(encoder, 40000)
    parts = encode_long(encoder, audio, ChunkConfig(seconds=1.0, overlap=0.4, batch=1))
    assert parts.shape == whole[0].shape
    (one, *_), _ = encoder(*encoder.features(*speechlike(20000)), layers=[0])
    assert one.shape == (1, 30, 6)
    with pytest.raises(ConfigError, match="layers from 0 to 0"):
        encoder(*encoder.features(*speechlike(20000)), layers=[1])


@pytest.mark.parametrize("make", [Waves, Masked])
def test_onnx_of_waveforms(tmp_path, make):
    waves, audio = make(), speechlike(*LENGTHS)[0]
    example = (torch.zeros(1, 9000),) + (
        (torch.ones(1, 9000, dtype=torch.int64),) * (make is Masked)
    )
    to_onnx(tmp_path / "model.onnx", waves, example, [(0, 1)] * 2)
    with torch.no_grad():
        plain = Waves()
        rows = [plain(row[None, :length])[0] for row, length in zip(audio, LENGTHS)]
        check(load_encoder(tmp_path), rows, 0.02)


@pytest.mark.parametrize("is_open", [False, True])
def test_onnx_of_whisper(tmp_path, is_open):
    spectra = Spectra()
    sizes = [(0, 1, 2)] if is_open else [(0,)]
    to_onnx(tmp_path / "model.onnx", spectra, (torch.zeros(1, 80, 3000),), sizes)
    if is_open:
        config = {"model_type": "whisper", "num_mel_bins": 80}
        (tmp_path / "config.json").write_text(json.dumps(config))
    encoder = load_encoder(tmp_path)
    with torch.no_grad():
        expected, frames = encoded(spectra.whisper, *LENGTHS)
        rows = [row[: int(num)] for row, num in zip(expected, frames)]
        check(encoder, rows, 0.02)
    assert encoder.max_seconds == 30.0
    with pytest.raises(DataError, match="at most 30 s"):
        encoder.features(torch.zeros(1, 480001), torch.tensor([480001]))


class Three(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + y + z


class Flat(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_other_signatures_are_refused(tmp_path):
    wide = (torch.zeros(1, 100, 40), torch.tensor([100]))
    cases = (
        (Zipformer(40), wide, [(0, 1), (0,)]),
        (Three(), (torch.zeros(1, 9),) * 3, [(0, 1)] * 3),
        (Flat(), (torch.zeros(1, 9),), [(0, 1)]),
        (Flat(), (torch.zeros(9),), [(0,)]),
    )
    for number, (module, example, sizes) in enumerate(cases):
        path = to_onnx(tmp_path / f"{number}.onnx", module, example, sizes)
        with pytest.raises(DataError, match=f"{number}.onnx: expected an encoder of a waveform"):
            load_encoder(path)
    torch.jit.save(torch.jit.script(Flat()), str(tmp_path / "f.pt"))
    with pytest.raises(DataError, match=r"f\.pt: expected an encoder"):
        load_encoder(tmp_path / "f.pt")


def test_audio_without_a_frame_is_refused(tmp_path):
    torch.jit.save(torch.jit.script(Zipformer()), str(tmp_path / "z.pt"))
    encoder = load_encoder(tmp_path / "z.pt")
    with pytest.raises(DataError, match="audio for a frame"):
        encoder.features(*speechlike(9000, 70))
    with pytest.raises(DataError, match="an encoder of a waveform"):
        encoded(encoder, 400)
