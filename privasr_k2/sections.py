"""Sections of YAML files: ``FILE.yaml#SECTION`` is what stands below a key, ``#A.B`` below B in A.

A section reads as a file with the same content, so their fingerprints are the same.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import yaml

from privasr_k2.errors import ConfigError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ADDRESS = re.compile(r"(.+\.ya?ml)#([\w.-]+)")


def split(address: str | Path) -> tuple[str, str]:
    """The file and the section of an address; an empty section is the whole file.

    >>> split("conf/common.yaml#lang"), split("conf/lang.yaml")
    (('conf/common.yaml', 'lang'), ('conf/lang.yaml', ''))
    """
    match = _ADDRESS.fullmatch(os.fspath(address))
    return (match[1], match[2]) if match else (os.fspath(address), "")


def below(address: str | Path, name: str) -> str:
    """The address of a section of a file, or of a section.

    >>> below("corpus.yaml#conf", "decode"), below("conf.yaml", "decode")
    ('corpus.yaml#conf.decode', 'conf.yaml#decode')
    """
    return f"{address}{'.' if split(address)[1] else '#'}{name}"


def exists(address: str | Path) -> bool:
    """Whether there is such a file, with such a section.

    Raises:
        ConfigError: the file is no YAML.
    """
    file, section = split(address)
    return os.path.isfile(file) and (not section or _find(file, section) is not None)


def names(address: str | Path) -> list[str]:
    """The sections in a file or section: its keys, if each holds a group, else none."""
    file, section = split(address)
    node = _find(file, section)
    if isinstance(node, yaml.MappingNode) and all(_is_group(value) for _, value in node.value):
        return [key.value for key, _ in node.value]
    return []


def read(address: str | Path) -> str:
    """The text of a file or section, the latter without its indentation.

    Raises:
        ConfigError: no such section, a duplicate section, or no YAML.
        FileNotFoundError: no such file.
    """
    file, section = split(address)
    if not section:
        return Path(file).read_text(encoding="utf-8")
    node = _find(file, section)
    if node is None:
        raise ConfigError(file, f"a section {section}", "none", "correct the name")
    lines = Path(file).read_text(encoding="utf-8").splitlines(keepends=True)
    start, end = node.start_mark, node.end_mark
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        indent = " " * start.column
        return "".join(line.removeprefix(indent) for line in lines[start.line : end.line])
    inside = lines[start.line : end.line + 1]
    inside[-1] = inside[-1][: end.column]
    return "".join([inside[0][start.column :], *inside[1:]]) + "\n"


def _is_group(node: yaml.Node) -> bool:
    is_empty = isinstance(node, yaml.ScalarNode) and node.value == ""
    return isinstance(node, yaml.MappingNode) or is_empty


def _find(file: str, section: str) -> yaml.Node | None:
    node = _root(file, os.stat(file).st_mtime_ns)
    for name in section.split(".") if section else ():
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = [value for key, value in pairs if key.value == name]
        if len(found) > 1:
            raise ConfigError(file, "each section once", f"{section} twice", "join the two")
        if not found:
            return None
        node = found[0]
    return node


@functools.cache
def _root(file: str, mtime_ns: int) -> yaml.Node | None:
    """The nodes of a YAML file as it was at a time."""
    try:
        return yaml.compose(Path(file).read_text(encoding="utf-8"), Loader=LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(file, "YAML", " ".join(str(error).split()), "correct it") from error
