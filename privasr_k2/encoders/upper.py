"""The upper layers of a public encoder as part of a model that is trained.

Layer ``first`` is frozen and its outputs are the model's features, stored once. What lies above it
runs in the model, so that all of it, or parts, can be trained. With ``first`` 0 only the
convolutions are frozen, as is usual when wav2vec 2.0 is fine-tuned.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2 import config
from privasr_k2.constraints import Checked, Natural, NotNegative, Positive
from privasr_k2.data.features import ABOUT, ENCODER, PUBLIC_ENCODER
from privasr_k2.encoders.chunks import ChunkConfig
from privasr_k2.encoders.common import FAMILIES, PublicEncoder, UpperLayers, checked_layers
from privasr_k2.encoders.loading import describe, load_encoder
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_yaml


@dataclass(frozen=True)
class UpperSpec(Checked):
    """What ``model.yaml`` says of them: all that is needed to build them, besides their weights.

    Attributes:
        family: one of :data:`privasr_k2.encoders.common.FAMILIES`.
        first: the layer whose outputs are the features.
        chunk_seconds, chunk_overlap: in which the features were computed, and the layers read.
        sizes: of the whole encoder, as its family has them.
        origin: what :func:`privasr_k2.encoders.loading.describe` says of the encoder.
    """

    family: str
    first: Natural
    chunk_seconds: Positive
    chunk_overlap: NotNegative
    sizes: dict[str, Any]
    origin: dict[str, str]


def upper_spec(encoder: PublicEncoder, first: int, chunks: ChunkConfig) -> UpperSpec:
    """The spec of an encoder's layers above ``first``, whose outputs were read in ``chunks``.

    Raises:
        ConfigError: an encoder that cannot be trained, or no layer above ``first``.
    """
    if encoder.sizes is None:
        expected, way_out = "an encoder that can be trained", "take Whisper or wav2vec 2.0"
        raise ConfigError(encoder.name, expected, "a program", way_out)
    (first,) = checked_layers(encoder, [first])
    if first == encoder.num_layers:
        expected = f"features of a layer from 0 to {encoder.num_layers - 1}"
        way_out = "compute features with encoder.layers=[0], or [-2] for the last block"
        raise ConfigError(encoder.name, expected, f"those of layer {first}, its output", way_out)
    sizes, origin = config.plain(encoder.sizes), describe(encoder)
    return UpperSpec(encoder.family, first, chunks.seconds, chunks.overlap, sizes, origin)


def new_upper(spec: UpperSpec) -> UpperLayers:
    """The layers of a spec, with random weights."""
    family = FAMILIES[spec.family]
    if family.sizes is None or family.make is None:
        expected, way_out = "a family that can be trained", "correct model.yaml"
        raise ConfigError("public.family", expected, spec.family, way_out)
    values = {name: _tuples(value) for name, value in spec.sizes.items()}
    upper = family.make(family.sizes(**values)).above(spec.first)
    upper.chunks = ChunkConfig(spec.chunk_seconds, spec.chunk_overlap, batch=1)
    return upper


def upper_of(encoder: PublicEncoder, first: int) -> UpperLayers:
    """A copy of an encoder's layers above ``first``, with its weights."""
    return copy.deepcopy(encoder.above(first))


def read_upper(encoder_folder: Path, feats: Path) -> tuple[UpperSpec, UpperLayers]:
    """The layers of an encoder above that whose outputs a features folder holds.

    Raises:
        DataError, ConfigError: as :func:`privasr_k2.encoders.loading.load_encoder` and
            :func:`upper_spec`; or features of something else, of several layers, or with silence
            behind them.
    """
    place, encoder = feats / ABOUT, load_encoder(encoder_folder)
    about = read_yaml(place) if place.is_file() else {}
    there = about.get(PUBLIC_ENCODER, {}).get("sha256")
    outputs = about.get(ENCODER, {})
    problem, way_out = "", "compute them with kind=encoder and this encoder"
    if there != encoder.origin.sha256:
        problem = "those of something else"
    elif len(outputs["layers"]) != 1:
        problem = f"layers {outputs['layers']}"
        way_out = "compute them with encoder.layers=[0], or [-2] for the last block"
    elif outputs["pad_seconds"]:
        problem = f"pad_seconds {outputs['pad_seconds']:g}: the layers above would not see it"
        way_out = "compute them with encoder.pad_seconds=0"
    if problem:
        expected = f"outputs of one layer of {encoder.name}, at true lengths"
        raise DataError(place, expected, problem, way_out)
    chunks = ChunkConfig(outputs["chunk_seconds"], outputs["chunk_overlap"], batch=1)
    spec = upper_spec(encoder, outputs["layers"][0], chunks)
    return spec, upper_of(encoder, spec.first)


def _tuples(value: Any) -> Any:
    """Lists, as YAML gives them, as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
