"""The repository's shell files, one a line: what shellcheck reads, from tests/run.sh and from the
tests.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def repository_files() -> list[Path]:
    """All files that git tracks or would, relative to the root; a folder without git is walked."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [Path(name) for name in listed.stdout.splitlines()]
    else:
        tops = [top for top in ROOT.iterdir() if not top.name.startswith(".") or top.name == ".ci"]
        found = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top])]
        names = [name for name in (path.relative_to(ROOT) for path in found) if not _made(name)]
    return sorted(name for name in names if (ROOT / name).is_file())


def _made(name: Path) -> bool:
    """Whether a run wrote this file: what .gitignore says, for a folder without git."""
    parts = name.parts
    return "__pycache__" in parts or (
        parts[0] == "egs"
        and (parts[1:2] == ("user",) or parts[2:3] in {("data",), ("exp",), ("corpus",)})
    )


def shell_files() -> list[Path]:
    """Files named ``*.sh`` and those whose first line names a shell."""
    return [
        name for name in repository_files() if name.suffix == ".sh" or _has_shell_line(ROOT / name)
    ]


def _has_shell_line(path: Path) -> bool:
    if path.suffix not in {"", ".run"}:
        return False
    with path.open("rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and first.rstrip().endswith((b"bash", b"/sh"))


if __name__ == "__main__":
    print("\n".join(map(str, shell_files())))
