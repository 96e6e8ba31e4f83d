"""CTC models as TorchScript and ONNX files, which run without this package."""

from __future__ import annotations

import inspect
from pathlib import Path

import torch
from torch import Tensor, nn

from privasr_k2.am.ctc import CtcModel
from privasr_k2.am.encoders.blstm import BlstmConfig
from privasr_k2.data.features import DIMENSIONS
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import atomic_path

OPSET = 14
SHERPA_TYPE = "zipformer2_ctc"
"""What sherpa-onnx calls models from icefall's filter banks and lengths to log-probabilities."""
_INPUTS, _OUTPUTS = ["features", "lengths"], ["log_probs", "log_probs_lengths"]
_PROBE_FRAMES = 97


def to_torchscript(model: nn.Module, path: Path) -> None:
    """Write TorchScript: (features (N, T, F), lengths (N,)) -> (log_probs (N, T', C), lengths)."""
    traced = torch.jit.trace(_traceable(model), _example(model), check_trace=False)
    with atomic_path(path) as temporary:
        torch.jit.save(traced, str(temporary))


class _Scaled(nn.Module):
    def __init__(self, model: CtcModel, scale: float) -> None:
        super().__init__()
        self.model, self.scale = model, scale

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        log_probs, lengths = self.model(features, lengths)
        return log_probs * self.scale, lengths


def to_onnx(model: nn.Module, path: Path, *, scale: float = 1.0) -> None:
    """Write an ONNX file of the same signature, with N and T free.

    The metadata of a model of filter banks are those that sherpa-onnx knows it by.

    Args:
        scale: factor of the log-probabilities; a search with fixed beam is wide with a small one.
    """
    frames = {"features": {0: "N", 1: "T"}, "log_probs": {0: "N", 1: "T_out"}}
    dynamic = {**frames, "lengths": {0: "N"}, "log_probs_lengths": {0: "N"}}
    traceable = _traceable(model)
    # The default exporter of torch 2 needs a package of its own.
    has_dynamo = "dynamo" in inspect.signature(torch.onnx.export).parameters
    tracing = {"dynamo": False} if has_dynamo else {}
    with atomic_path(path) as temporary:
        torch.onnx.export(
            traceable if scale == 1.0 else _Scaled(traceable, scale).eval(),
            _example(traceable),
            str(temporary),
            opset_version=OPSET,
            input_names=_INPUTS,
            output_names=_OUTPUTS,
            dynamic_axes=dynamic,
            **tracing,
        )
        _add_metadata(temporary, metadata(traceable))


def metadata(model: CtcModel) -> dict[str, str]:
    """What an ONNX file says of a model, by sherpa-onnx's keys.

    ``model_type`` is there where the features are as many as those of kind ``fbank``.
    """
    facts = {
        "version": 1,
        "model_author": "privasr_k2",
        "feature_dim": model.feature_dim,
        "vocab_size": model.num_tokens,
        "subsampling_factor": model.subsampling,
    }
    if model.feature_dim == DIMENSIONS["fbank"]:
        facts["model_type"] = SHERPA_TYPE
    return {name: str(value) for name, value in facts.items()}


def _add_metadata(path: Path, values: dict[str, str]) -> None:
    import onnx

    proto = onnx.load(str(path))
    onnx.helper.set_model_props(proto, values)
    onnx.save(proto, str(path))


def _traceable(model: nn.Module) -> CtcModel:
    if not isinstance(model, CtcModel):
        way_out = "train one, or use the file that was imported"
        kind = type(model).__name__
        raise ConfigError("export", "a model of kind ctc that train_am wrote", kind, way_out)
    settings = model.spec.encoder.settings
    if isinstance(settings, BlstmConfig) and settings.chunk > 0:
        chunk = f"encoder.blstm.chunk {settings.chunk}"
        way_out = "export a whole-utterance BLSTM (chunk 0), a TDNN or a Conformer"
        raise ConfigError("export", "an encoder without a loop over chunks", chunk, way_out)
    return model.cpu().eval()


def _example(model: nn.Module) -> tuple[Tensor, Tensor]:
    return torch.zeros(2, _PROBE_FRAMES, int(model.feature_dim)), torch.tensor([_PROBE_FRAMES, 61])
