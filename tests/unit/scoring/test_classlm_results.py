from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.scoring.classlm_choices import ADAPTED, MIXTURES, WEIGHTS, read_choices
from privasr_k2.scoring.classlm_results import (
    System,
    pooled,
    read_perplexities,
    read_systems,
    read_texts,
)
from privasr_k2.scoring.entities import ALL, EntityCounts
from privasr_k2.scoring.results import read_score
from tests.unit.scoring.classlm_folders import write_perplexity, write_system, write_texts

M1 = System("sanitized", "M1")


def test_systems_are_sorted_as_the_tables_are() -> None:
    names = ("mixed/M1_M2_M4", "mixed/M1_M2_exact", "mixed/M1_M2_M3", "mixed/M1_M2",
             "direct_12/M1", "adapt_20/M1_eq1", "adapt_9.5/M4", "original/M2", "sanitized/M2",
             "sanitized/M1")  # fmt: skip
    systems = [System(*name.split("/")) for name in names]
    assert [str(s) for s in sorted(systems, key=lambda s: s.order)] == [
        *("sanitized/M1", "sanitized/M2", "original/M2", "adapt_9.5/M4", "adapt_20/M1_eq1", "direct_12/M1"),
        *("mixed/M1_M2", "mixed/M1_M2_exact", "mixed/M1_M2_M3", "mixed/M1_M2_M4"),
    ]


def test_perplexities_know_their_systems_from_their_paths(tmp_path: Path) -> None:
    path = write_perplexity(
        tmp_path, {"sanitized/M1": 100.0, "adapt_12/M2_eq1": 90.0, "mixed/M1_M2_M4": 80.0}
    )
    found = read_perplexities(path)
    assert found.ppl == {M1: 100.0, System("adapt_12", "M2_eq1"): 90.0, System("mixed", "M1_M2_M4"): 80.0}
    assert found.with_oov[M1] == 101.0
    assert (found.words, found.sentences, found.oov) == (300, 60, 2)


@pytest.mark.parametrize(
    ("lm", "message"),
    [
        ("exp/lm/M1.arpa.gz", "<setting>/lm/<system>"),
        ("exp/adapted_12/lm/M1.arpa.gz", "adapt_<percent>"),
        ("exp/adapt_12/M1.arpa.gz", "adapt_12/M1.arpa.gz"),
    ],
)
def test_models_elsewhere_are_named(tmp_path: Path, lm: str, message: str) -> None:
    record = {"lm": lm, "words": 1, "sentences": 1, "oov": 0, "ppl": 2.0, "ppl_with_oov": 2.0}
    write_json(tmp_path / "p.json", {"treatment": "t", "lms": [record]})
    with pytest.raises(DataError, match=message):
        read_perplexities(tmp_path / "p.json")


def test_perplexities_of_other_texts_or_twice_are_refused(tmp_path: Path) -> None:
    record = {"lm": "sanitized/lm/M1", "words": 1, "sentences": 1, "oov": 0, "ppl": 2.0, "ppl_with_oov": None}
    exp = {**record, "lm": "exp/sanitized/lm/M1.arpa"}
    other = {**exp, "lm": "exp/original/lm/M1.arpa", "oov": 1}
    path = tmp_path / "p.json"
    for records, message in (
        ([record, exp], "sanitized/M1 twice"),
        ([record, other], "one text"),
        ([], "no model"),
        ([{"lm": "sanitized/lm/M1"}], "perplexity writes"),
    ):
        write_json(path, {"treatment": "t", "lms": records})
        with pytest.raises(DataError, match=message):
            read_perplexities(path)


def test_texts_are_read_and_others_refused(tmp_path: Path) -> None:
    parts = read_texts(write_texts(tmp_path))
    assert [part.name for part in parts] == ["background", "adapt_12", "dev", "test"]
    assert (parts[0].minutes, parts[0].words, parts[0].names) == (None, 6000, {"PER": (1070, 3)})
    assert [(part.percent, part.heard) for part in parts] == [(None, 0), (12.345, 2), (None, 0), (None, 0)]
    write_json(tmp_path / "about.json", {"sizes": {}, "parts": {"dev": {"words": 1}}})
    with pytest.raises(DataError, match=r"about\.json: expected what split_text writes"):
        read_texts(tmp_path)


def test_error_rates_are_those_of_test(tmp_path: Path) -> None:
    folders = [
        write_system(tmp_path, "sanitized/M1", 30, 0),
        write_system(tmp_path, "sanitized/M1", 60, 0, role="dev"),
        write_system(tmp_path, "adapt_12/M1_eq1", 12, 6),
    ]
    found = read_systems(folders)
    assert {str(s): m.result.counts.percent for s, m in found.items()} == {
        "sanitized/M1": 10.0,
        "adapt_12/M1_eq1": 6.0,
    }
    slots = found[System("adapt_12", "M1_eq1")].slots
    assert list(slots["test", "u0"]) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0]
    assert not any(slots["test", "u12"])


def test_folders_that_do_not_fit_are_named(tmp_path: Path) -> None:
    first = write_system(tmp_path, "sanitized/M1", 30, 0)
    for folder, message in (
        (first, "sanitized/M1 twice"),
        (write_system(tmp_path, "original/M1", 3, 0, ref=("ask", "ann", "now")), "utterances and references"),
        (write_system(tmp_path, "first/M1", 3, 0), "<setting>/<system>/score_<role>"),
        (write_system(tmp_path, "original/M2", 3, 0, role="pool"), "the role test"),
        (write_system(tmp_path, "original/M3", 3, 0, parts=("a", "b")), "score all systems alike"),
    ):
        with pytest.raises(DataError, match=message):
            read_systems([first, folder])


def test_parts_are_taken_together(tmp_path: Path) -> None:
    one = read_score(write_system(tmp_path, "sanitized/M1", 13, 7))
    two = read_score(write_system(tmp_path, "sanitized/M2", 13, 7, parts=tuple("abcde")))
    whole, merged = pooled(one), pooled(two)
    assert whole is one.parts["test"]
    assert merged.speakers == whole.speakers
    assert (merged.utterances, merged.ref_words, merged.oov) == (60, 300, None)
    assert merged.interval is not None and merged.interval.low < 20 / 300 < merged.interval.high
    assert merged.entities is not None and whole.entities is not None
    assert merged.entities.classes == whole.entities.classes == {"PER": EntityCounts(53, 60, 53)}
    assert merged.entities.speakers == whole.entities.speakers
    assert merged.entities.intervals[ALL] is not None


def test_choices_are_told_by_their_content(tmp_path: Path) -> None:
    tried = [
        {"equation": e, "beta": b, "ppl": p} for e, b, p in ((1, 0.5, 9.0), (1, 1.0, 8.0), (2, 1.0, 7.0))
    ]
    write_json(tmp_path / "adapt_12/lm/M1_eq1_choice.json", {"equation": 1, "beta": 1.0, "tried": tried})
    lms = [{"lm": "exp/adapt_12/lm/M1_eq1.arpa.gz", "weight": 0.3}, {"lm": "x/adapt_12/lm/M4", "weight": 0.7}]
    mixture = {"form": "dynamic", "chosen_by": "em", "dev_ppl": 81.234, "dev_ppl_exact": 80.126, "lms": lms}
    write_json(tmp_path / "mixed/lm/M1_M2_weights.json", mixture)
    weights = {"role": "dev", "lm_weight": 0.5, "insertion_penalty": 0.0, "wer_percent": 9.0, "edges": []}
    write_json(tmp_path / "original/M2/weights.json", weights)
    names = ("original/M2/weights.json", "mixed/lm/M1_M2_weights.json", "adapt_12/lm/M1_eq1_choice.json")
    found = read_choices([tmp_path / name for name in names])
    assert list(found) == [ADAPTED, MIXTURES, WEIGHTS]
    assert found[ADAPTED] == [
        {
            "system": "adapt_12/M1_eq1",
            "equation": "1",
            "beta": "1",
            "betas tried": "2",
            "dev PPL": "8.00",
            "of": "words",
            "at the edge of the grid": "yes",
        }
    ]
    assert found[MIXTURES][0]["LMs"] == "0.300 adapt_12/M1_eq1 + 0.700 adapt_12/M4"
    assert found[MIXTURES][0]["system"] == "mixed/M1_M2"
    assert found[MIXTURES][0]["dev PPL"] == "81.23" and found[MIXTURES][0]["mixed exactly"] == "80.13"
    assert found[WEIGHTS][0]["system"] == "original/M2"
    write_json(tmp_path / "adapt_12/lm/M2_eq1_choice.json", {"equation": 1, "beta": 1.0, "tried": tried})
    write_json(tmp_path / "mixed/lm/M1_M2_weights.json", {**mixture, "dev_ppl": None, "dev_ppl_exact": None})
    found = read_choices(tmp_path / name for name in ("adapt_12/lm/M2_eq1_choice.json", names[1]))
    assert found[ADAPTED][0]["of"] == "text with tags for names"
    assert found[MIXTURES][0]["dev PPL"] == found[MIXTURES][0]["mixed exactly"] == "–"
    older = {name: value for name, value in mixture.items() if name != "dev_ppl_exact"}
    for content in (older, {"what": 1}, [], {"beta": 1.0}, {"form": "static", "lms": [{}]}):
        write_json(tmp_path / "other.json", content)
        with pytest.raises(DataError, match=r"other\.json: expected what adapt_lm"):
            read_choices([tmp_path / "other.json"])
