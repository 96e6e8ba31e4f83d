"""The layers of docs/design.md as data, and the package's modules."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "privasr_k2"

#: Layer of every module or sub-package at the top of privasr_k2; a new one has to be entered here.
LAYERS = {
    **dict.fromkeys(
        ["errors", "fileio", "config", "constraints", "sections", "randomness", "compat"], 0
    ),
    **dict.fromkeys(["environment", "ragged", "recipe", "plugins"], 0),
    **dict.fromkeys(["text", "privacy", "scoring"], 1),
    **dict.fromkeys(["corpora", "data", "lm", "training", "publish", "encoders"], 2),
    "graph": 3,
    "am": 4,
    **dict.fromkeys(["decoding", "confidence"], 5),
    **dict.fromkeys(["pate", "dpsgd", "federated", "attack"], 6),
    **dict.fromkeys(["report", "bin", "__main__"], 7),
}
#: Imports between different parts of one layer; layer 0 is free within itself.
SIDEWAYS = {
    *(("data", "corpora"), ("corpora", "data"), ("scoring", "privacy"), ("text", "privacy")),
    *(("lm", "data"), ("lm", "training"), ("bin", "report"), ("encoders", "data")),
}
#: Where k2 may be named at all, and then inside functions only.
K2_PLACES = ("graph.", "decoding.", "am.losses", "am.rnnt_loss", "compat")
#: Imports lhotse at its top, as it extends its classes; others import it inside functions only.
LHOTSE_CLASSES = "data.extractors"
#: Free of torch, lhotse and k2, also inside functions: besides layers 0 and 1 without compat.
LIGHT = {
    *("lm.arpa", "lm.ngram", "lm.sub_lm", "lm.names", "lm.classes", "lm.class_files"),
    *("lm.marginals", "lm.interpolate"),
}
HEAVY = {"torch", "lhotse", "k2"}


@dataclass(frozen=True)
class Import:
    """One import statement; ``at_top``: it runs when the module is imported."""

    target: str
    line: int
    at_top: bool


def modules() -> dict[str, Path]:
    """All modules by their dotted name inside the package."""
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        paths[name] = path
    return paths


def imports(path: Path) -> list[Import]:
    """Every import of a file but those under ``if TYPE_CHECKING``, which never run."""
    return list(_walk(ast.parse(path.read_text(encoding="utf-8")), at_top=True))


def _walk(node: ast.AST, *, at_top: bool) -> list[Import]:
    found: list[Import] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            found += [Import(alias.name, child.lineno, at_top) for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            base = "." * child.level + (child.module or "")
            # Only names of the package itself are modules.
            of_package = [f"{base}.{alias.name}" for alias in child.names]
            names = of_package if base == "privasr_k2" else [base]
            found += [Import(name, child.lineno, at_top) for name in names]
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            found += [i for inner in child.orelse for i in _walk(inner, at_top=at_top)]
        else:
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            found += _walk(child, at_top=at_top and not inside)
    return found


def part(module: str) -> str:
    """The part of the package that has a layer: the first piece of a module's name."""
    return module.split(".")[0]


def layer_problems(module: str, found: list[Import]) -> list[str]:
    """The imports of a module that break the rules of the layers.

    >>> layer_problems("text.normalize", [Import("privasr_k2.am.ctc", 3, True)])
    ['text.normalize:3: layer 1 imports privasr_k2.am.ctc of layer 4']
    """
    own, layer, problems = part(module), LAYERS[part(module)], []
    for item in found:
        where = f"{module}:{item.line}"
        top, _, rest = item.target.partition(".")
        if item.target.startswith("."):
            problems.append(f"{where}: write imports in full, found {item.target}")
        elif top == "privasr_k2" and rest:
            other = part(rest)
            if rest == LHOTSE_CLASSES and item.at_top:
                problems.append(f"{where}: {item.target} is imported inside functions")
            if other not in LAYERS:
                problems.append(f"{where}: {item.target} is in no layer")
            elif LAYERS[other] > layer:
                upper = f"{item.target} of layer {LAYERS[other]}"
                problems.append(f"{where}: layer {layer} imports {upper}")
            elif LAYERS[other] == layer != 0 and other != own and (own, other) not in SIDEWAYS:
                both = f"{own} and {other} of layer {layer}"
                problems.append(f"{where}: {both} do not know each other")
        elif top == "k2" and (item.at_top or not module.startswith(K2_PLACES)):
            places = f"inside functions of {', '.join(K2_PLACES)} only"
            problems.append(f"{where}: k2 is imported {places}")
        elif top in HEAVY and ((layer <= 1 and module != "compat") or module in LIGHT):
            problems.append(f"{where}: no {top} here")
        elif module != LHOTSE_CLASSES and item.at_top and top == "lhotse":
            problems.append(f"{where}: lhotse is imported inside functions")
    return problems
