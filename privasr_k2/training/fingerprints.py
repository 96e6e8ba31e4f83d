"""The fingerprint of a training: only a training of equal weights continues a checkpoint."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from privasr_k2.config import Choice, plain


def training_fingerprint(config: Any, *inputs: Any) -> str:
    """A hash of a configuration without its neutral keys, and of all other inputs of the weights.

    A dataclass names its neutral keys, with reasons, in a class attribute ``NEUTRAL``.

    Args:
        config: a dataclass.
        inputs: models, tensors, arrays, bytes, dataclasses or plain values.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     NEUTRAL = {"save_every": "says when, not what"}
    ...     lr: float
    ...     save_every: int
    >>> settings = [Training(*numbers) for numbers in ((0.1, 1), (0.1, 2), (0.2, 1))]
    >>> first, second, third = (training_fingerprint(setting, b"data") for setting in settings)
    >>> first == second != third
    True
    """
    digest = hashlib.sha256()
    for value in (counted(config), *inputs):
        for part in _bytes(value):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def neutral_keys(cls: type) -> dict[str, str]:
    """The neutral keys of a configuration's class and its bases, with reasons."""
    return {
        key: why
        for base in reversed(cls.__mro__)
        for key, why in vars(base).get("NEUTRAL", {}).items()
    }


def counted(config: Any) -> dict[str, Any]:
    """The keys of a configuration that weights depend on, as plain values."""
    left_out = neutral_keys(type(config))
    values = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name not in left_out:
            nested = dataclasses.is_dataclass(value) and not isinstance(value, Choice)
            values[field.name] = counted(value) if nested else plain(value)
    return values


def hashed(batches: Iterable[Any], digest: Any) -> Iterator[Any]:
    """Hand on batches; the hash gets what their ``features`` hold."""
    for batch in batches:
        digest.update(batch.features.numpy().tobytes())
        yield batch


def _bytes(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, nn.Module):
        for name, tensor in value.state_dict().items():
            yield name.encode()
            yield from _bytes(tensor)
    elif isinstance(value, (Tensor, np.ndarray)):
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        yield f"{array.dtype}{array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    else:
        plainly = plain(dict(value) if isinstance(value, Mapping) else value)
        yield json.dumps(plainly, sort_keys=True).encode()
