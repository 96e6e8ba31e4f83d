"""Keys of configuration files and of ``--set``, checked for the whole recipe before anything runs.

The section of ``conf/`` has every key; the layers above it can only set those.
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from privasr_k2 import sections
from privasr_k2.errors import ConfigError
from privasr_k2.plugins import VARIABLE
from privasr_k2.recipe.layers import OVERRIDES
from privasr_k2.recipe.plan import Stage, Task, values_of
from privasr_k2.recipe.renames import REMOVED


def check_keys(stages: Sequence[Stage], work_dir: Path, defaults: Path) -> None:
    """Refuse keys that a stage's sections of ``defaults``, the folder ``conf``, lack.

    Raises:
        ConfigError: naming the file, the key, and the nearest known one; or a file that is no YAML.
    """
    seen: set[tuple[tuple[str, ...], str]] = set()
    for stage in stages:
        for task in stage.tasks:
            addresses = [work_dir / path for path in task.configs]
            bases = [address for address in addresses if _is_base(address, defaults)]
            known = [key for address in bases for key in keys_of(address)]
            if not known:
                continue
            own = (*bases, *(a for a in addresses if a.parent == defaults / "reports"))
            layers = [address for address in addresses if address not in own]
            for place, key in _given(task, layers):
                if (task.configs, key) not in seen:
                    seen.add((task.configs, key))
                    removed = REMOVED.get(task.argv[0], {}).get(key, "")
                    _check(place, key, known, [address.name for address in bases], removed)


def without_effect(stages: Sequence[Stage], work_dir: Path, defaults: Path) -> list[str]:
    """Sentences on keys of a corpus's layers that a recipe's ``--set`` replaces.

    >>> without_effect([], Path(), Path())
    []
    """
    reasons: dict[tuple[Path, str], str] = {}
    for stage in stages:
        for task in stage.tasks:
            settings = values_of(task.argv, "--set")
            values = dict(word.split("=", 1) for word in settings if "=" in word)
            files = [work_dir / path for path in task.configs] if values else []
            for file in [file for file in files if defaults not in file.parents]:
                for key in [key for key in keys_of(file) if key in values]:
                    reason = f"{stage.label} has {values[key]}, by an option"
                    reasons.setdefault((file, key), reason)
    return [f"{file}: {key} is not used: {why}" for (file, key), why in reasons.items()]


def _is_base(address: Path, defaults: Path) -> bool:
    file, section = sections.split(address)
    return Path(file).parent == defaults and not section.startswith(f"{OVERRIDES}.")


def _given(task: Task, files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        yield from ((str(file), key) for key in keys_of(file))
    for word in values_of(task.argv, "--set"):
        yield f"--set {word}", word.partition("=")[0]


def _check(place: str, key: str, known: Sequence[str], names: Sequence[str], removed: str) -> None:
    if any(f"{other}.".startswith(f"{key}.") or key.startswith(f"{other}.") for other in known):
        return  # the key itself, a group of keys, or something in a group that is empty by default
    if os.environ.get(VARIABLE) and f"{'.'.join(key.split('.')[:-2])}.kind" in known:
        return  # maybe settings of a kind that a plugin registers: its verb knows
    near = difflib.get_close_matches(key, known, 1)
    way_out = f"did you mean {near[0]}?" if near else "correct the key, or take it out"
    way_out = removed or way_out
    expected = f"a key of {' or '.join(f'conf/{name}' for name in names)}"
    raise ConfigError(place, expected, key, way_out)


@functools.cache
def keys_of(file: Path) -> tuple[str, ...]:
    """Dotted keys of a YAML file, or of a section, that have values."""
    try:
        content = yaml.load(sections.read(file), Loader=sections.LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(file, "YAML", " ".join(str(error).split()), "correct it") from error
    if not isinstance(content, dict | None):
        found, way_out = f"a {type(content).__name__}", "write 'key: value' lines"
        raise ConfigError(file, "keys and values", found, way_out)
    return tuple(_dotted(content or {}))


def _dotted(values: dict[Any, Any]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from (f"{key}.{inner}" for inner in _dotted(value))
        else:
            yield str(key)
