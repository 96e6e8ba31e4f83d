"""Systems of a recipe, which reports read from ``systems.jsonl`` in its experiment folder.

:meth:`privasr_k2.recipe.declare.Recipe.system` declares them. No name of a folder is parsed.
"""

from __future__ import annotations

import dataclasses
import json
import math
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
        label: its name in tables.
        method: ``public``, ``not_private``, ``pate``, ``dpsgd``, ``fedlm``, ``fmp``, ...
        folder: where its stages write, relative to the work folder.
        facts: values that tables select and show; an infinite epsilon is the string ``inf``.
        compare_with: names of the systems that it is tested against.
        public: name of the system of public data alone, or empty.
        not_private: name of the same method without protection, or empty.
        protects: what its guarantee covers, in words, where ``{unit}`` is the unit of its release;
            empty without a guarantee.
        headline: whether the first table of the page shows it.
        artifacts: paths in the work folder by kind: ``score_test``, ``privacy``, ``audit``, ...
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
        DataError: a line that is no system, a name twice, or a comparison with an unknown system.
    """
    way_out = "run the recipe again"
    systems: dict[str, System] = {}
    for number, line in read_lines(path):
        place = f"{path}:{number}"
        try:
            values = json.loads(line)
            system = System(**{**values, "compare_with": tuple(values["compare_with"])})
        except (ValueError, TypeError, KeyError) as error:
            expected = "a system as a recipe declares it"
            raise DataError(place, expected, repr(error), way_out) from error
        if system.name in systems:
            raise DataError(place, "each name once", system.name, way_out)
        systems[system.name] = system
    for system in systems.values():
        for other in (*system.compare_with, *filter(None, (system.public, system.not_private))):
            if other not in systems:
                raise DataError(path, "declared systems to compare with", other, way_out)
    return tuple(systems.values())


def _plain(system: System) -> dict[str, Any]:
    facts = {key: "inf" if value == math.inf else value for key, value in system.facts.items()}
    return {**dataclasses.asdict(system), "facts": facts}
