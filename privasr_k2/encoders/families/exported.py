"""Frozen encoders: ONNX files of any source, and TorchScript files as icefall exports them.

An ONNX file takes a waveform (1, S), Kaldi's filter banks (1, T, 80) or Whisper's log-mel spectra
(1, 80, T). A second input is lengths (1,) or a mask (1, T). Its first output is (1, T', D); a
second, of whole numbers (1,), is the length. A Zipformer of icefall, exported by
``export-onnx.py`` or by ``export.py --jit 1``, takes filter banks and lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from privasr_k2.data.features import DIMENSIONS, FRAME_SHIFT, extract
from privasr_k2.encoders.common import (
    FAMILIES,
    SAMPLE_RATE,
    Family,
    Kept,
    PublicEncoder,
    Weights,
    checked_audio,
)
from privasr_k2.encoders.log_mel import HOP, log_mel
from privasr_k2.encoders.programs import Expected, Input, Onnx, TorchScript
from privasr_k2.errors import DataError

_EXPECTED = Expected(
    "an encoder of a waveform (N, S), filter banks (N, T, 80) or log-mel spectra (N, 80, T)",
    "export the encoder alone, not streaming, with names and sizes as docs/encoders.md says",
)
_WHISPER_FRAMES = 3000
_PROBE_SECONDS = 4.8

#: (1, T, F) of one utterance to (1, T', D), and the true T'.
Run = Callable[[Tensor], tuple[Tensor, int]]


class Exported(PublicEncoder):
    """An encoder that is a program: no gradients, no layers but its output.

    Utterances are read one by one, because not every program masks what is behind an end.

    Args:
        kind: ``waveform``, ``fbank`` or ``log_mel``.
        bins: of ``log_mel``.
        fixed: frames of every input of ``log_mel``, 0 where the length is free.
    """

    trainable = False
    num_layers = 0

    def __init__(self, weights: Weights, run: Run, kind: str, bins: int, fixed: int) -> None:
        super().__init__()
        self.name, self._run, self._kind = weights.path.stem, run, kind
        self._bins, self._fixed = bins, fixed
        if fixed:
            self.max_seconds = fixed * FRAME_SHIFT
        self.dim, self.frame_shift = self._probed()

    def features(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The input of its kind; spectra of a fixed number of frames hold silence at their end."""
        audio = checked_audio(self, audio, lengths)
        if self._kind == "waveform":
            return audio.unsqueeze(2), lengths
        if self._kind == "log_mel":
            return log_mel(audio, lengths, self._bins, self._fixed * HOP)
        signals = [row[: int(num)].cpu().numpy() for row, num in zip(audio, lengths)]
        rows = [torch.from_numpy(extract(signal, SAMPLE_RATE, "fbank")) for signal in signals]
        frames = torch.tensor([len(row) for row in rows], device=lengths.device)
        if int(frames.min()) == 0:
            found = f"{int(lengths.min())} samples, which give none"
            raise DataError(self.name, "audio for a frame", found, "leave the utterance out")
        return pad_sequence(rows, batch_first=True).to(audio.device), frames

    @torch.no_grad()
    def forward(
        self, inputs: Tensor, lengths: Tensor, *, layers: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        kept, rows = Kept(self, layers), []
        for row, length in zip(inputs, lengths.tolist()):
            given = row if self._fixed else row[:length]
            outputs, frames = self._run(given.unsqueeze(0))
            if self._fixed:  # the silence behind the end
                frames = min(frames, -(-length * frames // self._fixed))
            rows.append(outputs[0, :frames])
        out_lengths = torch.tensor([len(row) for row in rows], device=lengths.device)
        kept.keep(0, pad_sequence(rows, batch_first=True).to(inputs.device))
        return kept.given(out_lengths), out_lengths

    def _probed(self) -> tuple[int, float]:
        """The number of channels, and seconds a frame: from silence of two lengths."""
        with torch.no_grad():
            if self._fixed:
                outputs, frames = self._run(torch.zeros(1, self._fixed, self._bins))
                return outputs.size(2), self._fixed * FRAME_SHIFT / frames
            shift = 1.0 / SAMPLE_RATE if self._kind == "waveform" else FRAME_SHIFT
            size = 1 if self._kind == "waveform" else self._bins
            num = round(_PROBE_SECONDS / shift)
            outputs, frames = self._run(torch.zeros(1, num, size))
            _, more = self._run(torch.zeros(1, 2 * num, size))
        return outputs.size(2), round(num / max(1, more - frames)) * shift


def _onnx(weights: Weights) -> Exported:
    program = Onnx(weights.path, _EXPECTED)
    names = [f"{node.name} {list(node.shape)}" for node in program.inputs]
    if not 1 <= len(program.inputs) <= 2 or len(program.inputs[-1].shape) not in (1, 2, 3):
        raise program.refused(f"inputs {', '.join(names)}")
    kind, bins, fixed = _kind(program.inputs[0], weights, program)
    outputs = program.outputs[:2]

    def run(inputs: Tensor) -> tuple[Tensor, int]:
        value = inputs[:, :, 0] if kind == "waveform" else inputs
        value = value.transpose(1, 2) if kind == "log_mel" else value
        values = [np.ascontiguousarray(value.cpu().numpy(), dtype=np.float32)]
        if len(program.inputs) == 2:
            values.append(_second(program.inputs[1], inputs.size(1)))
        found = program.run(values, outputs)
        if found[0].ndim != 3:
            raise program.refused(f"an output of shape {list(found[0].shape)}")
        frames = found[0].shape[1]
        if len(found) == 2 and found[1].shape == (1,) and found[1].dtype.kind in "iu":
            frames = min(frames, int(found[1][0]))
        return torch.from_numpy(np.asarray(found[0], dtype=np.float32)), frames

    return Exported(weights, run, kind, bins, fixed)


def _kind(node: Input, weights: Weights, program: Onnx) -> tuple[str, int, int]:
    """The kind of an input, its bins, and its number of frames where that is fixed."""
    fbank = DIMENSIONS["fbank"]
    if len(node.shape) == 2:
        return "waveform", 1, 0
    if len(node.shape) == 3:
        _, second, third = node.shape
        if second in (80, 128) and third != fbank:
            return "log_mel", second, third or 0
        if weights.config.get("model_type") == "whisper":
            stated = weights.config.get("num_mel_bins")
            return "log_mel", stated if isinstance(stated, int) else 80, _WHISPER_FRAMES
        if third in (fbank, None):
            return "fbank", fbank, 0
    raise program.refused(f"input {node.name} of shape {list(node.shape)}")


def _second(node: Input, frames: int) -> np.ndarray:
    dtype = np.int32 if "int32" in node.kind else np.int64
    if len(node.shape) == 1:
        return np.array([frames], dtype=dtype)
    return np.ones((1, frames), dtype=dtype)


def _torchscript(weights: Weights) -> Exported:
    program = TorchScript(weights.path, _EXPECTED, part="encoder")

    def run(inputs: Tensor) -> tuple[Tensor, int]:
        outputs, lengths = program(inputs.cpu(), torch.tensor([inputs.size(1)]))
        if outputs.ndim != 3 or lengths.shape != (1,):
            found = f"outputs of shapes {list(outputs.shape)} and {list(lengths.shape)}"
            raise DataError(weights.path, _EXPECTED.signature, found, _EXPECTED.way_out)
        return outputs, int(lengths[0])

    return Exported(weights, run, "fbank", DIMENSIONS["fbank"], 0)


FAMILIES.add("onnx", Family(lambda weights: weights.format == "onnx", _onnx))
FAMILIES.add("torchscript", Family(lambda weights: weights.format == "torchscript", _torchscript))
