"""The names of a class as an acceptor over tokens, made as arrays in one pass.

Each state of a sub-LM has a prefix tree of the pronunciations of the words that follow it. The last
token of a word leads to the tree of the sub-LM's next state, or to the end of the name. A word
stands where no other word can follow any more, so that the ends of words are alike. A branch has
the probability of its best word so far, so that a beam sees it early; costs add up to those of
L o G. Words of one sound, which L o G would determinize, have paths of their own here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privasr_k2.graph.lang import Silence
from privasr_k2.lm.sub_lm import SubLm
from privasr_k2.ragged import Columns, ranges

#: The target of the last arc of a name.
END = -1


@dataclass(frozen=True, eq=False)
class NameArcs(Columns):
    """A arcs of names, without epsilons; state 0 is the start.

    Args:
        sources, targets: (A,) int64; :data:`END` ends the name.
        labels: (A,) int64, tokens above 0.
        scores: (A,) float64, ln P.
        words: (A,) int64, the word that stands on the arc, 0 for none.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    words: np.ndarray

    @property
    def num_states(self) -> int:
        """States, without the end."""
        return 1 + int(max(self.sources.max(initial=0), self.targets.max(initial=0)))


@dataclass(frozen=True, eq=False)
class Spoken:
    """Pronunciations of W words.

    Args:
        owners: (V,) the word of each pronunciation, an index below W, ascending.
        tokens: (V, L) int64, padded with 0 behind the last token.
        lengths: (V,) tokens, above 0.
    """

    owners: np.ndarray
    tokens: np.ndarray
    lengths: np.ndarray


def spoken_words(words: Sequence[str], variants: Mapping[str, Sequence[Sequence[int]]]) -> Spoken:
    """The pronunciations of words as one array; a word may have none.

    >>> spoken_words(["ann", "b"], {"ann": [[1, 2]], "b": [[3], [3, 1]]}).tokens.tolist()
    [[1, 2], [3, 0], [3, 1]]
    """
    said = [variants.get(word, ()) for word in words]
    flat = [tokens for of_word in said for tokens in of_word]
    lengths = np.fromiter(map(len, flat), dtype=np.int64, count=len(flat))
    tokens = np.zeros((len(flat), int(lengths.max(initial=1))), dtype=np.int64)
    inside = np.arange(tokens.shape[1]) < lengths[:, None]
    tokens[inside] = np.fromiter(
        (token for row in flat for token in row), dtype=np.int64, count=int(lengths.sum())
    )
    counts = np.fromiter(map(len, said), dtype=np.int64, count=len(said))
    return Spoken(np.repeat(np.arange(len(said)), counts), tokens, lengths)


def tree_roots(sub: SubLm) -> np.ndarray:
    """(S,) the state of each state's prefix tree, :data:`END` where no word follows.

    >>> from privasr_k2.lm.sub_lm import make_sub_lm
    >>> tree_roots(make_sub_lm({("ann", "b"): 1.0}, "tree")).tolist()
    [0, 1, -1]
    """
    going = np.zeros(len(sub.finals), dtype=bool)
    going[sub.sources] = True
    going[0] = True
    return np.where(going, np.cumsum(going) - 1, END)


def name_arcs(
    sub: SubLm,
    spoken: Spoken,
    word_ids: np.ndarray,
    silence: Silence | None = None,
    silence_id: int = 0,
) -> NameArcs:
    """The acceptor of a sub-LM; names with a word without pronunciation have no path.

    Args:
        spoken: pronunciations of ``sub.words``.
        word_ids: (W,) their numbers.
        silence: what may stand behind each word, the last one too.
        silence_id: its token.
    """
    counts = np.bincount(spoken.owners, minlength=len(sub.words))
    first = np.cumsum(counts) - counts
    of_arc = counts[sub.labels]
    arc = np.repeat(np.arange(len(sub.labels)), of_arc)
    variant = ranges(first[sub.labels], of_arc)
    # The best words come first, so that the first row of a branch is its best one.
    order = np.argsort(-sub.log_probs[arc], kind="stable")
    arc, variant = arc[order], variant[order]
    root = tree_roots(sub)
    word = word_ids[sub.labels[arc]]
    tree, at, best, num_states = _trees(
        root[sub.sources[arc]], spoken, variant, sub.log_probs[arc], word, int(root.max()) + 1
    )
    lengths = spoken.lengths[variant]
    last = spoken.tokens[variant, lengths - 1]
    score, to = sub.log_probs[arc] - best, sub.targets[arc]
    ends = NameArcs(at, to, last, score, word)
    if silence is None:
        return NameArcs.joined([tree, *_onward(ends, root, sub.finals)])
    # Behind each word, silence or none, and one state of silence for each state of the sub-LM.
    used, rank = np.unique(to, return_inverse=True)
    pause = num_states + np.arange(len(used))
    silent = replace(ends, targets=pause[rank.reshape(-1)], scores=score + np.log(silence.prob))
    loud = replace(ends, scores=score + np.log1p(-silence.prob))
    none = np.zeros(len(used), dtype=np.int64)
    after = NameArcs(pause, used, none + silence_id, none.astype(np.float64), none)
    parts = [*_onward(loud, root, sub.finals), *_onward(after, root, sub.finals)]
    return NameArcs.joined([tree, silent, *parts])


def _trees(
    roots: np.ndarray,
    spoken: Spoken,
    variant: np.ndarray,
    log_probs: np.ndarray,
    word: np.ndarray,
    num_states: int,
) -> tuple[NameArcs, np.ndarray, np.ndarray, int]:
    """The arcs of all tokens but the last, then for each row its state there and what is scored.

    Rows are sorted by falling ``log_probs``. The number of states comes last. Of ``word`` only what
    the last token says is left.
    """
    tokens, lengths = spoken.tokens[variant], spoken.lengths[variant]
    width = int(tokens.max(initial=0)) + 1
    at, best = roots.copy(), np.zeros(len(roots))
    parts = []
    for level in range(int(lengths.max(initial=1)) - 1):
        rows = np.flatnonzero(lengths > level + 1)
        keys = at[rows] * width + tokens[rows, level]
        distinct, first, which, count = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        which, leading = which.reshape(-1), rows[first]
        target = num_states + np.arange(len(distinct))
        num_states += len(distinct)
        scores = log_probs[leading] - best[leading]
        said = np.where(count == 1, word[leading], 0)
        word[leading[count == 1]] = 0
        parts.append(NameArcs(at[leading], target, tokens[leading, level], scores, said))
        at[rows], best[rows] = target[which], log_probs[leading][which]
    empty = np.zeros(0, dtype=np.int64)
    parts.append(NameArcs(empty, empty, empty, empty.astype(np.float64), empty))
    return NameArcs.joined(parts), at, best, num_states


def _onward(arcs: NameArcs, root: np.ndarray, finals: np.ndarray) -> list[NameArcs]:
    """Arcs into states of the sub-LM, as arcs to their trees, and to the end of the name."""
    more = arcs[np.flatnonzero(root[arcs.targets] >= 0)]
    over = arcs[np.flatnonzero(np.isfinite(finals[arcs.targets]))]
    return [
        replace(more, targets=root[more.targets]),
        replace(
            over,
            targets=np.full(len(over.targets), END),
            scores=over.scores + finals[over.targets],
        ),
    ]
