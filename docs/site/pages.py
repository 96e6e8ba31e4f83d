"""Pages of the site that are made from the code: options, verbs, settings, errors, the library."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ERRORS = ("ConfigError", "DataError", "GraphError", "PrivacyError")


def all_pages(root: Path) -> dict[str, str]:
    """File name -> Markdown, for a folder ``docs/reference``.

    Args:
        root: of the checkout.
    """
    packages = sorted(
        path.parent for path in (root / "privasr_k2").rglob("__init__.py") if path.parent != root
    )
    if importlib.util.find_spec("torch") is None:
        packages = []
    pages = {f"api_{_dotted(root, folder)}.md": _package(root, folder) for folder in packages}
    intro = "Modules, by package." if packages else "Left out: this site was built without torch."
    pages["api.md"] = _contents("The library", intro, sorted(pages))
    pages["recipes.md"] = _commands("Options of recipes", _RECIPES_INTRO, _recipe_helps(root))
    pages["verbs.md"] = _commands("Verbs", _VERBS_INTRO, _verb_helps(root))
    pages["settings.md"] = _settings(root)
    pages["errors.md"] = _errors(root)
    return pages


def _contents(title: str, intro: str, names: list[str]) -> str:
    entries = "\n".join(name.removesuffix(".md") for name in names)
    return f"# {title}\n\n{intro}\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"


def _dotted(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def _package(root: Path, folder: Path) -> str:
    """A page of all modules of a package."""
    name = _dotted(root, folder)
    lines = [f"# {name}", ""]
    for path in sorted(folder.glob("*.py")):
        if path.name in ("__init__.py", "__main__.py"):
            continue
        module = _dotted(root, path)
        members = "" if folder.name == "bin" else ":members:\n"
        lines += [f"## {module}", "", "```{eval-rst}", f".. automodule:: {module}"]
        lines += [f"   {members}" if members else "", "```", ""]
    return "\n".join(lines)


_VERBS_INTRO = """`privasr verb NAME --help` prints the same. A stage of a recipe is one verb; its
settings stand in `conf/` ([settings](settings.md))."""
_RECIPES_INTRO = """`./run.sh CORPUS RECIPE --help` prints the same. Defaults are those of the
corpus in the heading."""


def _commands(title: str, intro: str, helps: Mapping[str, str]) -> str:
    parts = [f"## {name}\n\n```text\n{text.rstrip()}\n```\n" for name, text in helps.items()]
    return f"# {title}\n\n{intro}\n\n" + "\n".join(parts)


def _run(words: list[str], root: Path) -> str:
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.replace(f"{root}/", "")


def _verb_helps(root: Path) -> dict[str, str]:
    from privasr_k2.__main__ import verb_names

    def helped(verb: str) -> str:
        try:
            return _run([sys.executable, "-m", "privasr_k2", "verb", verb, "--help"], root)
        except subprocess.CalledProcessError:  # its packages are not installed
            text = (root / f"privasr_k2/bin/{verb}.py").read_text(encoding="utf-8")
            return ast.get_docstring(ast.parse(text)) or ""

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(verb_names(), pool.map(helped, verb_names())))


def _recipe_helps(root: Path) -> dict[str, str]:
    from privasr_k2.recipe.corpus import corpus_names
    from privasr_k2.recipe.front import recipe_names

    helps = {}
    for recipe in recipe_names(root):
        for corpus in ("mini", "mini_pate", *corpus_names(root)):
            words = [sys.executable, "-m", "privasr_k2", "run", corpus, recipe, "--help"]
            try:
                helps[f"{corpus} {recipe}"] = _run(words, root)
            except subprocess.CalledProcessError:  # no recipe of this corpus
                continue
            break
    return helps


def _settings(root: Path) -> str:
    """Every file of ``conf/`` as it stands."""
    parts = ["# Settings\n", "The files of `conf/`: every default, with what it means.\n"]
    for path in sorted((root / "conf").glob("*.yaml")):
        settings = path.read_text(encoding="utf-8")
        parts.append(f"## {path.relative_to(root)}\n\n```yaml\n{settings}```\n")
    return "\n".join(parts)


def _errors(root: Path) -> str:
    """What is expected, and the way out, of each error in the code."""
    rows: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in sorted((root / "privasr_k2").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for expected, way_out in _raised(tree):
            rows[_dotted(root, path.parent)].add((expected, way_out))
    lines = ["# Errors and ways out", "", "Every error names a place, what was expected there,"]
    lines += ["what was found, and a way out. `…` stands for what an error fills in.", ""]
    for package, of_package in rows.items():
        lines += [f"## {package}", "", "| expected | way out |", "|---|---|"]
        lines += [f"| {expected} | {way_out} |" for expected, way_out in sorted(of_package)]
        lines.append("")
    return "\n".join(lines)


def _raised(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Expected and way out of each error whose texts are in its function."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        named: dict[str, ast.expr] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                named.setdefault(node.targets[0].id, node.value)
        for node in ast.walk(function):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id not in _ERRORS or len(node.args) != 4:
                continue
            expected, way_out = (_text(node.args[at], named) for at in (1, 3))
            if expected and way_out:
                yield expected, way_out


def _text(node: ast.expr, named: Mapping[str, ast.expr]) -> str:
    """A literal as Markdown, or '' for what is known when it is raised only."""
    if isinstance(node, ast.Name) and node.id in named:
        node = named[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = node.value
    elif isinstance(node, ast.JoinedStr):
        found = "".join(
            part.value if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    else:
        return ""
    return re.sub(r"([|<>*_`\[\]$\\])", r"\\\1", " ".join(found.split()))
