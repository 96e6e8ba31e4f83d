"""CTC models trained elsewhere, for example with icefall, and exported as TorchScript or ONNX.

They map (features (N, T, F) float32, lengths (N,) int64) to (log_probs (N, T', C), lengths (N,)).
Of icefall's exports without such a ``forward``, :mod:`privasr_k2.am.icefall_models` runs the parts.
A TorchScript file is a program: import only files that you trust. An ONNX file names operations.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privasr_k2 import config
from privasr_k2.am.files import SPEC, TOKENS
from privasr_k2.am.icefall_models import ctc_of
from privasr_k2.encoders.programs import Expected, Onnx, TorchScript
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path
from privasr_k2.graph.lang import read_tokens

# Tried in this order where the file does not say how wide its features are.
FEATURE_DIMS = (80, 40, 13, 23, 26, 39, 64, 120, 128, 160, 240)
_PROBE_FRAMES = 480
_SIGNATURE = "a CTC model (features (N, T, F), lengths) -> (log_probs (N, T', C), lengths)"
_WAY_OUT = "export it as icefall's export-onnx-ctc.py does, or with torch.jit.script"
_WEIGHTS = f"{_WAY_OUT}; weights need icefall's folder of their model: --raw-model-code, --am-code"
_EXPECTED = Expected(_SIGNATURE, _WAY_OUT, _WEIGHTS)


@dataclass(frozen=True)
class ExportedSpec:
    """The content of ``model.yaml`` for a model trained elsewhere.

    Attributes:
        kind: ``foreign``.
        file: ``model.pt`` (TorchScript) or ``model.onnx``, in the same folder.
        subsampling: input frames per output frame, as measured.
    """

    kind: str
    file: str
    feature_dim: int
    num_tokens: int
    subsampling: int


class ExportedModel(nn.Module):
    """A model trained elsewhere, with the interface of :class:`privasr_k2.am.ctc.CtcModel`."""

    ctc_topology = None  # its file does not say

    def __init__(self, path: Path, spec: ExportedSpec) -> None:
        super().__init__()
        self.feature_dim, self.num_tokens = spec.feature_dim, spec.num_tokens
        self.subsampling = spec.subsampling
        self.tokens: list[str] | None = None
        self._run = _open(path)

    @torch.no_grad()
    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return self._run(features, lengths)


def open_exported(folder: Path, spec: ExportedSpec) -> ExportedModel:
    """Open the model of a folder that :func:`import_exported` wrote."""
    return ExportedModel(folder / spec.file, spec)


def import_exported(model: Path, tokens: Path, folder: Path) -> ExportedSpec:
    """Copy an exported model and its tokens into a folder that ``load_model`` reads.

    Raises:
        DataError: not a TorchScript or ONNX file, another signature, or other tokens than outputs.
    """
    run = _open(model)
    feature_dim, log_probs, lengths = _probe(model, run)
    spec = ExportedSpec(
        kind="foreign",
        file=f"model{model.suffix}",
        feature_dim=feature_dim,
        num_tokens=log_probs.size(2),
        subsampling=max(1, round(_PROBE_FRAMES / int(lengths[0]))),
    )
    names = read_tokens(tokens)
    if len(names) != spec.num_tokens:
        expected = f"{spec.num_tokens} tokens, the outputs of {model}"
        way_out = "give the tokens.txt of the model's lang folder"
        raise DataError(tokens, expected, str(len(names)), way_out)
    for source, name in ((model, spec.file), (tokens, TOKENS)):
        with atomic_path(folder / name) as temporary:
            shutil.copyfile(source, temporary)
    config.save(spec, folder / SPEC)
    return spec


def _probe(path: Path, run: Any) -> tuple[int, Tensor, Tensor]:
    """The number of features, and the output for ``_PROBE_FRAMES`` frames of zeros."""
    problems = []
    for feature_dim in FEATURE_DIMS:
        try:
            zeros = torch.zeros(1, _PROBE_FRAMES, feature_dim)
            log_probs, lengths = run(zeros, torch.tensor([_PROBE_FRAMES]))
        except DataError as error:
            problems.append(error.found)
            continue
        normalized = log_probs.ndim == 3 and torch.allclose(
            log_probs.logsumexp(2), torch.zeros(()), atol=1e-3
        )
        if not normalized or lengths.shape != (1,) or not 0 < int(lengths[0]) <= log_probs.size(1):
            shapes = f"outputs of shapes {list(log_probs.shape)} and {list(lengths.shape)}"
            found = f"{shapes}, whose probabilities do not sum to 1 or whose lengths do not fit"
            raise DataError(path, _SIGNATURE, found, _WAY_OUT)
        return feature_dim, log_probs, lengths
    failed = f"an error with each of {FEATURE_DIMS} features: {problems[0]}"
    raise DataError(path, _SIGNATURE, failed, _WAY_OUT)


def _open(path: Path) -> Any:
    if not path.is_file():
        raise DataError(path, "a TorchScript or ONNX file", "no such file", "correct the name")
    if path.suffix == ".onnx":
        return _CtcOnnx(path)
    if path.suffix in (".pt", ".pth", ".jit"):
        return TorchScript(path, _EXPECTED, choose=lambda module: ctc_of(module, path))
    expected, way_out = "a name that ends in .onnx or .pt", "export as TorchScript or ONNX"
    raise DataError(path, expected, repr(path.suffix), way_out)


class _CtcOnnx:
    def __init__(self, path: Path) -> None:
        self._program = Onnx(path, _EXPECTED)
        self._outputs = self._program.outputs[:2]
        if len(self._program.inputs) != 2 or len(self._outputs) != 2:
            inputs = [node.name for node in self._program.inputs]
            raise self._program.refused(f"inputs {inputs}, outputs {self._outputs}")

    def __call__(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        values = (features.cpu().numpy().astype(np.float32), lengths.cpu().numpy().astype(np.int64))
        log_probs, kept = self._program.run(values, self._outputs)
        return torch.from_numpy(log_probs).to(features.device), torch.from_numpy(kept).to(lengths)
