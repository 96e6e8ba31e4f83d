"""Typed configuration from layers: repository defaults, then more particular files, then ``--set key=value``.

A later layer replaces single values of an earlier one. The result is a frozen dataclass whose
``__post_init__`` checks ranges. Defaults stand in YAML only, so a dataclass field has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, MissingMandatoryValue, OmegaConfBaseException

from privasr_k2 import sections
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines, write_text

T = TypeVar("T")


def load(cls: type[T], files: Iterable[Path] = (), overrides: Iterable[str] = ()) -> T:
    """Build ``cls`` from YAML ``files`` and dotted ``key=value`` overrides, the last one winning.

    A file may be a section, ``FILE.yaml#SECTION`` (:mod:`privasr_k2.sections`).

    Raises:
        ConfigError: an unknown key (naming the layer and the nearest key), a value of another type or
            out of range, or a key that no layer gives.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     lr: float
    >>> load(Training, overrides=["lr=1e-5"])
    Training(lr=1e-05)
    """
    files, overrides = [*files], [*overrides]
    merged = OmegaConf.structured(cls)
    for where, layer in _layers(files, overrides):
        try:
            merged = OmegaConf.merge(merged, layer)
        except ConfigKeyError as error:
            raise ConfigError(
                where, f"a key of {cls.__name__}", _first_line(error), "correct the key, or take it out"
            ) from error
        except OmegaConfBaseException as error:
            key = getattr(error, "full_key", None)
            fitting = f"{cls.__name__}.{key}" if key else cls.__name__
            raise ConfigError(
                where, f"a value that fits {fitting}", _first_line(error), "correct the value"
            ) from error
    try:
        return OmegaConf.to_object(merged)  # type: ignore[return-value]
    except MissingMandatoryValue as error:
        raise ConfigError(
            " + ".join(str(f) for f in files) or "--set",
            f"every key of {cls.__name__}",
            f"no value for {getattr(error, 'full_key', None) or _first_line(error)}",
            "give it in a YAML layer or with --set key=value",
        ) from error
    except ValueError as error:  # a range check in __post_init__
        places = [*map(str, files), *([f"--set {' '.join(overrides)}"] if overrides else [])]
        raise ConfigError(
            " + ".join(places), f"values that {cls.__name__} allows", str(error), "correct the value"
        ) from error


def from_values(cls: type[T], values: Any, place: str | Path) -> T:
    """``cls`` from plain values that stand in a file of results, with the checks of :func:`load`.

    Raises:
        ConfigError: no names and values, others than those of ``cls``, or values that it does not allow.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     lr: float
    >>> from_values(Training, {"lr": 1}, "here")
    Training(lr=1.0)
    """
    expected, way_out = f"the settings of {cls.__name__}", "make the file again"
    if not isinstance(values, dict):
        raise ConfigError(place, expected, f"a {type(values).__name__}", way_out)
    try:
        layer = _layer(str(place), lambda: OmegaConf.create(values))
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(cls), layer))  # type: ignore[return-value]
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        raise ConfigError(place, expected, _first_line(error), way_out) from error


def save(config: Any, path: Path) -> None:
    """Write the resolved configuration beside what it made."""
    write_text(path, yaml.safe_dump(_plain(dataclasses.asdict(config)), sort_keys=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _layers(files: Iterable[Path], overrides: Iterable[str]) -> Iterator[tuple[str, DictConfig]]:
    for path in files:
        try:
            text = _text(path)
        except FileNotFoundError as error:
            raise ConfigError(path, "a YAML file", "nothing", "correct the name") from error
        yield str(path), _layer(str(path), lambda text=text: OmegaConf.create(text))  # type: ignore[misc]
    for item in overrides:
        if "=" not in item:
            raise ConfigError("--set", "key=value", repr(item), f"write --set {item}=VALUE")
        yield f"--set {item}", _layer(f"--set {item}", lambda item=item: OmegaConf.from_dotlist([item]))  # type: ignore[misc]


def named_kind(files: Iterable[Path], kinds: Iterable[str], example: str) -> str:
    """The ``kind:`` that YAML files name, the last one winning.

    Raises:
        ConfigError: none of them names one of ``kinds``.
    """
    files, kinds = [*files], [*kinds]
    named = [line for path in files for line in _text(path).splitlines() if line.startswith("kind:")]
    kind = named[-1].partition(":")[2].partition("#")[0].strip() if named else ""
    if kind not in kinds:
        place = " + ".join(map(str, files)) or "--config"
        raise ConfigError(
            place, f"kind: one of {', '.join(kinds)}", repr(kind), f"give, for example, {example}"
        )
    return kind


def _text(path: Path) -> str:
    file, section = sections.split(path)
    text = "\n".join(line for _, line in read_lines(file))  # names a line that is not UTF-8
    return sections.read(path) if section else text


def _layer(where: str, parse: Callable[[], object]) -> DictConfig:
    try:
        layer = parse()
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also numbers and dates that are none
        raise ConfigError(where, "YAML", " ".join(str(error).split()), "correct it") from error
    if not isinstance(layer, DictConfig):
        raise ConfigError(where, "keys and values", "a list", "write 'key: value' lines")
    # A value taken from the environment would be in no fingerprint, and two runs of one command could differ.
    if "${" in OmegaConf.to_yaml(layer):
        raise ConfigError(where, "plain values", "${...}", "write the value itself")
    return layer


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].strip().rstrip(".")
