"""Preset paper: every number of the setup sections of three papers is what would run."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.federated.settings import FedLmConfig
from privasr_k2.lm.class_files import ClassLmConfig
from privasr_k2.recipe.front import Declaration, declare
from privasr_k2.recipe.plan import values_of
from tests.support import paper_numbers
from tests.support.paper_numbers import LIU2020, LIU2021, TURAN2022, Number, found, shown

ROOT = Path(__file__).resolve().parents[3]
#: No corpus's own values are in the way: of those with speech, and of text.
SPOKEN = {"fmp": ("ami", "mini"), "fedlm": ("ami", "mini", "librispeech")}
SPOKEN |= {"classlm": ("ami", "mini")}
TEXT = ("scotus", "sgd", "earnings21")
#: Of a first pass, or of what it recognizes.
NEEDS_SPEECH = r"n-gram LM|acoustic model.*|N-best lists.*|text of clients"


@functools.cache
def declared(corpus: str, recipe: str, *words: str) -> Declaration:
    given = ["--preset", "paper", "--work-dir", "nowhere", *words]
    return declare(corpus, recipe, given, ROOT, ROOT)


def cases() -> list[tuple[str, str, Number]]:
    numbers = {"fmp": LIU2020, "fedlm": LIU2021, "classlm": TURAN2022}
    return [(c, r, n) for r, corpora in SPOKEN.items() for c in corpora for n in numbers[r]]


def named(part: str | Number) -> str:
    """Of a case, in the name of a test."""
    return part if isinstance(part, str) else part.what


@pytest.mark.parametrize(("corpus", "recipe", "number"), cases(), ids=named)
def test_the_paper_s_number_is_what_runs(corpus: str, recipe: str, number: Number) -> None:
    assert found(declared(corpus, recipe), number) == pytest.approx(number.values)


@pytest.mark.parametrize("corpus", TEXT)
def test_so_it_is_where_there_is_text_alone(corpus: str) -> None:
    numbers = [n for n in LIU2021 if re.fullmatch(NEEDS_SPEECH, n.stages) is None]
    declaration = declared(corpus, "fedlm")
    wrong = {n.what: found(declaration, n) for n in numbers if found(declaration, n) != n.values}
    assert len(numbers) > 10 and wrong == {}


def test_the_other_data_set_of_liu2020_is_an_option_away() -> None:
    """100-best lists, and T = 2 for tables 3 and 4 (sections 3.2, 3.4 and 4)."""
    declaration = declared("mini", "fmp", "--nbest", "100", "--rounds", "1 2")
    by_what = {number.what: number for number in LIU2020}
    lists = by_what["hypotheses of an utterance of AMI"]
    assert found(declaration, lists) == (100,)
    for what in ("T of table 3, AMI", "T of table 4, AMI"):
        assert found(declaration, by_what[what]) == (2,)


def fedlm(declaration: Declaration, title: str) -> FedLmConfig:
    [task] = [stage.tasks[0] for stage in declaration.stages if stage.title == title]
    return config.load(FedLmConfig, map(Path, task.configs), values_of(task.argv, "--set"))


def test_cohorts_are_exactly_100_and_with_noise_100_on_average() -> None:
    """The paper's epsilons are of Poisson sampling, so that rows with noise draw in that way."""
    declaration = declared("ami", "fedlm")
    plain = fedlm(declaration, "federated, fl_all")
    assert plain.sampling_for(9_000).describe().startswith("fixed cohorts of 100 out of 9,000")
    private = fedlm(declaration, "federated and private, all, noise 0.5, poisson, all")
    assert private.sampling_for(10_000).describe() == "Poisson, rate 0.01"
    asked = declared("ami", "fedlm", "--client-fraction", "0.3")
    drawn = fedlm(asked, "federated, fl_all")
    assert drawn.sampling_for(9_000).describe() == "Poisson, rate 0.3"


def test_what_the_papers_say_in_words() -> None:
    fmp, fed = declared("ami", "fmp"), declared("ami", "fedlm")

    def all_of(declaration: Declaration, stages: str, key: str) -> set[str]:
        tasks = [s.tasks[0] for s in declaration.stages if re.fullmatch(stages, s.title)]
        return {next((w for w in t.argv if w.startswith(key)), "") for t in tasks}

    titles = {stage.title for stage in fed.stages}
    assert {"adapt rescored, for clients", "federated, fl_scratch_token"} <= titles
    assert all_of(fed, "text of clients", "client=") == {"client=zipf"}
    assert all_of(fmp, "clients of (dev|test)", "client=") == {"client=prefix"}
    assert all_of(fmp, "clients of test, .*", "client=") == {"client=meeting_speaker"}
    assert all_of(fmp, "release eps_.*", "unit=") == {"unit=utterance", "unit=user", ""}
    for declaration in (fmp, fed):  # a 5-gram that nothing prunes, and look-ahead with an end
        ngram, chunk = (
            Number("", "", (0,), stages, key)
            for stages, key in (
                ("n-gram LM", "max_ngrams"),
                ("acoustic model, blstm", "encoder.blstm.chunk"),
            )
        )
        assert found(declaration, ngram) == (0,) and found(declaration, chunk) > (0,)


def test_what_turan2022_says_in_words() -> None:
    """Section 3: a TDNN on MFCC at three speeds; section 2.2: relative frequencies in a class."""
    declaration = declared("ami", "classlm")
    stages = {stage.title: stage.tasks[0] for stage in declaration.stages}
    assert {"kind=mfcc", "speed_perturb=true"} <= set(stages["mfcc features"].argv)
    assert "encoder.kind=tdnn" in stages["acoustic model, tdnn"].argv
    mixtures = [task.argv for title, task in stages.items() if title.startswith("mixture ")]
    assert len(mixtures) == 5 and all("weights=preset" in argv for argv in mixtures)
    sub_lm = stages["M2, class n-gram, sanitized"].configs
    settings = config.load(ClassLmConfig, map(Path, sub_lm), [])
    assert (settings.sub_lm, settings.list_weight) == ("unigram", 0.0)


@pytest.mark.parametrize(
    ("paper", "numbers"), [("liu2020", LIU2020), ("liu2021", LIU2021), ("turan2022", TURAN2022)]
)
def test_the_page_has_a_row_of_each_number(paper: str, numbers: tuple[Number, ...]) -> None:
    text = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")
    part = text.partition(f"### {paper}\n")[2].partition("\n#")[0]
    rows = [line for line in part.splitlines() if line.startswith("| 3") or line.startswith("| 4")]
    expected = [f"| {n.section} | {n.what} | {shown(n.values)} |" for n in numbers]
    assert [row for row in expected if not any(line.startswith(row) for line in rows)] == []
    other = getattr(paper_numbers, f"{paper.upper()}_OTHER")
    assert [value for value in other if value not in " ".join(rows)] == []


def stated(text: str) -> set[str]:
    """Numbers as a paper's text has them, without citations, sections and indices of groups.

    >>> sorted(stated("In Section 3.4, group $t - 1$ of 1,000 with 0.10 [28], 14K hours."))
    ['0.10', '1,000', '14K']
    """
    text = re.sub(r"\[[\d, ]+\]|(Section|Table) \d(\.\d)?|(?m:^\d\.\d\. )|[tT] [-+=] 1", " ", text)
    return {word.strip(",") for word in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?[KM]?", text)}


@pytest.mark.parametrize(("paper", "numbers"), [("liu2020", LIU2020), ("liu2021", LIU2021)])
@pytest.mark.shared_data
def test_no_number_of_the_papers_is_left_out(
    shared_data: Path, paper: str, numbers: tuple[Number, ...]
) -> None:
    """Of the sections on data and setup, where the papers' texts lie beside the real data."""
    files = sorted((shared_data.parent / "papers").glob(f"{paper}_*.txt"))
    if not files:
        pytest.skip("no text of the paper beside the real data")
    text = files[0].read_text(encoding="utf-8")
    part = text.partition("\n3.1. Datasets")[2].partition("\n3.3. Evaluation")[0]
    words = stated(part) - set(getattr(paper_numbers, f"{paper.upper()}_OTHER"))
    known = {float(value) for number in numbers for value in number.values}
    plain = {float(word.replace(",", "")) for word in words if word[-1].isdigit()}
    assert len(part) > 3000 and plain <= known and {w for w in words if w[-1] in "KM"} == set()
