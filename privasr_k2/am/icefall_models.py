"""TorchScript models of icefall's ``export.py --jit 1`` as CTC models of features and lengths.

Most have no ``forward`` of their own: :func:`ctc_of` runs ``encoder`` and ``ctc_output``. That of
``conformer_ctc`` reads lhotse's supervisions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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
    if len(kinds) == 2:
        return lambda features, lengths: _joined(output, *encoder(features, lengths)[:2])
    embed = getattr(module, "encoder_embed", None)
    if len(kinds) != 3 or embed is None:
        found = f"an encoder of {len(kinds)} inputs"
        raise DataError(path, "icefall's encoder", found, "export it with icefall's export.py")

    def in_parts(features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        embedded, kept = embed(features, lengths)
        padding = torch.arange(embedded.size(1), device=kept.device) >= kept.unsqueeze(1)
        encoded, kept = encoder(embedded.transpose(0, 1), kept, padding)[:2]
        return _joined(output, encoded.transpose(0, 1), kept)

    return in_parts


def _joined(output: Any, encoded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return output(encoded), lengths


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
