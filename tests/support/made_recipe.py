"""A small recipe's systems with scores, releases and perplexities as the verbs write them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privasr_k2 import config
from privasr_k2.fileio import write_json
from privasr_k2.privacy import events, release
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.people import People
from privasr_k2.privacy.spending import Spending
from privasr_k2.recipe import layers
from privasr_k2.recipe.systems import System
from privasr_k2.report.layout import Layout
from privasr_k2.report.measures import Context
from privasr_k2.report.results import Origin, Row, collect
from privasr_k2.scoring.corpus_info import CorpusInfo
from tests.support.conf import section
from tests.support.made_scores import write_score

CONF = Path(__file__).resolve().parents[2] / "conf"
REFS = {f"u{n:02d}": "a b c d" for n in range(30)}
CORPUS = CorpusInfo("toy", True, {})


def hyps(wrong: int, text: str = "x b c d") -> dict[str, str]:
    """The first ``wrong`` utterances have an error."""
    return {name: text if n < wrong else ref for n, (name, ref) in enumerate(REFS.items())}


def layout(name: str, *values: str) -> Layout:
    """A layout of ``conf/reports``, with its paper's figures."""
    own = CONF / "reports" / f"{name}.yaml"
    paper = layers.value([str(own)], "paper")
    published = [section(paper)] if paper else []
    return config.load(Layout, [section("report"), *published, own], values)


def context(systems: Sequence[System], *tests: str) -> Context:
    """What readers may use."""
    return Context(tuple(systems), 2000, 0.95, 1, tests or ("wer", "ppl", "recall"))


def origin(ledger: Path | None = None, recipe: str = "pate") -> Origin:
    """Of the recipe."""
    return Origin(recipe, "./run.sh toy pate", CORPUS, lambda path: "0.1.0 abc", ledger)


def spend(
    folder: Path, noise: float, unit: str = "speaker", people: People | None = None, **more: Any
) -> Path:
    """Make a release with a Gaussian in ``folder``, entered in ``folder/../ledger.json``."""
    values: dict[str, Any] = {
        "data": "toy/train", "released": "labels", "unit": unit, "units": 40,
        "relation": Relation.ADD_OR_REMOVE_ONE, "event": events.gaussian(noise), "sampling": "all",
        "delta": 1e-5, "does_not_cover": ("the roster; and the pool",),
    }  # fmt: skip
    spending = Spending(**{**values, **more})
    path = folder / "privacy.json"
    book = folder.parent / "ledger.json"
    shared = {"spending": spending, "fingerprint": folder.name, "max_epsilon": None}
    shared["people"] = people
    with release.begin(book, beside=path, **shared) as begun:
        begun.finish()
    return path


def system(folder: Path, name: str, method: str, wrong: int | None = None, **more: Any) -> System:
    """A system with a score of so many errors on test, if any."""
    own = folder / name
    artifacts = dict(more.pop("artifacts", {}))
    if wrong is not None:
        write_score(own / "score_test", {"test": (REFS, hyps(wrong))})
        artifacts["score_test"] = str(own / "score_test")
    values = {"label": name.replace("_", " "), "folder": str(own), **more}
    return System(name, method=method, artifacts=artifacts, **values)


def pate(folder: Path) -> list[System]:
    """A public system, one that is not private, and two students; the second meets the first."""
    beside = {"public": "public", "not_private": "all_data", "protects": "a speaker"}
    beside |= {"headline": True}
    return [
        system(folder, "public", "public", 28, facts={"model": "ctc"}),
        system(
            folder, "all_data", "not_private", 8, facts={"model": "ctc"}, compare_with=("public",),
            public="public",
        ),
        system(
            folder, "gnmax", "pate", 12, compare_with=("public",), **beside,
            facts={"model": "ctc", "mechanism": "gnmax", "teachers": 40, "epsilon": 8.0},
            artifacts={"privacy": str(spend(folder / "gnmax", 2.0))},
        ),
        system(
            folder, "lnmax", "pate", 17, compare_with=("public", "gnmax"), **beside,
            facts={"model": "ctc", "mechanism": "lnmax", "teachers": 40, "epsilon": 1.0},
            artifacts={"privacy": str(spend(folder / "lnmax", 4.0))},
        ),
    ]  # fmt: skip


def rows_of(folder: Path, systems: Sequence[System], *tests: str) -> list[Row]:
    """All rows of a recipe, with its ledger."""
    return collect(systems, origin(folder / "ledger.json"), context(systems, *tests))


def perplexities(path: Path, ppls: Mapping[str, float], groups: int = 6) -> Path:
    """A file of verb ``perplexity``: the same groups for all, harder and easier by as much."""
    middle = (groups - 1) / 2
    records = [
        {
            "lm": f"exp/lm/{name}", "ppl": ppl, "ppl_with_oov": None, "words": 40,
            "sentences": 10, "oov": 0,
            "groups": {
                f"c{n}": [10 * (math.log(ppl) + (n - middle) / 10), 10] for n in range(groups)
            },
        }
        for name, ppl in ppls.items()
    ]  # fmt: skip
    write_json(path, {"treatment": "closed", "by": "call", "lms": records})
    return path


def figure(rows: Sequence[Row], name: str, metric: str, **more: Any) -> Row:
    """The one row of a system's figure."""
    matching = [
        row for row in rows
        if (row.system, row.metric, row.against) == (name, metric, "")
        and all(getattr(row, key) == value for key, value in more.items())
    ]  # fmt: skip
    assert len(matching) == 1, matching
    return matching[0]


def changed(one: System, **values: Any) -> System:
    """The same with other values."""
    return dataclasses.replace(one, **values)
