"""What was chosen on dev in recipe ``classlm``, as rows of tables.

``adapt_lm`` measures a class LM's root model on text whose names are tags, all others on words: a column says
which. A mixture has two perplexities of words: that of the model as it was written, and that of the exact
mixture with the same weights [turan2022, eq. 3].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.scoring.classlm_results import System, name_in_setting
from privasr_k2.scoring.report import chosen_row, number, read_chosen

ADAPTED, MIXTURES, WEIGHTS = "Fast marginal adaptation:", "Mixtures:", "Weights of the recognizer:"


def read_choices(paths: Iterable[Path]) -> dict[str, list[dict[str, str]]]:
    """The files of ``adapt_lm --out-choice``, ``interpolate_lms --out-weights``, ``tune_weights`` and
    ``tune_rescoring``, each told by its content.

    Returns:
        title of a table -> its rows, in the order of the files; titles without rows are left out.

    Raises:
        DataError: a file that is none of these.
    """
    found: dict[str, list[dict[str, str]]] = {ADAPTED: [], MIXTURES: [], WEIGHTS: []}
    for path in paths:
        content = read_json(path)
        keys = set(content) if isinstance(content, dict) else set()
        try:
            if "beta" in keys:
                found[ADAPTED].append(_adapted(path, content))
            elif "form" in keys:
                found[MIXTURES].append(_mixture(path, content))
            elif "lm_weight" in keys:
                chosen = replace(read_chosen(path, content), system=name_in_setting(path.parent))
                found[WEIGHTS].append(chosen_row(chosen))
            else:
                raise KeyError("beta, form or lm_weight")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            expected = "what adapt_lm, interpolate_lms, tune_weights or tune_rescoring writes"
            raise DataError(path, expected, repr(error), "choose on dev again") from error
    return {title: rows for title, rows in found.items() if rows}


def _system(path: Path) -> str:
    """The system that a file is beside: ``M1_eq1_choice.json``, ``M1_M2_weights.json``."""
    return name_in_setting(path).removesuffix("_choice").removesuffix("_weights")


def _adapted(path: Path, content: Mapping[str, Any]) -> dict[str, str]:
    equation, beta = content["equation"], float(content["beta"])
    tried = {
        float(one["beta"]): float(one["ppl"])
        for one in content["tried"]
        if one.get("equation", equation) == equation
    }
    at_edge = len(tried) > 1 and beta in (min(tried), max(tried))
    name = _system(path)
    return {
        "system": name,
        "equation": str(equation),
        "beta": f"{beta:g}",
        "betas tried": str(len(tried)),
        "dev PPL": number(tried.get(beta)),
        "of": "text with tags for names" if System("", name.rpartition("/")[2]).model == "M2" else "words",
        "at the edge of the grid": "yes" if at_edge else "no",
    }


def _mixture(path: Path, content: Mapping[str, Any]) -> dict[str, str]:
    models = [f"{float(one['weight']):.3f} {name_in_setting(Path(one['lm']))}" for one in content["lms"]]
    return {
        "system": _system(path),
        "LMs": " + ".join(models),
        "form": str(content["form"]),
        "weights from": str(content["chosen_by"]),
        "dev PPL": _figure(content["dev_ppl"]),
        "mixed exactly": _figure(content["dev_ppl_exact"]),
    }


def _figure(value: float | None) -> str:
    return number(None if value is None else float(value))
