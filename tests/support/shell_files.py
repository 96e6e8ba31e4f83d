"""The repository's shell files, one a line, for shellcheck."""

from __future__ import annotations

import re
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
        paths = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top])]
        names = [n for n in (path.relative_to(ROOT) for path in paths) if not _is_output(n)]
    return sorted(name for name in names if (ROOT / name).is_file())


def _is_output(name: Path) -> bool:
    """Whether .gitignore has this file, for a folder without git."""
    ignored = r"(.*/)?__pycache__/.*|egs/(user|[^/]+/(data|exp|corpus))(/.*)?"
    return re.fullmatch(ignored, name.as_posix()) is not None


def shell_files() -> list[Path]:
    """Files named ``*.sh`` and those whose first line names a shell."""
    return [n for n in repository_files() if n.suffix == ".sh" or _has_shell_line(ROOT / n)]


def _has_shell_line(path: Path) -> bool:
    if path.suffix not in {"", ".run"}:
        return False
    with path.open("rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and first.rstrip().endswith((b"bash", b"/sh"))


if __name__ == "__main__":
    print("\n".join(map(str, shell_files())))
