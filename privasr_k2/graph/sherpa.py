"""A decoding graph for sherpa-onnx's search for CTC models, from the TLG of Kaldi's decoders.

sherpa-onnx runs ``kaldi_decoder.FasterDecoder`` on a graph as it is. Of the best path it reads a
word only from an arc with the label of a token, other than the label of the arc before: where a
token begins. Costs count as they are. So a TLG becomes another graph of the same paths:

- A word that is known behind its last token alone, as one of several homophones, stands in TLG on
  an epsilon, behind a blank if there is one, where it is lost. It is moved to its last token.
- Costs are ``lm_weight * cost``, with the insertion penalty at each word, all times a scale that
  the acoustic scores must have, too: the beam of sherpa-onnx is fixed, at :data:`BEAM`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import compile_tlg
from privasr_k2.ragged import Columns, ranges

BEAM = 16.0
"""Natural log; the beam of ``FasterDecoderOptions``, which sherpa-onnx does not set."""
_EPSILON, _BLANK = 0, 1  # labels of TLG; token n has n + 1


@dataclass(frozen=True, eq=False)
class _Arcs(Columns):
    """Arcs in any order.

    Args:
        sources, targets, labels, words: (A,) int64.
        costs: (A,) float64.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    words: np.ndarray
    costs: np.ndarray

    def __len__(self) -> int:
        return len(self.sources)

    @classmethod
    def of(cls, fst: Fst) -> _Arcs:
        names = (fst.sources, fst.targets, fst.ilabels, fst.olabels)
        return cls(*(ids.astype(np.int64) for ids in names), fst.costs.astype(np.float64))

    def fst(self, finals: np.ndarray, start: int) -> Fst:
        """A transducer of these arcs."""
        labels = self.labels, self.words
        return Fst.from_arcs(self.sources, self.targets, *labels, self.costs, finals, start=start)


def sherpa_graph(
    TLG: Fst,
    *,
    num_tokens: int,
    num_words: int,
    lm_weight: float,
    insertion_penalty: float,
    scale: float = 1.0,
    place: Path,
) -> Fst:
    """A graph of the standard topology in which each word stands where one of its tokens begins.

    For any acoustic scores, times ``scale``, the best path has the words of the best one in ``TLG``
    by ``am_score + lm_weight * lm_score - insertion_penalty * words``. Labels are as in TLG.

    Args:
        num_tokens: with the blank.
        num_words: output labels from this one on are delimiters of classes, and are left out.
        place: for messages.

    Raises:
        GraphError: no composition with the topology; a word without a token of its own.
    """
    LG = lexicon_grammar(TLG, place)
    spoken = (LG.olabels > 0) & (LG.olabels < num_words)
    weighted = scale * (lm_weight * LG.costs.astype(np.float64) + insertion_penalty * spoken)
    words = np.where(spoken, LG.olabels, 0).astype(np.int32)
    ends = np.isfinite(LG.finals)
    finals = np.where(ends, scale * lm_weight * np.where(ends, LG.finals, 0.0), np.inf)
    LG = dataclasses.replace(LG, olabels=words, costs=weighted, finals=finals)
    LG = words_on_tokens(LG, place)
    return compile_tlg(LG, num_tokens=num_tokens, topology="standard")


def lexicon_grammar(TLG: Fst, place: Path) -> Fst:
    """LG of a T o LG, tokens as labels and disambiguation symbols as epsilons.

    It is what leads from blank to blank. Of the states of the blank, which are pairs with every
    state of LG, an arc of LG leads to the state of its token, and from there a blank back.
    """
    arcs = _Arcs.of(TLG)
    blanks = arcs[arcs.labels == _BLANK]
    behind = np.full(TLG.num_states, -1)  # the state of the blank that follows
    behind[blanks.sources] = blanks.targets
    is_blank = np.zeros(TLG.num_states, dtype=bool)
    new = np.unique(np.append(blanks.targets, TLG.start))
    silent = arcs[arcs.labels == _EPSILON]
    while len(new):
        is_blank[new] = True
        targets = np.unique(silent.targets[is_blank[silent.sources]])
        new = targets[~is_blank[targets]]
    begun = arcs[(arcs.labels > _BLANK) & is_blank[arcs.sources]]
    if np.any(behind[begun.targets] < 0):
        expected, way_out = "a composition with the CTC topology", "compile the graph again"
        raise GraphError(place, expected, "a token that no blank follows", way_out)
    tokens = dataclasses.replace(begun, targets=behind[begun.targets], labels=begun.labels - 1)
    made = _Arcs.joined([tokens, silent[is_blank[silent.sources]]])
    numbers = np.cumsum(is_blank) - 1
    ends = {"sources": numbers[made.sources], "targets": numbers[made.targets]}
    made = dataclasses.replace(made, **ends)
    return made.fst(TLG.finals[is_blank], int(numbers[TLG.start]))


def words_on_tokens(LG: Fst, place: Path) -> Fst:
    """An equivalent transducer whose epsilons have no words: these stand on the arcs before.

    Raises:
        GraphError: a word before the first token, or behind a token that has another word.
    """
    arcs = _Arcs.of(LG)
    late = (arcs.labels == _EPSILON) & (arcs.words > 0)
    moving, kept = arcs[late], arcs[~late]
    ways = arcs[np.argsort(arcs.targets, kind="stable")]
    parts = [kept]
    while len(moving):
        _check(moving.words[moving.sources == LG.start], place)
        moved = _behind(ways, moving, place)
        parts.append(moved[moved.labels != _EPSILON])
        moving = moved[moved.labels == _EPSILON]
    return _connected(_Arcs.joined(parts).fst(LG.finals, LG.start))


def _behind(ways: _Arcs, moving: _Arcs, place: Path) -> _Arcs:
    """Each arc of ``moving``, an epsilon with a word, joined to every arc that leads to it.

    Args:
        ways: sorted by target.
    """
    sides = (np.searchsorted(ways.targets, moving.sources, side) for side in ("left", "right"))
    first, last = sides
    head = ways[ranges(first, last - first)]
    tail = moving[np.repeat(np.arange(len(first)), last - first)]
    _check(tail.words[head.words > 0], place)
    return _Arcs(head.sources, tail.targets, head.labels, tail.words, head.costs + tail.costs)


def _check(words: np.ndarray, place: Path) -> None:
    if len(words):
        expected = "words with a token that is theirs alone (<unk> of unknown_names has none)"
        found = f"{len(words)} arcs without one; the first is of word number {words[0]}"
        way_out = "compile the graph with unknown_names=none, or export the model alone"
        raise GraphError(place, expected, found, way_out)


def _connected(fst: Fst) -> Fst:
    """Without states that no path passes, as those that only moved words led on from."""
    import kaldifst

    made = kaldifst.StdVectorFst(fst.to_kaldifst())
    kaldifst.connect(made)
    return Fst.from_kaldifst(made)
