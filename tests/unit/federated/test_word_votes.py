"""What one speaker changes, by brute force; the cost of the noise; what is chosen from it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.federated.word_release import (
    ABOUT,
    BIGRAMS,
    VOTES,
    WORDS,
    above,
    chosen,
    read_released,
    write_release,
)
from privasr_k2.federated.word_votes import (
    RELATION,
    count_votes,
    said_bigrams,
    said_words,
    speakers_texts,
)
from privasr_k2.fileio import read_json, write_text
from privasr_k2.privacy import events, release
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.spending import SETTINGS
from tests.support import word_votes as small
from tests.support.word_votes import mechanism, random_texts, secret


@pytest.mark.parametrize("choose", ["most_said", "random"])
@pytest.mark.parametrize("most", [1, 3, 40])
@pytest.mark.parametrize("of", ["words", "bigrams"])
def test_a_speaker_changes_so_many_counts_by_one(choose: str, most: int, of: str) -> None:
    for seed in range(4):
        texts = random_texts(seed)
        count = said_words if of == "words" else said_bigrams
        size = len(small.WORDS) if of == "words" else (len(small.WORDS) + 1) ** 2

        def votes(of_whom: dict[str, list[list[str]]], count=count, size=size) -> np.ndarray:
            return count_votes(count(of_whom, small.WORDS), size, most, choose, secret)

        whole, largest = votes(texts), 0
        for speaker in texts:
            others = {name: said for name, said in texts.items() if name != speaker}
            moved = whole - votes(others)
            assert set(moved.tolist()) <= {0, 1}
            assert moved.sum() <= most and math.sqrt(float((moved**2).sum())) <= math.sqrt(most)
            largest = max(largest, int(moved.sum()))
        assert largest == most or most == 40  # the bound is met


def test_the_words_that_a_speaker_says_most_often_get_the_votes() -> None:
    texts = {"anna": [["w1", "w1", "w2", "w3"], ["w2", "w4", "elsewhere"]]}
    counts = count_votes(said_words(texts, small.WORDS), 12, 2, "most_said", secret)
    assert np.flatnonzero(counts).tolist() == [1, 2] and counts.max() == 1


def test_ties_are_drawn_for_each_speaker() -> None:
    """In the order of the list the last words would never have a vote."""
    texts = {f"s{number}": [small.WORDS] for number in range(200)}
    counts = count_votes(said_words(texts, small.WORDS), 12, 3, "most_said", secret)
    assert counts.sum() == 600 and counts.min() > 20


def test_the_cost_is_that_of_as_many_counts() -> None:
    for settings in ({"max_words": 40}, {"max_words": 40, "max_bigrams": 20}, {"epsilon": 1.0}):
        made = mechanism(**settings)
        exact = account(made.event, RELATION, 1e-5)
        assert 0.999 * made.config.epsilon < exact.value <= made.config.epsilon
        # No more than what holds for any vector of this norm, and no less noise than it takes.
        vector = events.discrete_gaussian_vector(made.noise.sigma, math.sqrt(made.votes))
        assert exact.value <= account(vector, RELATION, 1e-5).value
        gaussian = events.gaussian(made.noise.sigma / math.sqrt(made.votes))
        assert exact.value == pytest.approx(account(gaussian, RELATION, 1e-5).value, rel=0.02)
    assert made.spending(9).person_units is None and made.spending(9).unit == "speaker"
    told = made.spending(9, "user").does_not_cover
    assert SETTINGS in told and any("how many users" in sentence for sentence in told)


def test_counts_above_the_threshold_are_chosen() -> None:
    noisy = {"words": np.array([5, 4, -7, 30])}
    assert chosen(noisy, list("abcd"), 4.0).words == {"d": 30, "a": 5}
    assert chosen({"words": np.array([0, -1, 1, 0])}, list("abcd"), 0.0).words == {"c": 1}
    assert above(np.array([0, -2]), -5.0) == []  # nothing below 0 is released as a count
    noisy = {"words": np.array([5, 9]), "bigrams": np.array([50, 7, 1, 2, 3, 6, 8, 4, 5])}
    assert chosen(noisy, ["a", "b"], 4.0).bigrams == {
        ("a", "</s>"): 8, ("<s>", "b"): 7, ("b", "a"): 6, ("a", "a"): 5,
    }  # fmt: skip


def begin(folder: Path, made, fingerprint: str = "a" * 64):
    return release.begin(
        folder / "ledger.json", beside=folder / "privacy.json", spending=made.spending(300),
        fingerprint=fingerprint, max_epsilon=None,
    )  # fmt: skip


@pytest.fixture
def texts() -> dict[str, list[list[str]]]:
    """Three hundred speakers of two words, one of a third."""
    said = {f"s{number}": [["w3", "w1"], ["w3"]] for number in range(300)}
    return said | {"s0": [["w3", "w5"]]}


def test_a_release_is_drawn_once(tmp_path: Path, texts: dict[str, list[list[str]]]) -> None:
    made = mechanism(max_bigrams=3, threshold=6.0)
    with begin(tmp_path, made) as begun:
        first = write_release(tmp_path / "out", texts, small.WORDS, made, begun)
    assert set(first.words) == {"w1", "w3"}  # nobody else says w5
    assert all(abs(first.words[word] - 300) < 10 * made.noise.sigma for word in first.words)
    said = {("<s>", "w3"), ("w3", "w1"), ("w3", "</s>"), ("w1", "</s>")}  # three of them by each
    assert said >= set(first.bigrams) and len(first.bigrams) >= 3
    assert read_released(tmp_path / "out") == first
    for name in (WORDS, BIGRAMS, ABOUT):  # computed again from what was drawn
        (tmp_path / "out" / name).unlink()
    with begin(tmp_path, made) as again:
        assert write_release(tmp_path / "out", texts, small.WORDS, made, again) == first
    assert len(Ledger(tmp_path / "ledger.json").entries()) == 1
    about = read_json(tmp_path / "out" / ABOUT)
    assert about["epsilon"]["value"] <= 8.0 and about["sensitivity"]["l1"] == 6
    (tmp_path / "out" / VOTES).unlink()
    with begin(tmp_path, made) as gone, pytest.raises(PrivacyError, match="force"):
        write_release(tmp_path / "out", texts, small.WORDS, made, gone)
    with begin(tmp_path, made, "b" * 64) as other:  # other data: another release
        write_release(tmp_path / "out", texts, small.WORDS, made, other)
    assert len(Ledger(tmp_path / "ledger.json").entries()) == 2


def test_a_release_that_was_killed_before_its_file_goes_on(tmp_path: Path, texts) -> None:
    made = mechanism()
    with begin(tmp_path, made):
        pass
    with begin(tmp_path, made) as begun:
        assert begun.is_continued and not begun.is_finished
        write_release(tmp_path / "out", texts, small.WORDS, made, begun)
    assert len(Ledger(tmp_path / "ledger.json").entries()) == 1


def test_all_counts_have_noise_of_one_size(tmp_path: Path) -> None:
    """Words that nobody says as well: their counts are as noisy, and few exceed the threshold."""
    words, made = [f"w{number}" for number in range(4000)], mechanism(threshold=2.0)
    with begin(tmp_path, made) as begun:
        found = write_release(tmp_path / "out", {"s": [["w0"]]}, words, made, begun)
    from safetensors.numpy import load_file

    noisy = load_file(tmp_path / "out" / VOTES)["words"].astype(float)
    sigma = made.noise.sigma
    # Five standard deviations of a mean, of a variance and of a share.
    assert abs(noisy.mean()) < 5 * sigma / math.sqrt(4000)
    assert noisy.var() == pytest.approx(sigma**2, rel=5 * math.sqrt(2 / 4000) + 0.01)
    k = np.arange(-100, 101)
    chances = np.exp(-(k**2) / (2 * sigma**2))
    tail = chances[k > 2 * sigma].sum() / chances.sum()
    assert abs(len(found.words) / 4000 - tail) < 5 * math.sqrt(tail / 4000)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="vote_words"):
        read_released(tmp_path)
    write_text(tmp_path / ABOUT, '{"format": "privasr_k2 word votes 1", "max_bigrams": 0}')
    write_text(tmp_path / WORDS, "yes\t3\nno\t-1\n")
    with pytest.raises(DataError, match=r"words.tsv:2"):
        read_released(tmp_path)


def test_texts_by_speaker(tmp_path: Path) -> None:
    texts = {"anna": [["a", "b"], []], "bob": [["c"]]}
    assert speakers_texts(small.write_texts(tmp_path, texts)) == texts
    with pytest.raises(DataError, match="speaker"):
        speakers_texts(small.write_texts(tmp_path, {"": [["a"]]}))
