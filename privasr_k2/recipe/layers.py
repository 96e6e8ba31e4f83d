"""YAML layers of a section's values: the repository's, a recipe's, a corpus's, and a preset's.

``conf/*.yaml`` hold all defaults, a section for each verb or kind of model. Upon them lie, the
later ones
winning: ``overrides`` of ``conf/<recipe>.yaml``, and the corpus's own values. A preset adds its
sections and ``overrides.<recipe>``, of ``conf/presets/<preset>.yaml``, and the corpus's own values
for it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from privasr_k2 import sections
from privasr_k2.errors import ConfigError

OVERRIDES, PRESETS = "overrides", "presets"


@functools.cache
def defaults(root: Path) -> Mapping[str, str]:
    """The address of every section of ``conf/*.yaml``, by its name; a file without sections is one,
    too.

    Raises:
        ConfigError: two files have a section of one name.
    """
    found: dict[str, str] = {}
    for file in sorted((root / "conf").glob("*.yaml")):
        names = sections.names(file)
        addresses = {name: sections.below(file, name) for name in names} or {file.stem: str(file)}
        for name, address in addresses.items():
            if name in found:
                raise ConfigError(
                    address, "each section once", f"it is {found[name]}, too", "rename it"
                )
            if name != OVERRIDES:
                found[name] = address
    return found


def layers(
    root: Path, name: str, *, recipe: str = "", preset: str = "small", own: Path = Path("none")
) -> list[str]:
    """The addresses of the layers of a section that exist, the later ones winning.

    Args:
        root: the checkout.
        name: the section's name; or a file below ``conf/``, as ``reports/pate``.
        own: the corpus's layers: a folder of ``NAME.yaml`` and ``PRESET/NAME.yaml``; or a file, or
            a section, that has the sections ``NAME`` and ``presets.PRESET.NAME``.
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


def unknown(root: Path, own: Path, preset: str, known: set[str]) -> list[str]:
    """Layers of a corpus that belong to no section of ``conf/``, and to none of ``known``."""
    known = known | set(defaults(root))
    if _is_sectioned(own):
        if not sections.exists(own):
            return []
        inner = [
            (name, sections.below(own, name)) for name in sections.names(own) if name != PRESETS
        ]
        of_preset = sections.below(own, f"{PRESETS}.{preset}")
        if sections.exists(of_preset):
            inner += [(name, sections.below(of_preset, name)) for name in sections.names(of_preset)]
        return [address for name, address in inner if name not in known]
    files = [*own.glob("*.yaml"), *(own / preset).glob("*.yaml")]
    return [str(file) for file in files if file.stem not in known]


def _own(own: Path, name: str, preset: str = "") -> str:
    if _is_sectioned(own):
        return sections.below(own, f"{PRESETS}.{preset}.{name}" if preset else name)
    return str(own / preset / f"{name}.yaml")


def _is_sectioned(own: Path) -> bool:
    return bool(sections.split(own)[1]) or own.suffix == ".yaml"
