"""From token sequences to words, lists and points of the grid."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from privasr_k2.am.beam_search import Found
from privasr_k2.decoding.end_to_end import EndToEndConfig, best_hyp, in_words, prepare
from privasr_k2.errors import DataError
from tests.support.end_to_end import model

TOKENS = ["<blk>", "▁th", "e", "▁the", "▁", "cat"]


def config(**changes: object) -> EndToEndConfig:
    values: dict[str, object] = dict(
        role="dev", job=1, num_jobs=1, max_duration=10.0, head=0, beam=2, num_paths=2,
        length_penalty=0.0, tokens_per_second=20.0, ctc_weight=-1.0, insertion_penalties=[0.0],
    )  # fmt: skip
    return EndToEndConfig(**{**values, **changes})  # type: ignore[arg-type]


def test_spellings_of_the_same_words_are_added_up() -> None:
    found = [
        Found((4, 5), math.log(0.3)),
        Found((1, 2), math.log(0.25)),
        Found((3,), math.log(0.2)),
    ]
    texts = in_words(found, TOKENS)
    assert [words for words, _ in texts] == ["the", "cat"]
    assert [math.exp(score) for _, score in texts] == pytest.approx([0.45, 0.3])


def test_penalties_choose_within_the_list() -> None:
    texts = [("a", -1.0), ("a b", -1.4), ("", -1.9)]
    found = [best_hyp(texts, penalty) for penalty in (-0.5, 0.0, 1.0)]
    assert [(hyp.words, hyp.am_score, hyp.insertion_penalty) for hyp in found] == [
        ("a b", -1.4, -0.5), ("a", -1.0, 0.0), ("", -1.9, 1.0),
    ]  # fmt: skip
    assert best_hyp([], 0.0).words == ""


def test_tokens_that_make_no_words_are_refused_and_weights_of_ctc_set() -> None:
    made = model("ctc_attention")
    for tokens in (None, ["<blk>", "AA", "B", "C"]):
        made.tokens = tokens
        with pytest.raises(DataError, match="tokens that begin words"):
            prepare(made, Path("am"), config())
    made.tokens = ["<blk>", "▁", "a", "b"]
    prepare(made, Path("am"), config())
    assert made.ctc_weight == 0.4
    prepare(made, Path("am"), config(ctc_weight=0.9))
    assert made.ctc_weight == 0.9


@pytest.mark.parametrize(
    "bad",
    [{"beam": 0}, {"num_paths": 0}, {"tokens_per_second": 0.0}, {"ctc_weight": 2.0}, {"job": 2}],
)
def test_bad_numbers_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        config(**bad)
