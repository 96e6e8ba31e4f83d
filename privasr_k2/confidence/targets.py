"""Which recognized words are correct: aligned with the same word of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.scoring.align import align
from privasr_k2.scoring.nbest_lists import NbestLists


@dataclass(frozen=True)
class Targets:
    """The words of the best hypotheses, one utterance after the other.

    Attributes:
        correct: (W,) int8, 1: correct; 0: substituted or inserted; -1: not scored.
        speakers: (W,) numbers of users, from 0.
        speaker_names: by their numbers, sorted.
        ref_words, errors: scored words of all references, and substitutions, insertions and
            deletions.
    """

    correct: np.ndarray
    speakers: np.ndarray
    speaker_names: tuple[str, ...]
    ref_words: int
    errors: int

    @property
    def scored(self) -> np.ndarray:
        """(W,) whether each word is scored."""
        return self.correct >= 0


def targets_of(lists: NbestLists, scored_units: Mapping[str, str]) -> Targets:
    """Align the best hypothesis of every list with its reference.

    Utterances without a path have no words; their references count as deleted.

    Args:
        scored_units: as for :func:`privasr_k2.scoring.align.to_scored_units`; words that map to
            ``""`` are not scored.

    Raises:
        DataError: no list has a reference.
    """
    if not any(nbest.ref for nbest in lists.lists):
        expected = "references, to tell correct words from wrong ones"
        way_out = "import the lists with references: --in-cuts or --raw-data"
        raise DataError(lists.place, expected, "none", way_out)
    names = tuple(sorted({nbest.speaker for nbest in lists.lists}))
    numbers = {name: number for number, name in enumerate(names)}
    correct, speakers, ref_words, errors = [], [], 0, 0
    for nbest in lists.lists:
        ref = [scored_units.get(word, word) for word in nbest.ref.split()]
        ref = [word for word in ref if word]
        words = nbest.hyps[0].words.split() if nbest.hyps else []
        units = [scored_units.get(word, word) for word in words]
        kept = np.array([bool(unit) for unit in units], dtype=bool)
        is_correct, wrong = correct_words(ref, [unit for unit in units if unit])
        of_list = np.full(len(words), -1, dtype=np.int8)
        of_list[kept] = is_correct
        correct.append(of_list)
        speakers.append(np.full(len(words), numbers[nbest.speaker]))
        ref_words, errors = ref_words + len(ref), errors + wrong
    return Targets(np.concatenate(correct), np.concatenate(speakers), names, ref_words, errors)


def correct_words(ref: Sequence[str], hyp: Sequence[str]) -> tuple[np.ndarray, int]:
    """Which words of a hypothesis are correct, and the number of errors, at least edit distance.

    The alignment is that of ``wer``.

    >>> correct_words("the cat sat".split(), "a cat sat down".split())
    (array([False,  True,  True, False]), 2)
    """
    pairs = align(ref, hyp)
    correct = np.array([r == h for r, h in pairs if h is not None], dtype=bool)
    return correct, len(pairs) - int(correct.sum())
