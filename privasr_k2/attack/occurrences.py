"""Where a word was said: whole utterances, and pieces of others that a CTC model aligns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from privasr_k2.data.batches import needed_frames
from privasr_k2.data.features import load_features
from privasr_k2.data.manifests import load_cuts, roles
from privasr_k2.decoding.word_times import word_spans
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse.cut import Cut

_NONE = -1e30
#: Frames by which a piece may reach beyond its tokens, which stand amid their sounds.
_REACH = 10


@dataclass(frozen=True)
class Occurrence:
    """A word as somebody said it.

    Attributes:
        speaker: who.
        place: the utterance, and frames where it is a piece of one.
        features: (T, F) float32.
    """

    speaker: str
    place: str
    features: np.ndarray


def find_occurrences(
    cuts: Iterable[Cut], words: Sequence[str], lang: Lang, aligner: Any = None
) -> dict[str, list[Occurrence]]:
    """Every place where one of the words (or phrases) was said, by word.

    Args:
        aligner: a CTC model of the lang folder's tokens, to cut words out of longer utterances;
            None: whole utterances only.
    """
    found: dict[str, list[Occurrence]] = {word: [] for word in words}
    wanted = {word: word.split() for word in words}
    for cut in cuts:
        if "original_id" in (cut.custom or {}):  # the same speech at another speed
            continue
        spoken = (cut.supervisions[0].text or "").split()
        speaker = cut.supervisions[0].speaker or ""
        hits = {word: _starts(spoken, of_word) for word, of_word in wanted.items()}
        if not any(hits.values()):
            continue
        features = load_features(cut)
        whole = [word for word, of_word in wanted.items() if of_word == spoken]
        for word in whole:
            found[word].append(Occurrence(speaker, cut.id, features))
        if aligner is None or len(whole) == sum(map(bool, hits.values())):
            continue
        spans = aligned_words(aligner, features, spoken, lang.first_pronunciations)
        for word, starts in hits.items():
            for start in starts if word not in whole and spans is not None else ():
                first, last = widened(spans, start, start + len(wanted[word]), len(features))
                place = f"{cut.id} {first}-{last}"
                found[word].append(Occurrence(speaker, place, features[first:last]))
    return found


def cuts_of(folders: Iterable[Path], wanted: Sequence[str]) -> Iterator[Cut]:
    """The cuts of those of the roles that each folder has.

    Raises:
        DataError: a folder that has none of them.
    """
    for folder in folders:
        there = [role for role in wanted if role in roles(folder)]
        if not there:
            expected = f"a role out of {' '.join(wanted)}"
            raise DataError(folder, expected, "none", "name another folder")
        for role in there:
            yield from load_cuts(folder, role)


def drawn_cuts(cuts: Iterable[Cut], most: int, seed: int) -> list[Cut]:
    """At most so many utterances of each speaker, drawn; 0: all. Copies at other speeds are out."""
    of_speaker: dict[str, list[Cut]] = {}
    for cut in cuts:
        if "original_id" not in (cut.custom or {}):
            of_speaker.setdefault(cut.supervisions[0].speaker or "", []).append(cut)
    kept = []
    for speaker, said in sorted(of_speaker.items()):
        order = stream(seed, "utterances", speaker).permutation(len(said))
        kept += [said[place] for place in sorted(order[: most or None].tolist())]
    return kept


def by_speaker(found: Mapping[str, Sequence[Occurrence]]) -> dict[str, dict[str, list[Occurrence]]]:
    """Word -> speaker -> occurrences, speakers sorted."""
    speaker_of = attrgetter("speaker")
    return {
        word: {
            speaker: [*of_one]
            for speaker, of_one in groupby(sorted(occurrences, key=speaker_of), speaker_of)
        }
        for word, occurrences in found.items()
    }


def _starts(said: Sequence[str], word: Sequence[str]) -> list[int]:
    return [n for n in range(len(said) - len(word) + 1) if [*said[n : n + len(word)]] == [*word]]


def aligned_words(
    aligner: Any,
    features: np.ndarray,
    said: Sequence[str],
    spelled: Mapping[str, Sequence[int]],
    device: torch.device | str = "cpu",
) -> list[tuple[int, int]] | None:
    """First frame of each word and the one behind it; None where the words do not fit.

    Args:
        features: (T, F).
        spelled: token numbers of words; a word that it lacks does not fit.
        device: the aligner's.
    """
    if any(word not in spelled for word in said):
        return None
    tokens = [token for word in said for token in spelled[word]]
    batch = torch.from_numpy(features)[None].to(device), torch.tensor([len(features)]).to(device)
    log_probs, _ = aligner.log_probs(*batch)
    if log_probs.size(1) < needed_frames(tokens):
        return None
    labels = best_path(log_probs[0].cpu(), tokens)
    spans = word_spans(labels, [[spelled[word]] for word in said], repeats=False)
    scale = aligner.subsampling
    return None if spans is None else [(scale * first, scale * last) for first, last in spans]


def widened(
    spans: Sequence[tuple[int, int]], first: int, last: int, frames: int
) -> tuple[int, int]:
    """Words ``first`` to ``last`` - 1 with half the way to their neighbours, at most 0.1 s.

    >>> widened([(10, 12), (40, 50), (54, 60)], 1, 2, 70)
    (30, 52)
    """
    before = 0 if first == 0 else (spans[first - 1][1] + spans[first][0]) // 2
    behind = frames if last == len(spans) else (spans[last - 1][1] + spans[last][0]) // 2
    start = max(before, spans[first][0] - _REACH)
    return start, max(start + 1, min(behind, spans[last - 1][1] + _REACH, frames))


def best_path(log_probs: Tensor, tokens: Sequence[int]) -> list[int]:
    """The most likely CTC path that spells ``tokens``: a token, or the blank 0, for each frame.

    The best path's score is a maximum of sums: its gradient by the log-probabilities is 1 on that
    path and 0 elsewhere.

    Args:
        log_probs: (T, C).
        tokens: from 1, that fit into the frames.

    >>> best_path(torch.tensor([[0.1, 0.8, 0.1], [0.5, 0.4, 0.1], [0.1, 0.6, 0.3]]).log(), [1, 2])
    [1, 0, 2]
    """
    states = [0] + [state for token in tokens for state in (token, 0)]  # blanks all around
    skips = torch.tensor([n > 1 and 0 != s != states[n - 2] for n, s in enumerate(states)])
    leaf = log_probs.detach().double().requires_grad_()
    with torch.enable_grad():
        emitted = leaf[:, states]  # (T, S)
        outside = emitted.new_full((2,), _NONE)
        best = torch.cat([emitted[0, :2], emitted.new_full((len(states),), _NONE)])[: len(states)]
        for frame in emitted[1:]:
            padded = torch.cat([outside, best])
            from_skip = padded[:-2].masked_fill(~skips, _NONE)
            # max over a dimension takes one of equal ones, so that the path is one path.
            best = torch.stack([best, padded[1:-1], from_skip]).max(0).values + frame
        [on_path] = torch.autograd.grad(best[-2:].max(0).values, leaf)
    return on_path.argmax(1).tolist()
