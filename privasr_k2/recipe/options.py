"""Options of recipes: fields of frozen dataclasses, parsed and checked by their types.

A recipe's dataclass has one option a line::

    @dataclass(frozen=True)
    class Options:
        teachers: Counts = option((15,), "numbers of teachers, one system for each")
        student_epochs: Count | None = from_conf("student.epochs", "epochs of a student")

On the command line this is ``--teachers '5 15'`` or ``--teachers=15``; ``_`` and ``-`` mean the
same.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import click
from click.core import ParameterSource

from privasr_k2.constraints import Choices, Count, Delta, Finite, Matches, Positive, Share, broken
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines

T = TypeVar("T")
#: Recipes take the types of their options from here, too.
__all__ = [
    "Choices", "Count", "Counts", "Delta", "Finite", "Matches", "Parsed", "Paths", "Positive", "Positives",
    "Share", "Tracked", "Words", "build", "check", "from_conf", "option", "parse", "path_option",
]  # fmt: skip

Counts = tuple[Count, ...]
Positives = tuple[Positive, ...]
Words = tuple[str, ...]
Paths = tuple[Path, ...]


def option(default: Any, help: str) -> Any:
    """A dataclass field that is an option, with its one line of help."""
    return dataclasses.field(default=default, metadata={"help": help})


def from_conf(key: str, help: str) -> Any:
    """An option that stands in for ``key`` of ``conf/``, ``NAME.KEY``; None leaves that value."""
    return dataclasses.field(default=None, metadata={"help": help, "conf": key})


def path_option(help: str, default: Path | None = None) -> Any:
    """An option whose value is a path; a relative one starts where the command was given."""
    return dataclasses.field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Parsed:
    """Values of a command line.

    Attributes:
        values: of all options, by field name; paths are absolute.
        given: names of those that the command line or ``--config`` sets, in order, with their
            words.
    """

    values: Mapping[str, Any]
    given: Mapping[str, str]


def parse(
    classes: Sequence[type],
    words: Sequence[str],
    *,
    defaults: Mapping[str, Any],
    renamed: Mapping[str, str],
    conf_keys: Mapping[str, str],
    conf_values: Mapping[str, str],
    caller: Path,
    prog: str,
    help: str,
) -> Parsed:
    """Parse ``words`` into the fields of ``classes``.

    Args:
        defaults: values in place of those of the classes, such as a corpus's.
        renamed: old option names (with ``-``) with what stands in their place.
        conf_keys: keys of YAML files with the file that has them, for the message on an unknown
            option.
        conf_values: the default of each ``NAME.KEY`` of ``conf/``, for ``--help``.
        caller: the folder that relative paths start from.
        prog, help: for ``--help``, which is printed and ends the process.

    Raises:
        ConfigError: an unknown option, a missing value, or one that does not fit its type.
    """
    fields = {f.name: (f, hint) for cls in classes for f, hint in _fields(cls)}
    unknown = [name for name in defaults if name not in fields]
    if unknown:
        raise ConfigError(
            "corpus.yaml: options", "options of the recipe", unknown[0], "correct the name"
        )
    command = click.Command(
        prog,
        help=help,
        params=[_parameter(f, hint, defaults, conf_values) for f, hint in fields.values()],
        context_settings={
            "token_normalize_func": lambda name: name.replace("_", "-"),
            "help_option_names": ["-h", "--help"],
            "terminal_width": 400,  # one option a line
        },
    )
    given: dict[str, str] = {}
    words = [*_words_of_file(words, caller), *words]
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name.startswith("--") and name[2:] in renamed:
            raise ConfigError(
                name, renamed[name[2:]], name, f"write {renamed[name[2:]]}: the name has changed"
            )
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        takes_value = word.startswith("--") and "=" not in word and word != "--help"
        if takes_value and (place + 1 == len(words) or following.startswith("--")):
            found = f"the option {following}" if following else "nothing"
            raise ConfigError(word, "a value", found, f"write {word} VALUE")
    try:
        context = command.make_context(prog, list(words))
    except click.exceptions.Exit as error:  # --help was printed
        raise SystemExit(error.exit_code) from None
    except click.NoSuchOption as error:
        raise ConfigError(
            "the command line", "an option that exists", error.option_name,
            _meant(error.option_name, fields, conf_keys),
        ) from None  # fmt: skip
    except click.UsageError as error:
        parameter = getattr(error, "param", None)
        where = (
            parameter.opts[0] if parameter else getattr(error, "option_name", "the command line")
        )
        expected, found = _expected(error)
        raise ConfigError(where, expected, found, "correct it; --help lists all options") from None
    values: dict[str, Any] = {}
    for name in fields:
        value = context.params[name]
        if isinstance(value, Path):
            value = caller / value
        elif isinstance(value, tuple):
            value = tuple(caller / one if isinstance(one, Path) else one for one in value)
        values[name] = value
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            given[name] = _last_word(words, name)
    return Parsed(values, {name: given[name] for name in _order(words) if name in given})


def build(cls: type[T], parsed: Parsed) -> T:
    """The dataclass ``cls`` with the values of a command line."""
    return cls(**{f.name: parsed.values[f.name] for f, _ in _fields(cls)})


def check(place: str, annotation: Any, value: Any) -> Any:
    """``value`` as ``annotation`` has it: a number in its range, a list from quoted words.

    Raises:
        ConfigError: it is of another type, or outside the range.

    >>> check("--teachers", Counts, "5 15")
    (5, 15)
    >>> check("--epsilon", Positive, "inf")
    inf
    """
    try:
        return _convert(annotation, value)
    except _NotFitting as error:
        raise ConfigError(place, error.expected, repr(value), "correct the value") from None


class Tracked:
    """Options that remember which of them were read.

    An option that was given and that no stage has read would change nothing.
    """

    def __init__(self, options: Any, read: set[str]) -> None:
        object.__setattr__(self, "_options", options)
        object.__setattr__(self, "_read", read)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._options, name)
        if name in {f.name for f in dataclasses.fields(self._options)}:
            self._read.add(name)
        return value


class _NotFitting(Exception):
    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


class _Typed(click.ParamType):
    name = "value"

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return _convert(self.annotation, value)
        except _NotFitting as error:
            raise click.BadParameter(f"{error.expected}\0{value}", ctx=ctx, param=param) from None

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        return _metavar(self.annotation)


def _fields(cls: type) -> list[tuple[dataclasses.Field, Any]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return [(f, hints[f.name]) for f in dataclasses.fields(cls) if "help" in f.metadata]


def _parameter(
    f: dataclasses.Field, hint: Any, defaults: Mapping[str, Any], conf_values: Mapping[str, str]
) -> click.Option:
    flag = "--" + f.name.replace("_", "-")
    default, shown = f.default, conf_values.get(f.metadata.get("conf", ""), "")
    if f.name in defaults:
        default = check(f"corpus.yaml: {f.name}", hint, defaults[f.name])
        shown = _shown(default)
    help = f.metadata["help"]
    if shown or _shown(default):
        help += f"  [{shown or _shown(default)}]"
    return click.Option([flag, f.name], type=_Typed(hint), default=default, help=help)


def _shown(value: Any) -> str:
    if value is None or value == "" or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " ".join(_shown(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _convert(annotation: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        [inner] = [one for one in arguments if one is not type(None)]
        return _convert(inner, value)
    if origin is Annotated:
        converted = _convert(arguments[0], value)
        if said := broken(annotation, converted):
            kind = {int: "a whole number ", float: "a number "}.get(arguments[0], "")
            raise _NotFitting(
                f"{kind}of {said}" if kind and said.startswith("at ") else f"{kind}{said}"
            )
        return converted
    if origin is tuple:
        words = (
            value.split()
            if isinstance(value, str)
            else list(value)
            if isinstance(value, Iterable)
            else [value]
        )
        return tuple(_convert(arguments[0], word) for word in words)
    if origin is Literal:
        if value not in arguments:
            raise _NotFitting(f"one of {', '.join(map(str, arguments))}")
        return value
    return _plain(annotation, value)


def _plain(annotation: Any, value: Any) -> Any:
    if annotation is bool:
        if value in (True, False):
            return bool(value)
        if value not in ("true", "false"):
            raise _NotFitting("true or false")
        return value == "true"
    try:
        if annotation is int:
            return int(value)
        if annotation is float:
            number = float(value)
            if math.isnan(number):
                raise ValueError
            return number
    except (TypeError, ValueError):
        raise _NotFitting("a whole number" if annotation is int else "a number") from None
    return Path(value) if annotation is Path else str(value)


def _metavar(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return _metavar(next(one for one in arguments if one is not type(None)))
    if origin is Annotated:
        for constraint in arguments[1:]:
            if isinstance(constraint, Choices):
                return "|".join(constraint.names())
        return _metavar(arguments[0])
    if origin is tuple:
        return f"'{_metavar(arguments[0])} ...'"
    if origin is Literal:
        return "|".join(arguments)
    return {bool: "true|false", int: "N", float: "X", Path: "PATH"}.get(annotation, "NAME")


def _expected(error: click.UsageError) -> tuple[str, str]:
    if isinstance(error, click.BadParameter) and "\0" in error.message:
        expected, _, found = error.message.partition("\0")
        return expected, repr(found)
    if isinstance(error, click.BadOptionUsage):
        return "a value", "nothing"
    return "--name value", error.format_message()


def _meant(option_name: str, fields: Mapping[str, Any], conf_keys: Mapping[str, str]) -> str:
    name = option_name.lstrip("-").replace("-", "_")
    near = difflib.get_close_matches(name, fields, 1)
    if name in conf_keys:
        return f"it is a key of {conf_keys[name]}: set it in the corpus's conf"
    return f"did you mean --{near[0].replace('_', '-')}?" if near else "--help lists all options"


def _words_of_file(words: Sequence[str], caller: Path) -> list[str]:
    """The options of every ``--config FILE``: lines ``name=value``, comments after ``#``."""
    found: list[str] = []
    for place, word in enumerate(words):
        name, has_value, value = word.partition("=")
        if name != "--config":
            continue
        if not has_value:
            value = words[place + 1] if place + 1 < len(words) else ""
        path = caller / value
        if not value:
            raise ConfigError("--config", "a value", "nothing", "write --config FILE")
        if not path.is_file():
            raise ConfigError(
                "--config", "a file of options", value or "nothing", "correct the name"
            )
        for number, line in read_lines(path):
            text = line.split(" #")[0].strip()
            if not text or text.startswith("#"):
                continue
            key, equals, rest = text.removeprefix("--").partition("=")
            if not equals:
                key, _, rest = text.removeprefix("--").partition(" ")
            if not rest:
                raise ConfigError(
                    f"{path}:{number}", "name=value", repr(text), "write one option a line"
                )
            found.append(f"--{key.strip()}={rest.strip().strip(chr(34) + chr(39))}")
    return found


def _order(words: Sequence[str]) -> list[str]:
    names = [w.partition("=")[0].lstrip("-").replace("-", "_") for w in words if w.startswith("--")]
    return list(dict.fromkeys(names))


def _last_word(words: Sequence[str], name: str) -> str:
    for place in range(len(words) - 1, -1, -1):
        flag, equals, value = words[place].partition("=")
        if words[place].startswith("--") and flag.lstrip("-").replace("-", "_") == name:
            return value if equals else words[place + 1]
    return ""
