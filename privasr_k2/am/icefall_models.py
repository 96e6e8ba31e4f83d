"""TorchScript models of icefall's ``export.py --jit 1`` as CTC models of features and lengths.

Most have no ``forward`` of their own: :func:`ctc_of` runs ``encoder`` and ``ctc_output``. That of
``conformer_ctc`` reads lhotse's supervisions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from privasr_k2.errors import DataError

Ctc = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
_EXPECTED = "forward, or icefall's encoder and ctc_output"


def ctc_of(module: Any, path: Path) -> Ctc:
    """What maps (features (N, T, F), lengths (N,)) to (log_probs (N, T', C), lengths (N,)).

    The module itself, if it has ``forward``. Else ``encoder`` and ``ctc_output``; where ``encoder``
    takes a padding mask, ``encoder_embed`` comes before it, and both swap N and T.

    Raises:
        DataError: a model without CTC, a streaming one, or other parts.
    """
    if "forward" in module._c._method_names():  # torch.jit.ignore leaves it out
        takes_supervisions = any("Dict" in kind for kind in _inputs(module))
        return _of_supervisions(module) if takes_supervisions else module
    encoder, output = getattr(module, "encoder", None), getattr(module, "ctc_output", None)
    if encoder is None or output is None:
        has = " ".join(name for name, _ in module.named_children()) or "nothing"
        way_out = "export a model that was trained with CTC (--use-ctc 1)"
        raise DataError(path, _EXPECTED, has, way_out)
    kinds = _inputs(encoder)
    if any(kind.startswith("List") for kind in kinds):
        way_out = "export the model without --causal 1"
        raise DataError(path, "a model that reads whole utterances", "a streaming one", way_out)
    return joined(encoder, output, getattr(module, "encoder_embed", None), len(kinds), path)


def joined(encoder: Any, output: Any, embed: Any, inputs: int, path: Path) -> nn.Module:
    """Encoder and CTC output as one module.

    Args:
        embed: comes before an encoder that takes a padding mask.
        inputs: of the encoder: features and lengths, and maybe a mask.

    Raises:
        DataError: an encoder of another form.
    """
    if inputs == 2:
        return _Whole(encoder, output)
    if inputs != 3 or embed is None:
        found = f"an encoder of {inputs} inputs"
        raise DataError(path, "icefall's encoder", found, "export it with icefall's export.py")
    return _InParts(embed, encoder, output)


class _Whole(nn.Module):
    def __init__(self, encoder: nn.Module, output: nn.Module) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        encoded = self.encoder(features, lengths)
        return self.output(encoded[0]), encoded[1]


class _InParts(nn.Module):
    """The encoder reads (T, N, C) and a mask of the padding."""

    def __init__(self, embed: nn.Module, encoder: nn.Module, output: nn.Module) -> None:
        super().__init__()
        self.embed, self.encoder, self.output = embed, encoder, output

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        embedded, kept = self.embed(features, lengths)
        padding = torch.arange(embedded.size(1), device=kept.device) >= kept.unsqueeze(1)
        encoded = self.encoder(embedded.transpose(0, 1), kept, padding)
        return self.output(encoded[0].transpose(0, 1)), encoded[1]


def _inputs(module: Any) -> list[str]:
    """The types of what ``forward`` takes."""
    return [str(argument.type) for argument in module.forward.schema.arguments][1:]


def _of_supervisions(module: Any) -> Ctc:
    def run(features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(lengths), dtype=torch.int32)
        segments = {"sequence_idx": rows, "start_frame": torch.zeros_like(rows)}
        segments["num_frames"] = lengths.cpu().int()
        log_probs, _, padding = module(features, segments)
        return log_probs, (~padding).sum(dim=1)

    return run
