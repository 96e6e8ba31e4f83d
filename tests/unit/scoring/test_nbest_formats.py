"""Lists that leave in other formats and come back, and foreign files that are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.scoring import nbest_formats as formats
from privasr_k2.scoring.nbest_lists import (
    Hypothesis,
    NbestList,
    NbestLists,
    read_nbest,
    write_nbest,
)

TIMES = ((0.12, 0.48), (0.51, 0.9))
LISTS = [
    NbestList("u-1", "test", "s1", "call anna", False, (
        Hypothesis(1, "call anna", -12.1, {"graph": -3.7, "lstm": -1 / 3}, (0.25, 1.0), TIMES),
        Hypothesis(2, "", -20.0, {"graph": 0.0, "lstm": -2.0}, (), ()),
        Hypothesis(3, "hall", 0.0, {"graph": -1e-7, "lstm": 2.0}, (0.5,), ((0.0, 1.0),)),
    )),
    NbestList("u-2", "test", "s2", "no", True, ()),
    NbestList("u-3", "test", "s2", "yes", False, (
        Hypothesis(1, "", -1.0, {"graph": -1.0, "lstm": -1.0}, (), ()),
    )),
]  # fmt: skip


@pytest.fixture
def lists(tmp_path: Path) -> NbestLists:
    write_nbest(tmp_path / "nbest_test" / "1.jsonl", LISTS)
    return read_nbest(tmp_path / "nbest_test")


@pytest.fixture
def references(tmp_path: Path) -> dict[str, formats.Reference]:
    cuts = []
    for nbest in LISTS:
        supervision = {"speaker": nbest.speaker, "text": nbest.ref}
        cuts.append({"id": nbest.id, "custom": {"part": nbest.part}, "supervisions": [supervision]})
    write_jsonl(tmp_path / "cuts_test.jsonl.gz", cuts)
    return formats.read_references(tmp_path / "cuts_test.jsonl.gz")


def only(one: NbestList, *, hyps: int, keep: tuple[str, ...]) -> NbestList:
    """What a format can hold of a list: its first hypotheses, with only some of their values."""
    kept = []
    for hyp in one.hyps[:hyps]:
        values = {"am_score": 0.0, "lm_scores": {}} | {name: getattr(hyp, name) for name in keep}
        kept.append(Hypothesis(hyp.rank, hyp.words, **values))
    return dataclasses.replace(one, hyps=tuple(kept))


def test_kaldi_and_back(
    lists: NbestLists, references: dict[str, formats.Reference], tmp_path: Path
) -> None:
    formats.write_kaldi(lists, tmp_path / "kaldi")
    assert (tmp_path / "kaldi/words").read_text() == "u-1-1 call anna\nu-1-2\nu-1-3 hall\nu-3-1\n"
    costs = "u-1-1 12.1\nu-1-2 20.0\nu-1-3 0.0\nu-3-1 1.0\n"
    assert (tmp_path / "kaldi/ac_cost").read_text() == costs
    assert (tmp_path / "kaldi/lm_cost.lstm").read_text().startswith(f"u-1-1 {1 / 3!r}\n")
    assert (tmp_path / "kaldi/no_path").read_text() == "u-2\n"
    ranked = formats.read_kaldi(tmp_path / "kaldi")
    back = list(formats.with_references(ranked, references, "kaldi"))
    assert back == [only(one, hyps=3, keep=("am_score", "lm_scores")) for one in LISTS]


def test_ctm_and_back(
    lists: NbestLists,
    references: dict[str, formats.Reference],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    formats.write_ctm(lists, tmp_path / "a.ctm")
    lines = "u-1 1 0.120 0.360 call 0.250000\nu-1 1 0.510 0.390 anna 1.000000\n"
    assert (tmp_path / "a.ctm").read_text() == lines
    ranked = formats.read_ctm([tmp_path / "a.ctm"])
    back = list(formats.with_references(ranked, references, "a.ctm"))
    assert [one.no_path for one in back] == [False, True, True]
    assert "nothing for 2 of 3 utterances (no path there): u-2 u-3" in caplog.text
    [hyp], expected = back[0].hyps, only(LISTS[0], hyps=1, keep=("confidences",)).hyps[0]
    assert dataclasses.replace(hyp, times=None) == expected
    assert hyp.times is not None
    for span, wanted in zip(hyp.times, TIMES, strict=True):
        assert span == pytest.approx(wanted, abs=1e-9)
    write_nbest(tmp_path / "nbest_back" / "1.jsonl", back)
    read_nbest(tmp_path / "nbest_back")


def test_ctm_without_confidences_or_times(lists: NbestLists, tmp_path: Path) -> None:
    bare = tuple(dataclasses.replace(hyp, confidences=None) for hyp in LISTS[0].hyps)
    changed = dataclasses.replace(lists, lists=(dataclasses.replace(LISTS[0], hyps=bare),))
    formats.write_ctm(changed, tmp_path / "a.ctm")
    assert formats.read_ctm([tmp_path / "a.ctm"])["u-1"][0].confidences is None
    bare = (dataclasses.replace(bare[0], times=None),)
    changed = dataclasses.replace(lists, lists=(dataclasses.replace(LISTS[0], hyps=bare),))
    with pytest.raises(DataError, match=r"1.jsonl:1: expected word times, found none for u-1"):
        formats.write_ctm(changed, tmp_path / "a.ctm")


def test_ctm_is_sorted_by_time(tmp_path: Path) -> None:
    lines = ";; made by hand\nr A 2.0 0.5 b 0.5\nr A 1.0 1.5 a 0.25\nr A 3 0 c 1\n"
    write_text(tmp_path / "a.ctm", lines)
    [hyp] = formats.read_ctm([tmp_path / "a.ctm"])["r"]
    assert (hyp.words, hyp.confidences) == ("a b c", (0.25, 0.5, 1.0))
    assert hyp.times == ((1.0, 2.5), (2.0, 2.5), (3.0, 3.0))


def test_trn_and_back(
    lists: NbestLists, references: dict[str, formats.Reference], tmp_path: Path
) -> None:
    formats.write_trn(lists, tmp_path / "a.trn")
    assert (tmp_path / "a.trn").read_text() == "call anna (u-1)\n(u-2)\n(u-3)\n"
    formats.write_trn(lists, tmp_path / "ref.trn", references=True)
    assert (tmp_path / "ref.trn").read_text() == "call anna (u-1)\nno (u-2)\nyes (u-3)\n"
    back = list(formats.with_references(formats.read_trn(tmp_path / "a.trn"), references, "a.trn"))
    # A trn file cannot tell silence from no path.
    assert [one.no_path for one in back] == [False, False, False]
    assert [one.hyps[0].words for one in back] == ["call anna", "", ""]


def test_without_references(lists: NbestLists, tmp_path: Path) -> None:
    formats.write_kaldi(lists, tmp_path / "kaldi")
    back = list(formats.with_references(formats.read_kaldi(tmp_path / "kaldi"), None, "kaldi"))
    assert [(one.id, one.ref, one.no_path) for one in back] == [
        ("u-1", "", False),
        ("u-2", "", True),
        ("u-3", "", False),
    ]


def test_hypotheses_without_a_reference(
    references: dict[str, formats.Reference], tmp_path: Path
) -> None:
    write_text(tmp_path / "a.trn", "x (u-9)\n")
    ranked = formats.read_trn(tmp_path / "a.trn")
    with pytest.raises(
        DataError, match=r"a.trn: expected only utterances that .*, found 1 .*: u-9"
    ):
        list(formats.with_references(ranked, references, tmp_path / "a.trn"))


def test_equal_words_of_kaldi_are_one_hypothesis(tmp_path: Path) -> None:
    write_text(tmp_path / "words", "u-1 a b\nu-2 a  b\nu-3 c\n")
    write_text(tmp_path / "ac_cost", "u-1 1\nu-3 3\nu-2 2\n")
    write_text(tmp_path / "lm_cost", "u-1 4\nu-2 5\nu-3 6\n")
    assert formats.read_kaldi(tmp_path)["u"] == (
        Hypothesis(1, "a b", -1.0, {"graph": -4.0}),
        Hypothesis(2, "c", -3.0, {"graph": -6.0}),
    )


@pytest.mark.parametrize(
    ("words", "ac_cost", "more", "message"),
    [
        ("u-1 a|u a", "u-1 1", {}, "words:2: expected a key such as utt-1"),
        ("u-1 a|u-0 a", "u-1 1", {}, "words:2: expected a key such as utt-1"),
        ("u-1 a|u-1 b", "u-1 1", {}, "words:2: .* rank once, found u-1 again"),
        ("u-1 a|u-3 b", "u-1 1|u-3 1", {}, "words:2: .* found 3 after 1"),
        ("u-1 a|u-2 b", "u-1 1", {}, "ac_cost: .* found 1 of 2 missing: u-2"),
        ("u-1 a", "u-1 1|u-1 1", {}, "ac_cost:2: .* found u-1 again"),
        ("u-1 a", "u-1 1|u-2 1", {}, "ac_cost:2: .* found u-2 without words"),
        ("u-1 a", "u-1 x", {}, "ac_cost:1: .* the cost of u-1, a number, found 'x'"),
        ("u-1 a", "u-1 nan", {}, "ac_cost:1: .* found 'nan'"),
        ("u-1 a", "", {}, "ac_cost: expected a cost for every hypothesis, found nothing"),
        ("", "", {}, "words: expected the words of an N-best list, found nothing"),
        ("u-1 a", "u-1 1", {"no_path": "v|u"}, "no_path:2: .* u which has words"),
        ("u-1 a", "u-1 1", {"no_path": "v||v"}, "no_path:3: .* found v again"),
        ("u-1 a", "u-1 1", {"lm_cost.lstm": "|"}, "lm_cost.lstm: .* missing: u-1"),
    ],
)
def test_kaldi_files_that_are_refused(
    tmp_path: Path, words: str, ac_cost: str, more: dict[str, str], message: str
) -> None:
    for name, lines in {"words": words, "ac_cost": ac_cost, **more}.items():
        if lines:
            write_text(tmp_path / name, lines.replace("|", "\n") + "\n")
    with pytest.raises(DataError, match=message):
        formats.read_kaldi(tmp_path)


def ctm(path: Path) -> formats.Ranked:
    return formats.read_ctm([path])


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (ctm, "r 1 0 1 a 0.5\nr 1 0\n", ":2: .* found 3 columns"),
        (ctm, "r 1 0 1 a 1.5\n", ":1: expected a confidence, a number from 0 to 1, found '1.5'"),
        (ctm, "r 1 0 1 a x\n", ":1: expected a confidence"),
        (ctm, "r 1 -1 1 a 1\n", ":1: expected a start, a number from 0, found '-1'"),
        (ctm, "r 1 0 -1 a 1\n", ":1: expected a duration"),
        (ctm, "r 1 1e308 1e308 a 1\n", ":1: expected an end, a number from 0, found 'inf'"),
        (ctm, ";; nothing\n\n", ": expected words with times, found none"),
        (ctm, "r 1 0 1 a 1\nr 2 1 1 a 1\n", ":2: expected the channel 1 of r, found the channel 2"),
        (ctm, "r 1 0 1 a 1\nr 1 1 1 a\n", ":2: expected confidences of all words of r"),
        (ctm, "r 1 * * <ALT_BEGIN>\n", ":1: .* alternatives"),
        (formats.read_trn, "a (u)\nb\n", ":2: expected words .utterance., found 'b'"),
        (formats.read_trn, "a (u)\nb (u)\n", ":2: expected every utterance once, found u again"),
        (formats.read_trn, "{ a / b } (u)\n", ":1: .* alternatives"),
    ],
)
def test_ctm_and_trn_files_that_are_refused(
    tmp_path: Path, read: Callable[[Path], formats.Ranked], text: str, message: str
) -> None:
    write_text(tmp_path / "foreign", text)
    with pytest.raises(DataError, match=f"{tmp_path}/foreign{message}"):
        read(tmp_path / "foreign")


def test_references_that_are_refused(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "cuts.jsonl", [{"id": "u", "supervisions": []}])
    with pytest.raises(DataError, match="cuts with an id and a supervision, found cut 1 without"):
        formats.read_references(tmp_path / "cuts.jsonl")


@pytest.mark.shared_data
def test_confidences_of_a_real_recognizer(shared_data: Path, tmp_path: Path) -> None:
    paths = sorted((shared_data / "earnings21" / "ctm_kaldi_rev").glob("*.ctm.gz"))[:3]
    nbests = formats.with_references(formats.read_ctm(paths), None, "ctm")
    write_nbest(tmp_path / "nbest_test" / "1.jsonl", nbests)
    lists = read_nbest(tmp_path / "nbest_test")
    assert [one.id for one in lists.lists] == [path.name.partition(".")[0] for path in paths]
    formats.write_ctm(lists, tmp_path / "back.ctm")

    def columns(path: Path) -> list[list[str]]:
        from privasr_k2.fileio import read_lines

        return [line.split() for _, line in read_lines(path)]

    rows = [row for path in paths for row in columns(path)]
    back = columns(tmp_path / "back.ctm")
    assert len(rows) == len(back) > 10_000
    rows = [row for path in paths for row in sorted(columns(path), key=lambda row: float(row[2]))]
    for row, again in zip(rows, back):
        assert (row[0], row[4]) == (again[0], again[4])
        for column in (2, 3, 5):
            assert float(row[column]) == pytest.approx(float(again[column]), abs=1e-9)
