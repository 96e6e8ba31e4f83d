"""YAML layers of a section's values: the repository's, a recipe's, a corpus's, and a preset's.

``conf/*.yaml`` hold all defaults, a section for each verb or kind of model. Over them lie, later
ones winning: ``overrides`` of ``conf/<recipe>.yaml``; the corpus's values; the preset's sections
and ``overrides.<recipe>`` of ``conf/presets/<preset>.yaml``; the corpus's values for the preset.
``recipe_options.<recipe>`` there are defaults of options, with the same place in the order.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from privasr_k2 import sections
from privasr_k2.errors import ConfigError

OVERRIDES, PRESETS, RECIPE_OPTIONS = "overrides", "presets", "recipe_options"


@functools.cache
def defaults(root: Path) -> Mapping[str, str]:
    """The address of every section of ``conf/*.yaml``, or file without sections, by its name.

    Raises:
        ConfigError: two files have a section of one name.
    """
    addresses: dict[str, str] = {}
    for file in sorted((root / "conf").glob("*.yaml")):
        names = sections.names(file)
        own = {name: sections.below(file, name) for name in names if name != OVERRIDES}
        for name, address in (own if names else {file.stem: str(file)}).items():
            if name in addresses:
                found = f"it is {addresses[name]}, too"
                raise ConfigError(address, "each section once", found, "rename it")
            addresses[name] = address
    return addresses


def layers(
    root: Path, name: str, *, recipe: str = "", preset: str = "small", own: Path = Path("none")
) -> list[str]:
    """The addresses of the layers of a section that exist, the later ones winning.

    Args:
        root: the checkout.
        name: a section, or a file below ``conf/`` such as ``reports/pate``.
        own: the corpus's layers: a folder of ``NAME.yaml`` and ``PRESET/NAME.yaml``; or a file or
            section with the sections ``NAME`` and ``presets.PRESET.NAME``.
    """
    conf = root / "conf"
    addresses = [
        defaults(root).get(name, f"{conf}/{name}.yaml"),
        sections.below(conf / f"{recipe}.yaml", f"{OVERRIDES}.{name}"),
        _own(own, name),
    ]
    if preset != "small":
        presets = conf / f"{PRESETS}/{preset}.yaml"
        addresses += [
            sections.below(presets, name),
            sections.below(presets, f"{OVERRIDES}.{recipe}.{name}"),
            _own(own, name, preset),
        ]
    return [address for address in addresses if sections.exists(address)]


def preset_options(root: Path, recipe: str, preset: str) -> dict[str, Any]:
    """The defaults of a recipe's options that a preset has, by the names of their fields."""
    presets = root / f"conf/{PRESETS}/{preset}.yaml"
    address = sections.below(presets, f"{RECIPE_OPTIONS}.{recipe}")
    if not sections.exists(address):
        return {}
    return dict(yaml.load(sections.read(address), Loader=sections.LOADER))


def value(addresses: Iterable[str], key: str) -> Any:
    """The value of a dotted key, of the last layer that has it; None without one."""
    found = None
    for address in addresses:
        node: Any = yaml.load(sections.read(address), Loader=sections.LOADER)
        for name in key.split("."):
            node = node.get(name) if isinstance(node, dict) else None
        found = found if node is None else node
    return found


def layout_of(root: Path, recipe: str) -> str:
    """The name of the file of ``conf/reports`` for a recipe: its own, or one that it shares.

    Without either it is the recipe's name.
    """
    files = sorted((root / "conf" / "reports").glob("*.yaml"))
    names = [file.stem for file in files]
    if recipe in names:
        return recipe
    shared = (name for name, file in zip(names, files)
              if recipe in (value([str(file)], "shared_by") or ()))  # fmt: skip
    return next(shared, recipe)


def unknown(root: Path, own: Path, preset: str, known: set[str]) -> list[str]:
    """Layers of a corpus that belong to no section of ``conf/``, and to none of ``known``."""
    known = known | set(defaults(root))
    if _is_sectioned(own):
        if not sections.exists(own):
            return []
        parents = [str(own), sections.below(own, f"{PRESETS}.{preset}")]
        inner = [(name, p) for p in parents if sections.exists(p) for name in sections.names(p)]
        known |= {PRESETS}
        return [sections.below(parent, name) for name, parent in inner if name not in known]
    files = [*own.glob("*.yaml"), *(own / preset).glob("*.yaml")]
    return [str(file) for file in files if file.stem not in known]


def _own(own: Path, name: str, preset: str = "") -> str:
    if _is_sectioned(own):
        return sections.below(own, f"{PRESETS}.{preset}.{name}" if preset else name)
    return str(own / preset / f"{name}.yaml")


def _is_sectioned(own: Path) -> bool:
    return bool(sections.split(own)[1]) or own.suffix == ".yaml"
