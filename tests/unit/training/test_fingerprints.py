"""Every key of every training's configuration counts, unless it is declared neutral."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from privasr_k2 import config
from privasr_k2.am import kinds as am_kinds
from privasr_k2.dpsgd.settings import DpSgdConfig
from privasr_k2.federated.settings import FedLmConfig
from privasr_k2.lm.neural import kinds as lm_kinds
from privasr_k2.pate.heads import HeadConfig
from privasr_k2.pate.student import config_of
from privasr_k2.training.fingerprints import neutral_keys, training_fingerprint
from tests.support.conf import section

AM, LM = am_kinds.KINDS.names(), lm_kinds.KINDS.names()


def _configurations() -> Iterator[Any]:
    """One of every training: class and YAML files."""
    for name in AM:
        yield pytest.param(am_kinds.KINDS[name].config, [f"am_{name}"], id=name)
        student = config_of(am_kinds.KINDS[name])
        yield pytest.param(student, [f"am_{name}", "student"], id=f"student {name}")
    for name in LM:
        yield pytest.param(lm_kinds.KINDS[name].config, [f"lm_{name}"], id=f"lm {name}")
    for cls, name in ((HeadConfig, "heads"), (DpSgdConfig, "dpsgd"), (FedLmConfig, "fedlm")):
        yield pytest.param(cls, [name], id=name)


CONFIGURATIONS = [*_configurations()]


def other_than(value: Any) -> Any:
    """Another value; whether it makes sense is not asked."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, list):
        return [*value, "x"]
    return f"{value}x" if isinstance(value, str) else 1


def changed(value: Any, key: str = "") -> Iterator[tuple[str, bool, Any]]:
    """A dotted key, whether it is neutral, and the configuration with another value of it."""
    for field in dataclasses.fields(value):
        inner, neutral = getattr(value, field.name), field.name in neutral_keys(type(value))
        ways = [(f"{key}{field.name}", False, other_than(inner))]
        if dataclasses.is_dataclass(inner):
            ways = changed(inner, f"{key}{field.name}.")
        for name, deeper, other in ways:
            made = copy.copy(value)
            object.__setattr__(made, field.name, other)
            yield name, neutral or deeper, made


@pytest.mark.parametrize(("cls", "files"), CONFIGURATIONS)
def test_every_key_counts(cls, files):
    made = config.load(cls, [section(name) for name in files])
    own = training_fingerprint(made)
    assert own == training_fingerprint(copy.deepcopy(made))
    keys = set()
    for key, neutral, other in changed(made):
        assert (training_fingerprint(other) == own) == neutral, key
        keys.add(key)
    assert len(keys) > 10
    wanted = set(_dotted(config.plain(made)))
    assert keys >= {key for key in wanted if not key.startswith("encoder.")}


def _dotted(values: dict[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in _dotted(value))
        else:
            yield key


@pytest.mark.parametrize("cls", [param.values[0] for param in CONFIGURATIONS])
def test_neutral_keys_exist_and_have_reasons(cls):
    names = {field.name for field in dataclasses.fields(cls)}
    assert set(neutral_keys(cls)) <= names and all(neutral_keys(cls).values())


def test_inputs_count():
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    inputs = [b"a", "a", 1, ["a"], {"a": [1]}, np.zeros(2), np.zeros(2, np.float32)]
    inputs += [torch.zeros(1, 2), layer]
    found = [training_fingerprint(HEADS, value) for value in inputs]
    assert len({*found, training_fingerprint(HEADS)}) == len(inputs) + 1
    assert training_fingerprint(HEADS, b"a", b"b") != training_fingerprint(HEADS, b"ab")
    layer.bias.data[0] = 1e-6
    assert training_fingerprint(HEADS, layer) != found[-1]


HEADS = config.load(HeadConfig, [section("heads")])
