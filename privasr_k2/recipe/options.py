"""Options of recipes: fields of frozen dataclasses, parsed and checked by their types.

A recipe's dataclass has one option a line::

    @dataclass(frozen=True)
    class Options:
        teachers: Counts = option((15,), "numbers of teachers, one system for each")
        student_epochs: Count | None = from_conf("student.epochs", "epochs of a student")

The command line takes ``--teachers '5 15'`` and ``--teachers=15``; ``_`` and ``-`` mean the same.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import click

from privasr_k2.constraints import (
    Choices,
    Count,
    Delta,
    Finite,
    Matches,
    Natural,
    Positive,
    Share,
    broken,
)
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines

LANG = "lang"
"""The section whose keys ``--lang-options`` sets."""

_MOST_SECTIONS = 3

T = TypeVar("T")
#: Recipes take the types of their options from here, too.
__all__ = [
    "Choices", "Count", "Counts", "Delta", "Finite", "Matches", "Natural", "Parsed", "Paths",
    "Positive", "Positives", "Settings", "Share", "Tracked", "Words", "build", "check", "from_conf",
    "option", "other_values", "parse", "path_option", "settings_of",
]  # fmt: skip

Counts = tuple[Count, ...]
Positives = tuple[Positive, ...]
Words = tuple[str, ...]
Settings = tuple[Annotated[str, Matches(r"[^=]+=.*", "KEY=VALUE")], ...]
Paths = tuple[Path, ...]


def option(default: Any, help: str) -> Any:
    """A dataclass field that is an option, with its one line of help."""
    return dataclasses.field(default=default, metadata={"help": help})


def from_conf(key: str, help: str) -> Any:
    """An option that stands in for ``key`` of ``conf/``, ``SECTION.KEY``; None keeps that value."""
    return dataclasses.field(default=None, metadata={"help": help, "conf": key})


def path_option(help: str, default: Path | None = None) -> Any:
    """An option whose value is a path; a relative one starts where the command was given."""
    return option(default, help)


@dataclass(frozen=True)
class Parsed:
    """Values of a command line.

    Attributes:
        values: of all options, by field name; paths are absolute.
        given: the words of those that the command line or ``--config`` sets, in order.
    """

    values: Mapping[str, Any]
    given: Mapping[str, str]


def parse(
    classes: Sequence[type],
    words: Sequence[str],
    *,
    renamed: Mapping[str, str],
    caller: Path,
    prog: str,
    help: str,
    defaults: Callable[[Mapping[str, str]], Mapping[str, Any]] = lambda given: {},
    conf_keys: Mapping[str, Sequence[str]] = types.MappingProxyType({}),
    conf_place: str = "",
    conf_value: Callable[[str, Mapping[str, Any]], Any] = lambda key, values: None,
) -> Parsed:
    """Parse ``words`` into the fields of ``classes``.

    Args:
        defaults: values in place of those of the classes, such as a corpus's, by what is given.
        renamed: old option names (with ``-``) with what stands in their place.
        caller: the folder that relative paths start from.
        prog, help: for ``--help``, which is printed and ends the process.
        conf_keys: keys of ``conf/`` with their sections, for the message on an unknown option.
        conf_place: where the corpus's own values stand, for the same message.
        conf_value: the default of a key of ``conf/`` with these values, for ``--help``.

    Raises:
        ConfigError: an unknown option, a missing value, or one that does not fit its type; two
            classes with an option of one name.
    """
    fields: dict[str, tuple[dataclasses.Field, Any]] = {}
    for cls in classes:
        for field, hint in _fields(cls):
            if field.name in fields:
                flag, way_out = f"--{field.name.replace('_', '-')}", "rename one of them"
                raise ConfigError(flag, "one option of this name", "two", way_out)
            fields[field.name] = (field, hint)
    given = dict(_pairs([*_words_of_file(words, caller), *words]))
    own = defaults(given)
    if unknown := [name for name in own if name not in fields]:
        raise ConfigError("corpus.yaml: options", "options of the recipe", unknown[0], "correct it")
    values = {
        name: check(f"corpus.yaml: {name}", hint, own.get(name, field.default))
        for name, (field, hint) in fields.items()
    }
    help_is_asked = bool({"h", "help"} & given.keys())
    for name, text in given.items():
        flag = f"--{name.replace('_', '-')}"
        if now := renamed.get(flag[2:]):
            raise ConfigError(flag, now, flag, f"write {now}: the name has changed")
        if name in fields:
            values[name] = check(flag, fields[name][1], text)
        elif name not in ("h", "help"):
            way_out = _way_out(name, fields, conf_keys, conf_place)
            raise ConfigError("the command line", "an option that exists", flag, way_out)
    if help_is_asked:
        parameters: list[click.Parameter] = [
            _parameter(field, hint, values[name], field.name in own, conf_value, values)
            for name, (field, hint) in fields.items()
        ]
        command = click.Command(prog, help=help, params=parameters)
        context = click.Context(command, info_name=prog, terminal_width=400)  # an option a line
        context.help_option_names = ["-h", "--help"]
        print(command.get_help(context))
        raise SystemExit(0)
    return Parsed({name: _from(caller, value) for name, value in values.items()}, given)


def build(cls: type[T], parsed: Parsed) -> T:
    """The dataclass ``cls`` with the values of a command line."""
    return cls(**{f.name: parsed.values[f.name] for f, _ in _fields(cls)})


def check(place: str, annotation: Any, value: Any) -> Any:
    """``value`` as ``annotation`` has it: a number in its range, a list from quoted words.

    Raises:
        ConfigError: it is of another type, or outside the range.

    >>> check("--teachers", Counts, "5 15"), check("--epsilon", Positive, "inf")
    ((5, 15), inf)
    """
    try:
        return _convert(annotation, value)
    except ValueError as error:
        way_out = "correct the value; --help lists all options"
        raise ConfigError(place, str(error), repr(value), way_out) from None


def settings_of(words: Iterable[str]) -> dict[str, str]:
    """The values of words ``KEY=VALUE``, by their keys; the last of a key counts.

    >>> settings_of(["language=de", "url=a?b=c"])
    {'language': 'de', 'url': 'a?b=c'}
    """
    return dict(word.split("=", 1) for word in words)


class Tracked:
    """Options that note in ``read`` which of them were read: one that is given must have effect."""

    def __init__(self, options: Any, read: set[str]) -> None:
        object.__setattr__(self, "_options", options)
        object.__setattr__(self, "_read", read)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._options, name)
        if name in {f.name for f in dataclasses.fields(self._options)}:
            self._read.add(name)
        return value


def other_values(options: T, **values: Any) -> T:
    """Options with other values, which are no option that somebody gave."""
    if not isinstance(options, Tracked):
        return dataclasses.replace(options, **values)  # type: ignore[type-var]
    return Tracked(dataclasses.replace(options._options, **values), options._read)  # type: ignore[return-value]


def _fields(cls: type) -> list[tuple[dataclasses.Field, Any]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return [(f, hints[f.name]) for f in dataclasses.fields(cls) if "help" in f.metadata]


def _from(caller: Path, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_from(caller, element) for element in value)
    return caller / value if isinstance(value, Path) else value


def _shown(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _convert(annotation: Any, value: Any) -> Any:
    """The value by its annotation; the text of a ValueError is what was expected."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _convert(_not_none(arguments), value)
    if origin is Annotated:
        converted = _convert(arguments[0], value)
        if expected := broken(annotation, converted):
            kind = {int: "a whole number ", float: "a number "}.get(arguments[0], "")
            of = "of " if kind and expected.startswith("at ") else ""
            raise ValueError(f"{kind}{of}{expected}")
        return converted
    if origin is tuple:
        is_list = isinstance(value, Iterable) and not isinstance(value, str)
        words = value if is_list else str(value).split()
        return tuple(_convert(arguments[0], word) for word in words)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"one of {', '.join(map(str, arguments))}")
        return value
    if annotation is bool:
        if value not in (True, False, "true", "false"):
            raise ValueError("true or false")
        return value in (True, "true")
    if annotation in (int, float):
        try:
            number = annotation(value)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(number, float) and math.isnan(number):
            raise ValueError("a whole number" if annotation is int else "a number")
        return number
    return Path(value) if annotation is Path else str(value)


def _not_none(arguments: Iterable[Any]) -> Any:
    [inner] = [argument for argument in arguments if argument is not type(None)]
    return inner


def _parameter(
    field: dataclasses.Field,
    hint: Any,
    default: Any,
    of_corpus: bool,
    conf_value: Callable[[str, Mapping[str, Any]], Any],
    values: Mapping[str, Any],
) -> click.Option:
    """An option as ``--help`` lists it."""
    if "conf" in field.metadata and not of_corpus:
        default = conf_value(field.metadata["conf"], values)
    shown = _shown(default)
    help = field.metadata["help"] + (f"  [{shown}]" if shown else "")
    return click.Option([f"--{field.name.replace('_', '-')}"], metavar=_metavar(hint), help=help)


def _metavar(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return _metavar(_not_none(arguments))
    if origin is Annotated:
        choices = next((c for c in arguments[1:] if isinstance(c, Choices)), None)
        return "|".join(choices.names()) if choices else _metavar(arguments[0])
    if origin is tuple:
        return f"'{_metavar(arguments[0])} ...'"
    if origin is Literal:
        return "|".join(arguments)
    return {bool: "true|false", int: "N", float: "X", Path: "PATH"}.get(annotation, "NAME")


def _way_out(
    name: str, fields: Mapping[str, Any], conf_keys: Mapping[str, Sequence[str]], conf_place: str
) -> str:
    if sections := conf_keys.get(name):
        if "lang_options" in fields and LANG in sections:
            return f"write --lang-options {name}=VALUE"
        more = len(sections) - _MOST_SECTIONS
        named = ", ".join(sections[:_MOST_SECTIONS]) + (f" and {more} more" if more > 0 else "")
        plural = "s" if len(sections) > 1 else ""
        return f"it is a key of the section{plural} {named} of conf/: set it in {conf_place}"
    near = difflib.get_close_matches(name, fields, 1)
    return f"did you mean --{near[0].replace('_', '-')}?" if near else "--help lists all options"


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names, with ``_``, and values of ``--name value`` and ``--name=value``."""
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if not word.startswith("-"):
            way_out = "correct it; --help lists all options"
            raise ConfigError("the command line", "--name value", repr(word), way_out)
        if not equals and flag not in ("-h", "--help"):
            following = next(rest, "--")
            if following.startswith("--"):
                found = "nothing" if following == "--" else f"the option {following}"
                raise ConfigError(flag, "a value", found, f"write {flag} VALUE")
            value = following
        yield flag.lstrip("-").replace("-", "_"), value


def _words_of_file(words: Sequence[str], caller: Path) -> list[str]:
    """The options of every ``--config FILE``: lines ``name=value``, comments after ``#``."""
    options: list[str] = []
    for place, word in enumerate(words):
        name, has_value, value = word.partition("=")
        if name != "--config":
            continue
        value = value if has_value else "".join(words[place + 1 : place + 2])
        if not value:
            raise ConfigError("--config", "a value", "nothing", "write --config FILE")
        path = caller / value
        if not path.is_file():
            raise ConfigError("--config", "a file of options", value, "correct the name")
        for number, line in read_lines(path):
            text = line.split(" #")[0].strip()
            if not text or text.startswith("#"):
                continue
            key, _, rest = text.removeprefix("--").partition("=" if "=" in text else " ")
            if not rest:
                way_out = "write one option a line"
                raise ConfigError(f"{path}:{number}", "name=value", repr(text), way_out)
            options.append(f"--{key.strip()}={rest.strip().strip(chr(34) + chr(39))}")
    return options
