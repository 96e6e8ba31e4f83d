"""Models in the forms that icefall's scripts export."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Dict, Optional  # noqa: UP035

import torch
from torch import Tensor, nn

# torch.jit.script of torch 1.13 knows no other spelling.
Maybe = Optional[Tensor]  # noqa: UP045
Supervisions = Optional[Dict[str, Tensor]]  # noqa: UP006, UP045


class EncoderModel(nn.Module):
    """What zipformer's export puts into the place of ``encoder``."""

    def __init__(self, encoder_embed: nn.Module, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder_embed, self.encoder = encoder_embed, encoder

    def forward(self, features: Tensor, feature_lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.encoder_embed(features, feature_lengths)
        mask = torch.arange(x.size(1)) >= lengths.unsqueeze(1)
        x, lengths = self.encoder(x.permute(1, 0, 2), lengths, mask)
        return x.permute(1, 0, 2), lengths


class Embed(nn.Module):
    """(N, T, 80) to (N, T // 4, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(80, 8)

    def forward(self, x: Tensor, x_lens: Tensor) -> tuple[Tensor, Tensor]:
        kept = torch.div(x_lens, 4, rounding_mode="floor")
        return self.linear(x[:, 3::4]), kept


class Encoder(nn.Module):
    """(T, N, 8) to the same; padding does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(
        self, x: Tensor, x_lens: Tensor, src_key_padding_mask: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        if src_key_padding_mask is not None:
            x = x.masked_fill(src_key_padding_mask.t().unsqueeze(2), 0.0)
        sums = x.sum(dim=0, keepdim=True) / x_lens.unsqueeze(1)
        return self.linear(x + sums), x_lens


class AsrModel(nn.Module):
    """As icefall's: its ``forward`` is for training alone."""

    def __init__(self, num_tokens: int = 4) -> None:
        super().__init__()
        self.encoder_embed, self.encoder = Embed(), Encoder()
        layers = (nn.Dropout(0.1), nn.Linear(8, num_tokens), nn.LogSoftmax(dim=-1))
        self.ctc_output = nn.Sequential(*layers)

    @torch.jit.ignore
    def forward(self, x: Tensor, x_lens: Tensor, y: Any) -> Any:
        raise AssertionError("a loss")


class Together(nn.Module):
    """What ``export-onnx-ctc.py`` traces."""

    def __init__(self, model: AsrModel) -> None:
        super().__init__()
        self.encoder = EncoderModel(model.encoder_embed, model.encoder)
        self.ctc_output = model.ctc_output

    def forward(self, x: Tensor, x_lens: Tensor) -> tuple[Tensor, Tensor]:
        encoded, lengths = self.encoder(x, x_lens)
        return self.ctc_output(encoded), lengths


class Streaming(nn.Module):
    """What an export with ``--causal 1`` has in the place of ``encoder``."""

    def forward(
        self, features: Tensor, feature_lengths: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        return features, feature_lengths, states


class ConformerCtc(nn.Module):
    """As ``conformer_ctc``: of features and supervisions."""

    def __init__(self, model: AsrModel) -> None:
        super().__init__()
        self.together = Together(model)

    def forward(self, x: Tensor, supervision: Supervisions = None) -> tuple[Tensor, Tensor, Maybe]:
        lengths = torch.full([x.size(0)], x.size(1))
        if supervision is not None:
            rows = supervision["sequence_idx"].long()
            lengths[rows] = (supervision["start_frame"] + supervision["num_frames"]).long()
        log_probs, kept = self.together(x, lengths)
        mask = torch.arange(log_probs.size(1)) >= kept.unsqueeze(1)
        return log_probs, log_probs.permute(1, 0, 2), mask


def write_export(path: Path, model: AsrModel, form: str) -> None:
    """An export in one of icefall's forms: ``zipformer``, ``parts``, ``conformer`` or ``onnx``."""
    together = Together(model).eval()
    if form == "onnx":
        example = (torch.zeros(1, 100, 80), torch.tensor([100]))
        axes: dict[str, Any] = {name: {0: "N", 1: "T"} for name in ("x", "log_probs")}
        axes |= {name: {0: "N"} for name in ("x_lens", "log_probs_len")}
        has_dynamo = "dynamo" in inspect.signature(torch.onnx.export).parameters
        names = {"input_names": ["x", "x_lens"], "output_names": ["log_probs", "log_probs_len"]}
        options = {"opset_version": 13, "dynamic_axes": axes, **names}
        options |= {"dynamo": False} if has_dynamo else {}
        torch.onnx.export(torch.jit.trace(together, example), example, str(path), **options)
        return
    if form == "zipformer":
        model.encoder = together.encoder
    if form == "streaming":
        model.encoder = Streaming()
    whole = ConformerCtc(model) if form == "conformer" else model
    torch.jit.script(whole.eval()).save(str(path))
