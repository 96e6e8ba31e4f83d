"""Words are found where they are: whole utterances, and pieces cut out along the best CTC path."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.attack.occurrences import (
    best_path,
    by_speaker,
    cuts_of,
    drawn_cuts,
    find_occurrences,
)
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import load_lang
from tests.support.attack_small import SPELLED, speak, write_cuts, write_lang


def collapsed(path: tuple[int, ...]) -> list[int]:
    """What a path of CTC spells."""
    return [t for n, t in enumerate(path) if t and (n == 0 or path[n - 1] != t)]


@pytest.mark.parametrize("tokens", [[1], [1, 2], [1, 1], [2, 1, 2], [1, 1, 2]])
def test_best_path_is_the_best_of_all(tokens: list[int]) -> None:
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        log_probs = torch.randn(5, 3, generator=generator).log_softmax(1)
        every = [path for path in product(range(3), repeat=5) if collapsed(path) == tokens]
        best = max(every, key=lambda path: sum(float(log_probs[t, c]) for t, c in enumerate(path)))
        assert best_path(log_probs, tokens) == list(best)


def test_equal_paths_give_one_path() -> None:
    assert collapsed(tuple(best_path(torch.zeros(6, 3), [1, 2, 2]))) == [1, 2, 2]


class Heard:
    """Tokens where the first three features say so, every second frame."""

    subsampling = 2

    def log_probs(
        self, features: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As of a CTC model."""
        tokens = features[:, ::2, :3]
        return torch.cat([1 - tokens.sum(2, keepdim=True), tokens], 2).log_softmax(2), lengths // 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    write_lang(tmp_path / "lang")
    spoken = [("x", "AB"), ("y", "C AB"), ("y", "AB C AB"), ("z", "CA"), ("z", "C UNKNOWN AB")]
    made = [
        (who, text, speak(" ".join(w for w in text.split() if w in SPELLED), rng))
        for who, text in spoken
    ]
    write_cuts(tmp_path / "feats", "train", made)
    write_cuts(tmp_path / "feats", "test", made[:1])
    return tmp_path


def test_words_are_cut_out(folder: Path) -> None:
    lang = load_lang(folder / "lang")
    found = find_occurrences(cuts_of([folder / "feats"], ["train"]), ["AB", "C"], lang, Heard())
    # "UNKNOWN" cannot be aligned, so that its utterance has no pieces.
    assert [one.speaker for one in found["AB"]] == ["x", "y", "y", "y"]
    assert [one.speaker for one in found["C"]] == ["y", "y"]
    whole, second = found["AB"][0], found["AB"][1]
    assert len(whole.features) == 26 and " " not in whole.place
    # "C AB": 4 + 8 + 3 frames, then a and b for 8 frames each with 3 between them, and 3 behind.
    assert second.place.endswith(" 14-37")
    assert (second.features[1:9, 0] > 1).all() and (second.features[12:20, 1] > 1).all()
    assert (second.features[:, 2] < 1).all()


def test_phrases_and_whole_utterances(folder: Path) -> None:
    lang = load_lang(folder / "lang")
    cuts = list(cuts_of([folder / "feats"], ["train"]))
    assert [len(v) for v in find_occurrences(cuts, ["AB", "C"], lang).values()] == [1, 0]
    [one, two] = find_occurrences(cuts, ["C AB"], lang, Heard())["C AB"]
    assert len(one.features) == 4 + 3 * 11 and two.place.endswith(" 25-59")
    cuts[0].custom = {"original_id": "another"}
    assert find_occurrences(cuts, ["AB"], lang)["AB"] == []


def test_speakers_are_sorted(folder: Path) -> None:
    lang = load_lang(folder / "lang")
    found = find_occurrences(cuts_of([folder / "feats"], ["test", "train"]), ["AB"], lang, Heard())
    assert {who: len(said) for who, said in by_speaker(found)["AB"].items()} == {"x": 2, "y": 3}


def test_a_folder_without_the_roles(folder: Path) -> None:
    with pytest.raises(DataError, match="a role out of dev adapt"):
        list(cuts_of([folder / "feats"], ["dev", "adapt"]))


def test_few_utterances_of_each_speaker_are_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    said = [(who, "AB", speak("AB", rng)) for who in "xxxxyy"]
    write_cuts(tmp_path / "feats", "train", said)
    cuts = list(cuts_of([tmp_path / "feats"], ["train"]))
    cuts[0].custom = {"original_id": "other"}
    drawn = drawn_cuts(cuts, 2, 1)
    assert [cut.supervisions[0].speaker for cut in drawn] == ["x", "x", "y", "y"]
    assert drawn == drawn_cuts(cuts, 2, 1) and cuts[0] not in drawn
    assert drawn_cuts(cuts, 0, 1) == cuts[1:]
    assert {cut.id for n in range(9) for cut in drawn_cuts(cuts, 1, n)} == {c.id for c in cuts[1:]}
