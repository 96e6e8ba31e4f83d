"""Python files that are run by their path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privasr_k2 import plugins
from privasr_k2.errors import ConfigError


def test_an_edit_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    """Python's own cache of compiled files compares size and whole seconds."""
    path = tmp_path / "recipe.py"
    for value in (5, 6):
        path.write_text(f"value = {value}\n")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert plugins.import_file(path, "edited_recipe").value == value
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", ["none.py", "plugin.txt"])
def test_what_is_no_python_file_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plugin.txt").write_text("")
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / name))
    with pytest.raises(ConfigError, match="Python files"):
        plugins.load_plugins()
