"""Registries of named objects, and plugins that add to them.

The environment variable ``PRIVASR_PLUGINS`` names Python files, separated as in ``PATH``. Each is
run once, before the first look-up in any registry, and may register aggregation mechanisms
(:mod:`privasr_k2.privacy.pate.mechanisms`), encoders (:mod:`privasr_k2.am.encoders.common`),
families of public encoders (:mod:`privasr_k2.encoders.common`) and kinds of acoustic or language
models (:mod:`privasr_k2.am.kinds`, :mod:`privasr_k2.lm.neural.kinds`). A plugin is a program: name
only files that you trust.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Generic, TypeVar

from privasr_k2.errors import ConfigError

VARIABLE = "PRIVASR_PLUGINS"
T = TypeVar("T")
_begun: set[str] = set()


class _Uncached(SourceFileLoader):
    """Compiles the source each time: Python's cache takes an edit within a second for none."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def import_file(path: Path, name: str) -> ModuleType:
    """The module of a Python file, as the file is now.

    Args:
        name: of the module. It is in ``sys.modules`` before the file runs: dataclasses and spawned
            processes look their module up there.
    """
    spec = importlib.util.spec_from_file_location(name, path, loader=_Uncached(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_plugins() -> None:
    """Run the files of ``PRIVASR_PLUGINS`` that this process has not run yet.

    Raises:
        ConfigError: a file that is missing, is not Python, or imports what is not there.
    """
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = Path(name).resolve()
        if str(path) in _begun:  # also while it runs: it imports the registries
            continue
        _begun.add(str(path))
        module_name = f"privasr_plugin_{len(_begun)}_{path.stem}"
        if path.suffix != ".py" or not path.is_file():
            raise ConfigError(VARIABLE, "Python files", name, "correct the path")
        try:
            import_file(path, module_name)
        except (ImportError, SyntaxError) as error:
            found = f"{type(error).__name__}: {error}"
            place = f"{VARIABLE}: {path}"
            raise ConfigError(place, "a plugin that runs", found, "correct it") from error


class Registry(Generic[T]):
    """Objects by name.

    Args:
        what: the objects' kind, for errors.
        own: registers the package's objects at the first look-up, unless they are there already.

    >>> registry = Registry[int]("mechanism")
    >>> registry.add("one", 1)
    1
    >>> registry["two"]
    Traceback (most recent call last):
    ...
    privasr_k2.errors.ConfigError: mechanism: expected one of one, found 'two'
      way out: correct the name
    """

    def __init__(self, what: str, own: Callable[[], object] = lambda: None) -> None:
        self._what, self._own = what, own
        self._objects: dict[str, T] = {}

    def add(self, name: str, value: T) -> T:
        """Register ``value``.

        Raises:
            ConfigError: another object has this name.
        """
        if self._objects.get(name, value) is not value:
            place = f"{self._what} {name}"
            raise ConfigError(place, "a name of its own", "one that is taken", "rename it")
        self._objects[name] = value
        return value

    def items(self) -> dict[str, T]:
        """All objects by name, the package's before those of plugins."""
        self._own()
        load_plugins()
        return dict(self._objects)

    def names(self) -> tuple[str, ...]:
        """All names, sorted: the order of registering depends on who imports what first."""
        return tuple(sorted(self.items()))

    def __getitem__(self, name: str) -> T:
        objects = self.items()
        if name not in objects:
            expected = f"one of {', '.join(sorted(objects))}"
            raise ConfigError(self._what, expected, repr(name), "correct the name")
        return objects[name]

    def __contains__(self, name: object) -> bool:
        return name in self.items()
