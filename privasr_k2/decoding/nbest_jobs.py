"""The N-best lists of one job's share of a role's cuts."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from privasr_k2.decoding.jobs import AcousticModel, DecodeConfig, facts_of, search_cuts
from privasr_k2.decoding.nbest import Nbest, NbestSearch, NbestSearchConfig, Path
from privasr_k2.decoding.word_times import word_spans
from privasr_k2.errors import GraphError
from privasr_k2.graph.hlg import Graph
from privasr_k2.graph.lang import Lang, check_same_tokens
from privasr_k2.lm.arpa import UNK
from privasr_k2.scoring.nbest_lists import GRAPH, Hypothesis, NbestList

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

_LISTED = 5
_SAME_LANG = "give the language folder that the graph was compiled from"
_DIGITS = 4  # of seconds
_POSTERIOR_DIGITS = 6


@dataclass(frozen=True)
class NbestJobConfig(DecodeConfig, NbestSearchConfig):
    """Options of decoding and of N-best lists; defaults in sections ``decode`` and ``nbest``."""


class SubsamplingModel(AcousticModel, Protocol):
    """An acoustic model with its number of input frames per output frame."""

    subsampling: int


class WordTimes:
    """Finds the times of a path's words.

    Args:
        lang: the language folder that the graph was compiled from.

    Raises:
        GraphError: they have other tokens or words.
    """

    def __init__(self, lang: Lang, graph: Graph) -> None:
        check_same_tokens(lang.tokens, graph.tokens, model=lang.folder, graph=graph.folder)
        spoken = tuple(graph.words[: graph.delimiters.first])
        # Names that no list has: the language folder's last word is another.
        self._any_tokens = spoken[-1] == UNK
        if tuple(lang.words) != (spoken[:-1] if self._any_tokens else spoken):
            raise GraphError(lang.folder, f"the words of {graph.folder}", "others", _SAME_LANG)
        self._words, self._lang = graph.words, lang
        self._repeats = graph.info["ctc_topology"] == "modified"
        self._silence = -1 if lang.silence is None else lang.token_ids[lang.silence.token]
        self._variants: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for word, tokens in lang.pronunciations:
            self._variants[word].append(tuple(lang.token_ids[token] for token in tokens))

    def times(self, path: Path, seconds: float, duration: float) -> tuple[tuple[float, float], ...]:
        """(start, end) of each word in seconds.

        Args:
            seconds: between two output frames.
            duration: of the utterance, the upper bound of times.
        """
        words = [self._words[word] for word in path.words]
        any_word = UNK if self._any_tokens else None
        variants = [None if word == any_word else self._variants[word] for word in words]
        labels = path.labels.tolist()
        spoken = [0 if label == self._silence else label for label in labels]
        spans = word_spans(spoken, variants, repeats=self._repeats)
        if spans is None and spoken != labels:  # a word that is silence
            spans = word_spans(labels, variants, repeats=self._repeats)
        if spans is None:
            expected = f"pronunciations that spell the path of {' '.join(words)!r}"
            raise GraphError(self._lang.folder / "lexicon.txt", expected, "none", _SAME_LANG)
        ends = np.minimum(np.array(spans, dtype=np.float64).reshape(-1, 2) * seconds, duration)
        return tuple((round(first, _DIGITS), round(last, _DIGITS)) for first, last in ends.tolist())


def nbest_cuts(
    model: SubsamplingModel,
    search: NbestSearch,
    cuts: CutSet,
    config: NbestJobConfig,
    device: str,
    *,
    word_times: WordTimes | None,
) -> Iterator[NbestList]:
    """The lists of this job's cuts, the longest first; logs lost and limited ones."""
    words, limited = search.decoder.graph.words, []
    for cut, searched in search_cuts(model, search, cuts, config, device):
        if searched is not None and searched.limited:
            limited.append(cut.id)
            message = (
                "%s: determinization passed max_states=%d; here are the %d hypotheses within %g"
            )
            num_paths = len(searched.paths)
            log.warning(message, cut.id, config.max_states, num_paths, searched.beam)
        yield nbest_list(cut, searched, words, model.subsampling, word_times)
    if limited:
        message = (
            "%d lists have fewer than %d hypotheses though their lattices have more: %s;"
            " raise max_states, or decode with a smaller output_beam"
        )
        log.warning(message, len(limited), config.num_paths, " ".join(limited[:_LISTED]))


def nbest_list(
    cut: Cut,
    result: Nbest | None,
    words: Sequence[str],
    subsampling: int,
    word_times: WordTimes | None,
) -> NbestList:
    """The list of one cut; empty without a path. ``subsampling``: input frames per output frame."""
    hyps = []
    for rank, path in enumerate(result.paths if result else (), start=1):
        times = None
        if word_times is not None:
            times = word_times.times(path, subsampling * cut.frame_shift, cut.duration)
        text = " ".join(words[word] for word in path.words)
        sure, depths = _rounded(path.posteriors), _rounded(path.depths)
        scores = path.am_score, {GRAPH: path.lm_score}
        hyps.append(Hypothesis(rank, text, *scores, sure, times, path.classes, depths))
    return NbestList(*facts_of(cut), result is None, tuple(hyps))


def _rounded(values: np.ndarray | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(round(float(v), _POSTERIOR_DIGITS) for v in values)
