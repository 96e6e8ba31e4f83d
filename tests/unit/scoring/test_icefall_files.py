from __future__ import annotations

from privasr_k2.scoring.align import align
from privasr_k2.scoring.counts import ErrorCounts
from privasr_k2.scoring.hypotheses import Utterance, Weights
from privasr_k2.scoring.icefall_files import alignment_line, errs, part_files, recogs, wer_summary
from privasr_k2.scoring.results import ScoredUtterance, score_utterances

POINT = Weights(0.5, 0.0)


def _scored(*texts: tuple[str, str, str]) -> list[ScoredUtterance]:
    utterances = [
        Utterance(
            name,
            "p",
            f"s{9 - int(name[-1])}",
            tuple(ref.split()),
            False,
            {POINT: tuple(hyp.split())},
        )
        for name, ref, hyp in texts
    ]
    return score_utterances(utterances, POINT, {})


TWO = (("u2", "THE DOG", "THE DOG RAN"), ("u1", "THE CAT SAT", "A CAT"))


def test_recogs_have_two_lines_an_utterance_in_order() -> None:
    assert recogs(_scored(*TWO)).splitlines() == [
        "u1:\tref=['THE', 'CAT', 'SAT']",
        "u1:\thyp=['A', 'CAT']",
        "u2:\tref=['THE', 'DOG']",
        "u2:\thyp=['THE', 'DOG', 'RAN']",
    ]


def test_errs_as_users_of_icefall_know_it() -> None:
    assert (
        errs(_scored(*TWO))
        == "%WER = 60.00\nErrors: 1 insertions, 1 deletions, 1 substitutions, over 5 reference"
        " words (3 correct)\nSearch below for sections starting with PER-UTT DETAILS:,"
        " SUBSTITUTIONS:, DELETIONS:, INSERTIONS:, PER-WORD STATS:\n\nPER-UTT DETAILS: corr or"
        " (ref->hyp)  \nu1:\t(THE->A) CAT (SAT->*)\nu2:\tTHE DOG (*->RAN)\n\nSUBSTITUTIONS:"
        " count ref -> hyp\n1   THE -> A\n\nDELETIONS: count ref\n1   SAT\n\nINSERTIONS: count"
        " hyp\n1   RAN\n\nPER-WORD STATS: word  corr tot_errs count_in_ref count_in_hyp\nA   0 1"
        " 0 1\nRAN   0 1 0 1\nSAT   0 1 1 0\nTHE   1 1 2 1\nCAT   1 0 1 1\nDOG   1 0 1 1\n"
    )


def test_the_most_frequent_confusion_comes_first() -> None:
    text = errs(_scored(("1", "A B B", "A C C"), ("2", "A", "D")))
    assert "SUBSTITUTIONS: count ref -> hyp\n2   B -> C\n1   A -> D\n" in text


def test_neighbouring_errors_share_a_bracket() -> None:
    pairs = align(["a", "b", "c"], ["x", "y", "c", "z"])
    assert alignment_line(pairs) == "(a b->x y) c (*->z)"
    assert alignment_line(align(["*"], [])) == "(*->*)"
    assert alignment_line([]) == ""


def test_the_summary_sorts_by_rate_and_needs_no_words() -> None:
    counts = {"x": ErrorCounts(hits=1, deletions=1), "y": ErrorCounts(hits=2)}
    assert wer_summary(counts) == "settings\tWER\ny\t0.00\nx\t50.00\n"
    assert wer_summary({"x": ErrorCounts()}) == "settings\tWER\nx\t-\n"


def test_files_of_a_part() -> None:
    files = part_files("test/other", POINT, _scored(*TWO), {POINT: ErrorCounts(hits=1)})
    setting = "lm_weight_0.5_insertion_penalty_0.0"
    assert sorted(files) == [
        f"errs-test_other-{setting}.txt",
        f"recogs-test_other-{setting}.txt",
        f"speakers-test_other-{setting}.txt",
        "wer-summary-test_other.txt",
    ]
    assert files[f"speakers-test_other-{setting}.txt"].splitlines() == [
        "speaker\tWER\twords\tinsertions\tdeletions\tsubstitutions",
        "s7\t50.00\t2\t1\t0\t0",
        "s8\t66.67\t3\t0\t1\t1",
    ]
