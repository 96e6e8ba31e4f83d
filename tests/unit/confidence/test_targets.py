"""Which words count as correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.confidence.targets import correct_words, targets_of
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring import align as alignment
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists


def lists(*given: tuple[str, str, str]) -> NbestLists:
    """Lists of one hypothesis from speaker, reference and hypothesis; "-" is no path."""
    made = []
    for number, (speaker, ref, hyp) in enumerate(given):
        hyps = Hypothesis(1, hyp, 0.0, {}), Hypothesis(2, "never looked at", 0.0, {})
        hyps = () if hyp == "-" else hyps
        made.append(NbestList(f"u{number}", "dev", speaker, ref, not hyps, hyps))
    places = {nbest.id: f"1.jsonl:{nbest.id}" for nbest in made}
    return NbestLists(Path("nbest_dev"), tuple(made), places, ())


def test_correct_substituted_inserted_and_not_scored() -> None:
    first, lost = ("b", "the cat um sat", "a cat sat uh down"), ("a", "lost words", "-")
    found = targets_of(lists(first, lost, ("b", "yes", "yes")), {"um": "", "uh": ""})
    assert found.correct.tolist() == [0, 1, 1, -1, 0, 1]
    assert found.scored.tolist() == [True, True, True, False, True, True]
    assert found.speaker_names == ("a", "b") and found.speakers.tolist() == [1] * 6
    assert (found.ref_words, found.errors) == (6, 4)


def test_units_that_count_as_one() -> None:
    assert targets_of(lists(("a", "ao l", "aa r")), {"ao": "aa"}).correct.tolist() == [1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_long_texts_have_the_same_distance(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = stream(seed, "texts")
    ref = generator.choice(list("abcdefgh"), 60).tolist()
    hyp = [w if generator.random() < 0.6 else "x" for w in ref if generator.random() < 0.8]
    short = correct_words(ref, hyp)
    monkeypatch.setattr(alignment, "_LARGEST_TABLE", 0)
    long = correct_words(ref, hyp)
    assert long[1] == short[1] and len(long[0]) == len(hyp)
    assert long[0].sum() >= len(hyp) - long[1]
    rest = iter(ref)
    assert all(word in rest for word, right in zip(hyp, long[0]) if right)  # in the same order


def test_nothing_beside_something(monkeypatch: pytest.MonkeyPatch) -> None:
    for largest in (0, 100):
        monkeypatch.setattr(alignment, "_LARGEST_TABLE", largest)
        for ref, hyp, expected in (([], ["a"], [False]), (["a", "b"], [], [])):
            found, errors = correct_words(ref, hyp)
            assert found.tolist() == expected and found.dtype == bool
            assert errors == len(ref) + len(hyp)


def test_lists_without_references_are_refused() -> None:
    with pytest.raises(DataError, match="references, to tell correct words from wrong ones"):
        targets_of(lists(("a", "", "word")), {})
