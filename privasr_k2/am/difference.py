"""What was trained of a model that holds layers of a public encoder, apart from the public weights.

The file has only tensors that differ from the public ones. For a weight W whose difference to the
public W0 has a low rank R, as that of an adapter has [Hu et al. 2021, "LoRA", eq. 3], it has the
factors of W - W0 = U V. With the same public weights it becomes the model's folder again.

The rank is the number of singular values of W - W0 above (sqrt(M) + sqrt(N)) 2^-24 m, for W of
shape (M, N) with the largest magnitude m. Rounding W to float32 makes noise of at most 2^-24 m. A
matrix of noise of standard deviation s has singular values up to about s (sqrt(M) + sqrt(N))
[Davidson and Szarek 2001, "Local operator theory, random matrices and Banach spaces", theorem
II.13].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from privasr_k2.am.files import SPEC, TOKENS, WEIGHTS
from privasr_k2.encoders.common import PublicEncoder
from privasr_k2.encoders.loading import describe
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_yaml
from privasr_k2.training.weights import load_tensors, read_header, save_tensors

ROUNDING = 2.0**-24
"""Largest relative error of a number that is rounded to float32."""
_UPPER = "public"
"""Key of ``model.yaml``, and child of the model, for the layers above the one that is frozen."""
_PARTS = ("blocks.", "norm.", "distances.")
_LEFT, _RIGHT = ".left", ".right"


@dataclass(frozen=True)
class DifferenceHeader:
    """What the file says of itself, as JSON.

    Attributes:
        public_encoder: as :func:`privasr_k2.encoders.loading.describe`: name, sha256, licence,
            source, and that the training data are not known.
        public_files: sha256 of each file of the public weights, by name.
        texts: the other files of the model's folder.
        weights_header: of the model's weights.
        names: of all tensors of the model.
    """

    public_encoder: dict[str, str]
    public_files: dict[str, str]
    texts: dict[str, str]
    weights_header: dict[str, Any] | None
    names: list[str]


def public_weights(model_folder: Path, encoder: PublicEncoder) -> dict[str, Tensor]:
    """The encoder's tensors by the names that a model gives them which holds its upper layers.

    Args:
        model_folder: ``model.yaml`` says from which layer on (``public.first``); none: no tensors.

    Raises:
        DataError: the model holds layers of another encoder.
    """
    upper = read_yaml(model_folder / SPEC).get(_UPPER)
    if upper is None:
        return {}
    first = upper["first"]
    if upper["origin"]["sha256"] != encoder.origin.sha256:
        raise _other_encoder(model_folder / SPEC, upper["origin"], encoder)
    named = {}
    for name, tensor in encoder.state_dict().items():
        if name.startswith(_PARTS):
            part, _, rest = name.partition(".")
            number, _, inner = rest.partition(".")
            if part == "blocks" and int(number) >= first:
                named[f"{_UPPER}.blocks.{int(number) - first}.{inner}"] = tensor
            elif part != "blocks":
                named[f"{_UPPER}.{name}"] = tensor
    return named


def write_difference(model_folder: Path, encoder: PublicEncoder, path: Path) -> None:
    """Write what a model's folder adds to the public weights.

    Raises:
        DataError: no model, one without tensors of this encoder, or with tensors of other shapes.
    """
    public, weights = public_weights(model_folder, encoder), load_tensors(model_folder / WEIGHTS)
    shared = [name for name in weights if name in public]
    fits = all(weights[name].shape == public[name].shape for name in shared)
    if not shared or not fits:
        expected = f"layers of the encoder {encoder.name}"
        found = "layers of other sizes" if shared else f"{', '.join(sorted(weights)[:3])}, ..."
        way_out = "give the encoder that the model was trained upon"
        raise DataError(model_folder / WEIGHTS, expected, found, way_out)
    texts = [model_folder / name for name in (SPEC, TOKENS)]
    header = DifferenceHeader(
        describe(encoder),
        dict(encoder.origin.files),
        {text.name: text.read_text(encoding="utf-8") for text in texts if text.is_file()},
        read_header(model_folder / WEIGHTS),
        sorted(weights),
    )
    save_tensors(path, difference(weights, public), asdict(header))


def put_together(path: Path, encoder: PublicEncoder, model_folder: Path) -> None:
    """Write a model's folder from public weights and what :func:`write_difference` wrote.

    Raises:
        DataError: another file, another encoder, a tensor that neither of them has, or a folder
            that holds something already.
    """
    if model_folder.exists() and (not model_folder.is_dir() or any(model_folder.iterdir())):
        expected, found = "a new folder for the model", "one that holds something"
        raise DataError(model_folder, expected, found, "choose another --out-model")
    stored, header = load_tensors(path), _header(path)
    if header.public_encoder["sha256"] != encoder.origin.sha256:
        raise _other_encoder(path, header.public_encoder, encoder)
    with atomic_path(model_folder) as folder:
        folder.mkdir()
        for name in (SPEC, TOKENS):
            if name in header.texts:
                (folder / name).write_text(header.texts[name], encoding="utf-8")
        weights = combined(stored, public_weights(folder, encoder))
        if sorted(weights.keys() & {*header.names}) != header.names:
            lacking = next(name for name in header.names if name not in weights)
            raise DataError(path, f"the tensor {lacking}", "none", "export the difference again")
        own = {name: weights[name] for name in header.names}
        save_tensors(folder / WEIGHTS, own, header.weights_header)


def difference(weights: Mapping[str, Tensor], public: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that are not those of ``public`` bit for bit, or their factors.

    Factors of ``NAME`` are ``NAME.left`` (M, R) and ``NAME.right`` (R, N); the public tensor and
    their product make the tensor. A convolution's weight (M, C, K) counts as (M, C K). They are
    kept where R (M + N) < M N.

    >>> public = {"w": torch.zeros(5, 4), "b": torch.zeros(4)}
    >>> trained = {"w": torch.ones(5, 4), "b": torch.zeros(4), "output": torch.ones(2)}
    >>> {name: tuple(t.shape) for name, t in difference(trained, public).items()}
    {'w.left': (5, 1), 'w.right': (1, 4), 'output': (2,)}
    """
    kept: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        own = public.get(name)
        if own is not None and _same_bits(tensor, own):
            continue
        factors = None if own is None or own.ndim < 2 else low_rank(tensor, own)
        if factors is None:
            kept[name] = tensor
        else:
            kept[f"{name}{_LEFT}"], kept[f"{name}{_RIGHT}"] = factors
    return kept


def combined(stored: Mapping[str, Tensor], public: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of :func:`difference`, up to float32's rounding where there are factors."""
    weights = {**public, **{n: t for n, t in stored.items() if not n.endswith((_LEFT, _RIGHT))}}
    for name, left in stored.items():
        if name.endswith(_LEFT):
            name = name.removesuffix(_LEFT)
            product = left.double() @ stored[f"{name}{_RIGHT}"].double()
            weights[name] = (public[name].double() + product.view_as(public[name])).float()
    return weights


def low_rank(tensor: Tensor, public: Tensor) -> tuple[Tensor, Tensor] | None:
    """Factors (M, R) and (R, N) of a difference; None where they are not smaller than it."""
    change = (tensor.double() - public.double()).flatten(1)
    if not bool(change.isfinite().all()):
        return None
    rows, columns = change.shape
    largest = float(torch.maximum(tensor.abs().max(), public.abs().max()))
    left, values, right = torch.linalg.svd(change, full_matrices=False)
    rank = int((values > ROUNDING * largest * (math.sqrt(rows) + math.sqrt(columns))).sum())
    if rank * (rows + columns) >= rows * columns:
        return None
    scale = values[:rank].sqrt()
    return (left[:, :rank] * scale).float(), (scale.unsqueeze(1) * right[:rank]).float()


def _header(path: Path) -> DifferenceHeader:
    values = read_header(path)
    try:
        return DifferenceHeader(**values)
    except TypeError as error:
        expected, way_out = "what export --out-difference writes", "give such a file"
        raise DataError(path, expected, "another header", way_out) from error


def _same_bits(one: Tensor, other: Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    bits = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(*bits)


def _other_encoder(place: Path, wanted: Mapping[str, str], encoder: PublicEncoder) -> DataError:
    expected = f"the encoder {wanted['name']} with sha256 {wanted['sha256']}"
    found = f"{encoder.name} with sha256 {encoder.origin.sha256}"
    return DataError(place, expected, found, f"get it: {wanted['source']}")
