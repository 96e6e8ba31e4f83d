"""A finished model's folder, without pickles: ``model.{yaml,safetensors}``, ``tokens.txt``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from privasr_k2 import config as configuration
from privasr_k2.am.exported import ExportedModel
from privasr_k2.am.files import SPEC, TOKENS, WEIGHTS
from privasr_k2.am.kinds import KINDS, build
from privasr_k2.am.model import AcousticModel
from privasr_k2.am.sequence import Recognizer
from privasr_k2.encoders.common import UpperLayers
from privasr_k2.encoders.upper import UpperSpec
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text
from privasr_k2.graph.lang import read_tokens, symbols_text
from privasr_k2.training.trainable import merged_adapters
from privasr_k2.training.weights import fill, load_tensors, read_header, save_tensors

_UNTRAINED = {"untrained": True}

#: Layers of a public encoder, with what ``model.yaml`` says of them.
Upper = tuple[UpperSpec, UpperLayers]


def save_model(
    folder: Path,
    spec: Any,
    weights: Mapping[str, Tensor],
    tokens: Sequence[str] | None,
    *,
    untrained: bool = False,
) -> None:
    """Write the files that :func:`load_model` reads; ``model.safetensors`` last.

    Args:
        weights: of the model; adapters become part of the weights that they were added to.
        untrained: there was nothing to learn from, and the weights are those that it began with.
    """
    if tokens is not None:
        write_text(folder / TOKENS, symbols_text(tokens))
    configuration.save(spec, folder / SPEC)
    save_tensors(folder / WEIGHTS, merged_adapters(weights), _UNTRAINED if untrained else None)


def is_untrained(folder: Path) -> bool:
    """Whether :func:`save_model` was told so."""
    return bool(read_header(folder / WEIGHTS) == _UNTRAINED)


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> nn.Module:
    """The CTC model of a folder of ``train_am`` or ``import_external``, ready to score frames.

    Returns:
        a model with ``log_probs(features, lengths) -> (log_probs, lengths)``, of shapes (N, T, F)
        float32, (N,) int64, (N, T', C) float32 and (N,) int64, and with ``num_tokens``, ``tokens``,
        ``subsampling`` and ``feature_dim``.

    Raises:
        DataError: a file is missing or damaged, weights that do not fit ``model.yaml``, or a model
            without outputs of CTC.
    """
    model = _load(Path(folder), device)
    if not hasattr(model, "log_probs"):
        kind = type(model).__name__
        way_out = "decode it with section decode_e2e of conf/pate.yaml"
        raise DataError(folder, "a model with outputs of CTC", kind, way_out)
    return model


def load_recognizer(folder: str | Path, device: torch.device | str = "cpu") -> Recognizer:
    """The acoustic model of a folder that ``train_am`` wrote, to be searched without a graph.

    Raises:
        DataError: as :func:`load_model`; or a model that was brought from elsewhere.
    """
    model = _load(Path(folder), device)
    if isinstance(model, ExportedModel):
        raise DataError(folder, "a model that train_am wrote", "an exported one", "use a graph")
    return model  # type: ignore[return-value]


def continue_model(
    folder: Path, spec: Any, tokens: Sequence[str], upper: Upper | None = None
) -> AcousticModel:
    """A folder's weights and normalization in a model of ``spec``, to train it further.

    Args:
        upper: layers of a public encoder that are put between the features and a model that was
            trained on the encoder's outputs; None: those of the folder's model, if it has any.

    Raises:
        DataError: as :func:`load_model`; or another kind, size or tokens, or a model that has
            layers of a public encoder already.
    """
    first = _load(folder, "cpu")
    if isinstance(first, ExportedModel) or first.spec.kind != spec.kind:
        kind = "foreign" if isinstance(first, ExportedModel) else first.spec.kind
        way_out = "take the YAML file that it was trained with"
        raise DataError(folder / SPEC, f"kind: {spec.kind}", kind, way_out)
    if list(first.tokens or ()) != list(tokens):
        way_out = "train the first model with it, too"
        raise DataError(folder / TOKENS, "the tokens of the lang folder", "others", way_out)
    public, weights = first.spec.public, first.state_dict()
    if upper is not None:
        if public is not None:
            expected, found = "a model on the outputs of a public encoder", "one with its layers"
            raise DataError(folder, expected, found, "leave the public encoder out: it is in there")
        public, layers = upper
        weights |= {f"public.{name}": value for name, value in layers.state_dict().items()}
    model: AcousticModel = KINDS[spec.kind].make(replace(spec, public=public))
    fill(model, weights, folder / WEIGHTS)
    return model


def _load(folder: Path, device: torch.device | str) -> nn.Module:
    if not (folder / SPEC).is_file():
        way_out = "train it with train_am, or import it with import_external"
        raise DataError(folder / SPEC, "an acoustic model", "no such file", way_out)
    model = build(folder, folder / SPEC)
    if not isinstance(model, ExportedModel):  # an exported file holds its own weights
        fill(model, load_tensors(folder / WEIGHTS), folder / WEIGHTS)
    if (folder / TOKENS).is_file():
        model.tokens = read_tokens(folder / TOKENS)
        if len(model.tokens) != model.num_tokens:
            expected = f"the {model.num_tokens} outputs of the model"
            number = f"{len(model.tokens)} tokens"
            way_out = "use the tokens.txt that the model was trained with"
            raise DataError(folder / TOKENS, expected, number, way_out)
    return model.to(device).eval()
