"""Typed configuration from layers: repository defaults, YAML files, then ``--set key=value``.

A later layer replaces single values of an earlier one. The result is a frozen dataclass with
constraints (:mod:`privasr_k2.constraints`). Defaults stand in YAML only.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, MissingMandatoryValue, OmegaConfBaseException

from privasr_k2 import sections
from privasr_k2.constraints import check_fields
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines, write_text

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """One of several groups of keys: ``{kind: NAME, NAME: {...}, OTHER: {...}}`` in YAML.

    YAML may give all groups; only that of ``kind`` must be complete, and is loaded and saved.

    Attributes:
        kind: the chosen group's name.
        settings: its values, of the class that :meth:`choices` names.
    """

    kind: str
    settings: Any

    @classmethod
    def choices(cls) -> dict[str, type]:
        """The groups' names and dataclasses."""
        return {}

    def __post_init__(self) -> None:
        known = self.choices()
        if self.kind not in known or not isinstance(self.settings, known[self.kind]):
            expected = f"one of {', '.join(known)}, with settings of its own"
            raise ValueError(f"kind must be {expected}, got {self.kind!r}")


def load(cls: type[T], files: Iterable[Path] = (), overrides: Iterable[str] = ()) -> T:
    """Build ``cls`` from YAML files or ``FILE.yaml#SECTION`` and dotted ``key=value`` overrides.

    Raises:
        ConfigError: an unknown key (naming the layer and the nearest key), a value of another type
            or out of range, or a missing key.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     lr: float
    >>> load(Training, overrides=["lr=1e-5"])
    Training(lr=1e-05)
    """
    files, overrides = [*files], [*overrides]
    merged: Any = _structured(cls)
    for where, layer in _layers(files, overrides):
        try:
            merged = OmegaConf.merge(merged, layer)
        except ConfigKeyError as error:
            expected, found = f"a key of {cls.__name__}", _first_line(error)
            removed: Mapping[str, str] = getattr(cls, "REMOVED", {})
            way_out = removed.get(str(error.full_key)) or _keys_beside(merged, str(error.full_key))
            raise ConfigError(where, expected, found, way_out) from error
        except OmegaConfBaseException as error:
            key = getattr(error, "full_key", None)
            fitting = f"{cls.__name__}.{key}" if key else cls.__name__
            raise ConfigError(
                where, f"a value that fits {fitting}", _first_line(error), "correct the value"
            ) from error
    try:
        check_fields(cls, merged)
        return _built(cls, merged)
    except MissingMandatoryValue as error:
        place = " + ".join(str(f) for f in files) or "--set"
        found = f"no value for {getattr(error, 'full_key', None) or _first_line(error)}"
        way_out = f"give it in a YAML layer{_sections_of(cls)} or with --set key=value"
        raise ConfigError(place, f"every key of {cls.__name__}", found, way_out) from error
    except ValueError as error:  # of check_fields, or a check in __post_init__
        places = [*map(str, files), *([f"--set {' '.join(overrides)}"] if overrides else [])]
        expected = f"values that {cls.__name__} allows"
        raise ConfigError(" + ".join(places), expected, str(error), "correct the value") from error


def _sections_of(cls: type) -> str:
    """The sections of ``conf/`` that say in a comment that they are for ``cls``, if it is there."""
    named = re.compile(rf"^# Class: [\w.]+\.{cls.__name__}\n(?:#.*\n)*(\w+):", re.MULTILINE)
    found = [
        f"--config conf/{path.name}#{section}"
        for path in sorted((Path(__file__).parent.parent / "conf").glob("*.yaml"))
        for section in named.findall(path.read_text(encoding="utf-8"))
    ]
    return f" ({' or '.join(found)})" if found else ""


def _keys_beside(merged: Any, full_key: str) -> str:
    """A way out for an unknown key: those that its place has."""
    above = full_key.rpartition(".")[0]
    found = OmegaConf.select(merged, above) if above else merged
    keys = " ".join(map(str, found)) if isinstance(found, DictConfig) else ""
    return f"correct the key, or take it out; keys are: {keys or 'none'}"


def from_values(cls: type[T], values: Any, place: str | Path) -> T:
    """``cls`` from plain values that stand in a file of results, with the checks of :func:`load`.

    Raises:
        ConfigError: no mapping, other keys than those of ``cls``, or values that it does not allow.
    """
    expected, way_out = f"the settings of {cls.__name__}", "make the file again"
    if not isinstance(values, dict):
        raise ConfigError(place, expected, f"a {type(values).__name__}", way_out)
    try:
        layer = _layer(str(place), lambda: OmegaConf.create(values))
        return _built(cls, OmegaConf.merge(_structured(cls), layer))  # type: ignore[arg-type]
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        raise ConfigError(place, expected, _first_line(error), way_out) from error


def save(config: Any, path: Path) -> None:
    """Write the resolved configuration beside what it made."""
    write_text(path, yaml.safe_dump(plain(config), sort_keys=False))


def plain(value: Any) -> Any:
    """A configuration as dicts, lists and values, as :func:`save` writes it."""
    if isinstance(value, Choice):
        return {"kind": value.kind, value.kind: plain(value.settings)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _choices(cls: type) -> dict[str, type[Choice]]:
    """The keys of a configuration that are a :class:`Choice`."""
    hints = typing.get_type_hints(cls)
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(cls)
        if isinstance(hints[field.name], type) and issubclass(hints[field.name], Choice)
    }


def _structured(cls: type) -> DictConfig:
    """The typed form of a configuration, with all groups of its choices."""
    choices = _choices(cls)
    if not choices:
        return OmegaConf.structured(cls)
    hints = typing.get_type_hints(cls)
    for name, choice in choices.items():
        keys: list[Any] = [("kind", str), *map(_group, *zip(*choice.choices().items()))]
        hints[name] = dataclasses.make_dataclass(choice.__name__, keys, kw_only=True)
    typed = [
        (field.name, hints[field.name], dataclasses.field(default=field.default))
        for field in dataclasses.fields(cls)
    ]
    return OmegaConf.structured(dataclasses.make_dataclass(cls.__name__, typed, kw_only=True))


def _group(name: str, settings: type) -> tuple[str, type, Any]:
    """A group of a choice; it may be absent where all of its keys have defaults, as in a plugin."""
    keys = dataclasses.fields(settings)
    whole = all(key.default is not MISSING or key.default_factory is not MISSING for key in keys)
    return name, settings, dataclasses.field(default_factory=settings if whole else MISSING)  # type: ignore[call-overload]


def _built(cls: type[T], merged: DictConfig) -> T:
    """The configuration that all layers together make; of a choice only the chosen group."""
    choices = _choices(cls)
    if not choices:
        return OmegaConf.to_object(merged)  # type: ignore[return-value]
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        node = merged[field.name]
        if field.name in choices:
            known, kind = choices[field.name].choices(), node.kind
            if kind not in known:
                names = ", ".join(known)
                raise ValueError(f"{field.name}.kind must be one of {names}, got {kind!r}")
            try:
                settings = OmegaConf.to_object(node[kind])
            except ValueError as error:  # of a check in __post_init__
                raise ValueError(f"{field.name}.{kind}.{error}") from error
            values[field.name] = choices[field.name](kind, settings)
        else:
            values[field.name] = OmegaConf.to_object(node) if OmegaConf.is_config(node) else node
    return cls(**values)


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
        where = f"--set {item}"
        yield where, _layer(where, lambda item=item: OmegaConf.from_dotlist([item]))  # type: ignore[misc]


def value_of(key: str, files: Iterable[Path], overrides: Iterable[str]) -> Any:
    """The value that layers give a key of the top level, before they are checked.

    Raises:
        ConfigError: none of them has it.

    >>> value_of("lr", [], ["lr=1", "lr=2"])
    2
    """
    files, overrides = [*files], [*overrides]
    found = [layer[key] for _, layer in _layers(files, overrides) if key in layer]
    if not found:
        place = " + ".join(map(str, files)) or "--config"
        raise ConfigError(place, f"the key {key}", "none", f"name a section that has {key}")
    return found[-1]


def named_kind(files: Iterable[Path], kinds: Iterable[str], example: str) -> str:
    """The ``kind:`` that YAML files name, the last one winning.

    Raises:
        ConfigError: none of them names one of ``kinds``.
    """
    files, kinds = [*files], [*kinds]
    lines = (line for path in files for line in _text(path).splitlines())
    named = [line for line in lines if line.startswith("kind:")]
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
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also bad numbers and dates
        raise ConfigError(where, "YAML", " ".join(str(error).split()), "correct it") from error
    if not isinstance(layer, DictConfig):
        raise ConfigError(where, "keys and values", "a list", "write 'key: value' lines")
    # A value from the environment would be in no fingerprint.
    if "${" in OmegaConf.to_yaml(layer):
        raise ConfigError(where, "plain values", "${...}", "write the value itself")
    return layer


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].strip().rstrip(".")
