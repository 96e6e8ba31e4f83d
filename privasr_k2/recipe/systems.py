"""Systems of a recipe: each is declared once, and reports read the declaration.

A recipe declares a system with its facts (:meth:`privasr_k2.recipe.declare.Recipe.system`). The
stages write into the system's folder. ``systems.jsonl`` in the recipe's experiment folder holds one
declaration a line. Nothing is parsed from the name of a folder.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines, write_text

Fact = str | int | float | bool | None


@dataclass(frozen=True)
class System:
    """One trained or untrained way to a result, as the recipe declared it.

    Attributes:
        name: unique within the recipe, ``ctc/gnmax_15_8``; a key, never parsed.
        label: how tables name it.
        method: what made it: ``public``, ``not_private``, ``pate``, ``dpsgd``, ``fedlm``, ``fmp``,
            ...
        folder: where its stages write, relative to the work folder.
        facts: what tables select and show: model, mechanism, teachers, the epsilon asked for, ...
            An infinite epsilon is the string ``inf``.
        compare_with: names of the systems that it is tested against.
        public: name of the system of public data alone; empty where there is none.
        not_private: name of the same method without protection; empty where there is none.
        protects: what its guarantee covers, in words; empty where it claims none.
        headline: whether the first table of the page shows it.
        artifacts: what its stages write, by kind (``score_test``, ``privacy``, ``labels``,
            ``audit``, ...), relative to the work folder.
    """

    name: str
    label: str
    method: str
    folder: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    compare_with: tuple[str, ...] = ()
    public: str = ""
    not_private: str = ""
    protects: str = ""
    headline: bool = False
    artifacts: Mapping[str, str] = field(default_factory=dict)


def write_systems(path: Path, systems: Iterable[System]) -> None:
    """Write one system a line; an unchanged file is left alone."""
    text = "".join(json.dumps(_plain(system)) + "\n" for system in systems)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)


def read_systems(path: Path) -> tuple[System, ...]:
    """The systems of a recipe, in the order of their declaration.

    Raises:
        DataError: a line that is no system, a name that stands twice, or a comparison with an
            unknown system.
    """
    systems: dict[str, System] = {}
    for number, line in read_lines(path):
        system = _system(f"{path}:{number}", line)
        if system.name in systems:
            raise DataError(
                f"{path}:{number}", "each name once", system.name, "run the recipe again"
            )
        systems[system.name] = system
    for system in systems.values():
        for other in (*system.compare_with, *filter(None, (system.public, system.not_private))):
            if other not in systems:
                raise DataError(
                    path, "declared systems to compare with", other, "run the recipe again"
                )
    return tuple(systems.values())


def _plain(system: System) -> dict[str, Any]:
    values = dataclasses.asdict(system)
    values["facts"] = {key: _finite(value) for key, value in system.facts.items()}
    return values


def _finite(value: Fact) -> Fact:
    return "inf" if isinstance(value, float) and value == float("inf") else value


def _system(place: str, line: str) -> System:
    try:
        values = json.loads(line)
        return System(**{**values, "compare_with": tuple(values["compare_with"])})
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            place, "a system as a recipe declares it", repr(error), "run the recipe again"
        ) from error
