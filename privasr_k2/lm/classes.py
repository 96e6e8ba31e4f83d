"""A class language model: an n-gram model of words and classes, and a model of each class's names.

In ``... call <PER> now`` the root model predicts ``<PER>``, the class's automaton the words of the
name. Which words are names is hidden: P(w | history) is the sum over all readings (the forward
algorithm), and sums to 1 over the vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.lm.arpa import BOS, EOS, LOG10_ZERO, UNK, Arpa
from privasr_k2.lm.marginals import history_sums
from privasr_k2.lm.neural.prefix_tree import PrefixTree, build_tree
from privasr_k2.lm.neural.vocabulary import BOUNDARY, SYMBOLS, UNKNOWN, Vocabulary
from privasr_k2.lm.sub_lm import JoinedSubLms, SubLm, join_sub_lms
from privasr_k2.ragged import ranges
from privasr_k2.text.tags import tag_of

#: Sentences that are scored together.
BLOCK = 20_000

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class Hidden:
    """The K possible states before the next word, for some histories at once.

    Attributes:
        owners: (K,) the history of each, ascending.
        nodes: (K,) the history's node in the root model; inside a name, that after the name.
        states: (K,) the state inside a name, -1 outside of one.
        probs: (K,) P(hypothesis | the words of the history); they sum to 1 for each history.
    """

    owners: np.ndarray
    nodes: np.ndarray
    states: np.ndarray
    probs: np.ndarray

    def select(self, owners: np.ndarray) -> Hidden:
        """The hypotheses of ``owners`` (M,), which may repeat, renumbered 0 to M - 1."""
        starts = np.searchsorted(self.owners, owners)
        counts = np.searchsorted(self.owners, owners, side="right") - starts
        which, rows = np.repeat(np.arange(len(starts)), counts), ranges(starts, counts)
        return Hidden(which, self.nodes[rows], self.states[rows], self.probs[rows])


class ClassLm:
    """A root model and the sub-models of its classes.

    Args:
        root: words and tags such as ``<PER>``.
        sub_lms: for each class (``PER``) its automaton.
        cut_history: after a name the root model goes on from the tag alone. A graph then needs one
            copy of each sub-model only.

    Raises:
        GraphError: a class whose tag the root model lacks.
    """

    def __init__(
        self,
        root: Arpa,
        sub_lms: Mapping[str, SubLm],
        *,
        cut_history: bool = False,
        name: str = "class_lm",
    ) -> None:
        self.root, self.sub_lms, self.cut_history = root, dict(sub_lms), cut_history
        self.name = name
        lacking = [kind for kind in sub_lms if tag_of(kind) not in root.word_ids]
        if lacking:
            raise GraphError(name, f"{tag_of(lacking[0])} in the root model", "none", "train anew")
        tags = {tag_of(kind) for kind in sub_lms}
        plain = set(root.words) - tags - {BOS, EOS, UNK}
        words = sorted(plain.union(*(sub.words for sub in sub_lms.values())) - {UNK})
        self.vocabulary = Vocabulary((*SYMBOLS, *words))
        unigrams = root.log10_probs[: len(root.words)] > LOG10_ZERO + 1
        self.scores_unknown = (UNK in root.word_ids and bool(unigrams[root.word_ids[UNK]])) or any(
            UNK in sub.words for sub in sub_lms.values()
        )

    @property
    def words(self) -> Collection[str]:
        """The words that have a probability of their own."""
        return frozenset(self.vocabulary.words)

    def token_log_probs(self, sentences: Sentences) -> np.ndarray:
        """Natural log P of all words and sentence ends, (M,) float64, sentence by sentence.

        An unknown word has the probability of ``<unk>``.
        """
        blocks = [sentences[start : start + BLOCK] for start in range(0, len(sentences), BLOCK)]
        return np.concatenate([np.zeros(0), *map(self._score, blocks)])

    def nbest_token_log_probs(self, nbests: Sequence[Sentences]) -> np.ndarray:
        """The same for the hypotheses of N-best lists."""
        return self.token_log_probs([hyp for nbest in nbests for hyp in nbest])

    def with_root(self, root: Arpa) -> ClassLm:
        """The same names under another root model."""
        return ClassLm(root, self.sub_lms, cut_history=self.cut_history, name=self.name)

    def same_names(self, other: ClassLm) -> bool:
        """Whether both have the same sub-models."""
        keys = ("words", "sources", "labels", "targets", "log_probs", "finals")
        return self.sub_lms.keys() == other.sub_lms.keys() and all(
            np.array_equal(getattr(sub, key), getattr(other.sub_lms[kind], key))
            for kind, sub in self.sub_lms.items()
            for key in keys
        )

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums of P(w | hypothesis) over w: of each node (n + 1,), and inside names (S,).

        Inside names it is the names' own part; ending gives that of the node.
        """
        names, factors = self._names, np.ones(len(self.root.words))
        going = np.bincount(names.sources, names.probs, minlength=len(names.ends))
        factors[self._tags] = going[names.starts]
        return history_sums(self.root, factors), going + names.ends

    def start(self) -> Hidden:
        """The beginning of a sentence, as history 0."""
        zero = np.zeros(1, dtype=np.int64)
        return Hidden(zero, self._history[zero + self.root.word_ids[BOS] + 1], zero - 1, np.ones(1))

    def read(
        self, hidden: Hidden, owners: np.ndarray, words: np.ndarray
    ) -> tuple[np.ndarray, Hidden]:
        """One more word after each of E histories.

        Args:
            owners: (E,) the histories, which may repeat.
            words: (E,) numbers of ``vocabulary``; :data:`BOUNDARY` is the sentence's end.

        Returns:
            (E,) P(word | history), and the new histories, number e after word e; after a word of
            probability 0 the root model's empty one.
        """
        before = self._with_ends(hidden).select(owners)
        word = words[before.owners]
        outside = np.flatnonzero(before.states < 0)
        branches = [self._plain(before, outside, word), self._entering(before, outside, word)]
        branches.append(self._inside(before, np.flatnonzero(before.states >= 0), word))
        joined = _joined(*branches)
        probs = np.bincount(joined.owners, joined.probs, minlength=len(words))
        lost = np.flatnonzero(probs <= 0)
        zero = np.zeros_like(lost)
        conditional = joined.probs / np.where(probs > 0, probs, 1.0)[joined.owners]
        going = Hidden(joined.owners, joined.nodes, joined.states, conditional)
        return probs, self._merged(_joined(going, Hidden(lost, zero, zero - 1, zero + 1.0)))

    def _score(self, sentences: Sentences) -> np.ndarray:
        text = self.vocabulary.encode(sentences)
        tree = build_tree(text.padded(np.arange(len(text))), text.lengths)
        probs = self._edge_probs(tree)
        with np.errstate(divide="ignore"):
            return np.log(probs)[tree.edges[tree.order]]

    def _edge_probs(self, tree: PrefixTree) -> np.ndarray:
        """(E,) P of every edge of a prefix tree, level by level."""
        blocks, hidden = [], self.start()
        borders = np.searchsorted(tree.edge_nodes, tree.starts)
        for level, (first, last) in enumerate(zip(borders, [*borders[1:], len(tree.edge_nodes)])):
            if first == last:
                continue
            words = tree.edge_words[first:last]
            owners = tree.edge_nodes[first:last] - tree.starts[level]
            probs, after = self.read(hidden, owners, words)
            blocks.append(probs)
            hidden = after.select(np.flatnonzero(words != BOUNDARY))
        return np.concatenate(blocks)

    def _with_ends(self, hidden: Hidden) -> Hidden:
        """With a hypothesis outside of names for each that may end its name now."""
        inside = np.flatnonzero(hidden.states >= 0)
        probs = hidden.probs[inside] * self._names.ends[hidden.states[inside]]
        ending, probs = inside[probs > 0], probs[probs > 0]
        if not ending.size:
            return hidden
        ended = Hidden(hidden.owners[ending], hidden.nodes[ending], np.full(len(ending), -1), probs)
        return self._merged(_joined(hidden, ended))

    def _plain(self, before: Hidden, rows: np.ndarray, words: np.ndarray) -> Hidden:
        roots = self._roots[words[rows]]
        rows, roots = rows[roots >= 0], roots[roots >= 0]
        nodes = before.nodes[rows]
        probs = before.probs[rows] * self._root_probs(nodes, roots)
        outside = np.full(len(rows), -1)
        return _possible(before.owners[rows], self._after(nodes, roots), outside, probs)

    def _entering(self, before: Hidden, rows: np.ndarray, words: np.ndarray) -> Hidden:
        names = self._names
        first = np.searchsorted(names.first_words, words[rows])
        count = np.searchsorted(names.first_words, words[rows], side="right") - first
        rows, arcs = np.repeat(rows, count), names.first_arcs[ranges(first, count)]
        tags = self._tags[names.class_of[names.sources[arcs]]]
        probs = before.probs[rows] * self._root_probs(before.nodes[rows], tags) * names.probs[arcs]
        nodes = np.zeros_like(rows) if self.cut_history else before.nodes[rows]
        return _possible(before.owners[rows], self._after(nodes, tags), names.targets[arcs], probs)

    def _inside(self, before: Hidden, rows: np.ndarray, words: np.ndarray) -> Hidden:
        wanted = before.states[rows] * self._names.num_words + words[rows]
        arcs = np.minimum(np.searchsorted(self._names.keys, wanted), len(self._names.keys) - 1)
        there = self._names.keys[arcs] == wanted
        rows, arcs = rows[there], arcs[there]
        probs = before.probs[rows] * self._names.probs[arcs]
        return _possible(before.owners[rows], before.nodes[rows], self._names.targets[arcs], probs)

    def _merged(self, hidden: Hidden) -> Hidden:
        """Equal hypotheses of a history as one; sorted by history."""
        nodes, states = len(self._history), len(self._names.ends) + 1
        keys = (hidden.owners * nodes + hidden.nodes) * states + hidden.states + 1
        different, which = np.unique(keys, return_inverse=True)
        owners_nodes, state = np.divmod(different, states)
        owners, node = np.divmod(owners_nodes, nodes)
        probs = np.bincount(which, hidden.probs, minlength=len(different))
        return Hidden(owners, node, state - 1, probs)

    def _root_probs(self, nodes: np.ndarray, roots: np.ndarray) -> np.ndarray:
        log10_probs = self.root.log10_conditional(nodes, roots)
        return np.where(log10_probs > LOG10_ZERO + 1, 10.0**log10_probs, 0.0)

    def _after(self, nodes: np.ndarray, roots: np.ndarray) -> np.ndarray:
        return self._history[self.root.longest_nodes(nodes, roots, self.root.suffixes)]

    @cached_property
    def _history(self) -> np.ndarray:
        """(n + 1,) each node, or its longest suffix that begins an n-gram."""
        nodes = np.arange(len(self.root.keys) + 1)
        highest = self.root.rows_of_orders()[-1].start + 1
        nodes[highest:] = self.root.suffixes[highest:] if self.root.order > 1 else 0
        return nodes

    @cached_property
    def _roots(self) -> np.ndarray:
        """(V,) each word of the vocabulary in the root model, -1 where it is missing."""
        ids = self.root.word_ids
        numbers = np.array([ids.get(word, -1) for word in self.vocabulary.symbols], dtype=np.int64)
        numbers[[BOUNDARY, UNKNOWN]] = ids[EOS], ids.get(UNK, -1)
        return numbers

    @cached_property
    def _tags(self) -> np.ndarray:
        """(C,) each class's tag in the root model."""
        return np.array([self.root.word_ids[tag_of(kind)] for kind in self.sub_lms], dtype=np.int64)

    @cached_property
    def _names(self) -> JoinedSubLms:
        return join_sub_lms([*self.sub_lms.values()], {**self.vocabulary.ids, UNK: UNKNOWN})


def _possible(
    owners: np.ndarray, nodes: np.ndarray, states: np.ndarray, probs: np.ndarray
) -> Hidden:
    kept = probs > 0
    return Hidden(owners[kept], nodes[kept], states[kept], probs[kept])


def _joined(*parts: Hidden) -> Hidden:
    keys = ("owners", "nodes", "states", "probs")
    return Hidden(*(np.concatenate([getattr(part, key) for part in parts]) for key in keys))
