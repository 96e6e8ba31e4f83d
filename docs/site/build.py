"""Build the site: ``python docs/site/build.py OUT``, which ``privasr docs`` runs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What pages link to.
_COPIED = ("conf", "docs", "egs", "local", "benchmarks", "tests", "privasr_k2")
#: Of runs, below ``egs/``.
_MADE = shutil.ignore_patterns("exp", "data", "corpus", "privacy", "*.ledger", "__pycache__")


def main(out: Path) -> None:
    """The site in ``out``. Exits with Sphinx's status where there is a warning."""
    from sphinx.cmd.build import main as sphinx

    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    from pages import all_pages

    from privasr_k2.fileio import atomic_path

    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "run.sh"):
            shutil.copy(path, source)
        for part in _COPIED:
            shutil.copytree(ROOT / part, source / part, ignore=_MADE)
        (source / "docs/reference").mkdir()
        for page, text in all_pages(ROOT).items():
            (source / "docs/reference" / page).write_text(text, encoding="utf-8")
        # Of the notebook's process.
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(ROOT), os.getenv("PYTHONPATH")])
        )
        options = ["-q", "-W", "--keep-going", "-c", str(ROOT / "docs/site")]
        options += ["-d", f"{name}/.trees"]
        with atomic_path(out) as site:
            if status := sphinx([*options, "-b", "html", name, str(site)]):
                raise SystemExit(status)
    print(f"{out}/docs/index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
