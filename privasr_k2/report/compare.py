"""Every pair of some systems, as verb ``compare`` prints them: a report without a recipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from privasr_k2 import config
from privasr_k2.errors import DataError
from privasr_k2.recipe.systems import System
from privasr_k2.report.layout import Layout
from privasr_k2.report.markdown import report_text
from privasr_k2.report.measures import Context
from privasr_k2.report.results import Origin, collect
from privasr_k2.scoring.corpus_info import CorpusInfo

_COLUMNS = (
    "part, label, words, wer, wer interval, errors, insertions, deletions, substitutions, cer"
)

_TESTS = ("wer", "name_wer", "other_wer", "recall", "false_alarm_rate")


def comparison_text(folders: Sequence[Path], corpus: CorpusInfo) -> str:
    """Tables in Markdown: error rates, names, and all pairs tested, corrected by Holm.

    Args:
        folders: two or more, of ``wer``, of the same role and scored with the same options.

    Raises:
        DataError: fewer than two, or systems that were scored on other data or with other options.
    """
    if len(folders) < 2:
        found = str(len(folders))
        raise DataError("--in-scores", "two or more folders that wer wrote", found, "name more")
    names = system_names(folders)
    systems = tuple(
        System(name, name, "system", path, {}, tuple(names[:n]), artifacts={"score_test": path})
        for n, (name, path) in enumerate(zip(names, map(str, folders), strict=True))
    )
    table = {"title": "Systems", "kinds": ["score_test"], "columns": _COLUMNS.split(", ")}
    values = {
        "recipe": "compare",
        "paper": "",
        "title": "Systems compared",
        "command": "",
        "corpus": corpus.name,
        "num_replicates": 1,
        "confidence": 0.95,
        "seed": 1,
        "phones": False,
        "cmudict": "none",
        "g2p": "none",
        "tests": list(_TESTS),
        "facts": {},
        "tables": [table],
        "figures": [],
        "people": [],
        "published": [],
        "as_published": [],
        "notes": [],
        "shared_by": [],
        "max_lines": sys.maxsize,
    }
    layout = config.from_values(Layout, values, "compare")
    origin = Origin("compare", "", corpus, lambda path: "", None)
    rows = collect(systems, origin, Context(systems, 1, 0.5, 1, _TESTS))
    return report_text(layout, rows, corpus.heading, {})


def system_names(folders: Sequence[Path]) -> list[str]:
    """A name for each folder: the one around it, with as many above it as tell all of them apart.

    Where several stand in one folder, their own names belong to it.

    >>> system_names([Path("/x/one/ctc/score"), Path("/x/two/ctc/score"), Path("/x/two/lm/score")])
    ['one/ctc', 'two/ctc', 'two/lm']
    >>> system_names([Path("/x/fmp/score_test"), Path("/x/fmp/score_test_lm")])
    ['score_test', 'score_test_lm']

    Raises:
        DataError: a folder that is named twice.
    """
    paths = [folder.resolve() for folder in folders]
    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        raise DataError(twice[0], "different folders", "the same one twice", "name it once")
    around = [path.parent.parts for path in paths]
    parts = around if len(set(around)) == len(around) else [path.parts for path in paths]
    length = 1
    while len({of[-length:] for of in parts}) < len(set(parts)):
        length += 1
    return ["/".join(of[-length:]) for of in parts]
