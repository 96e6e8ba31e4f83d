"""Language models that score many histories at once, word by word, for searches in lattices."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import EOS
from privasr_k2.lm.neural.vocabulary import BOUNDARY
from privasr_k2.lm.perplexity import KenlmModel, LanguageModel

if TYPE_CHECKING:
    from privasr_k2.lm.neural.scoring import NeuralScorer

S = TypeVar("S")


class SteppingLm(Protocol[S]):
    """A model that is read word by word; a state ``S`` holds N histories as its rows."""

    name: str

    @property
    def words(self) -> Collection[str]:
        """The words that have a probability of their own."""

    @property
    def scores_unknown(self) -> bool:
        """Whether ``<unk>`` has a probability."""

    def symbols(self, words: Sequence[str]) -> np.ndarray:
        """(V,) int64 the model's numbers of words, equal for words that it does not tell apart.

        The first word stands for the end of the sentence.
        """

    def state_size(self, length: int) -> int:
        """Numbers in the state of a history of ``length`` words."""

    def start(self, num: int) -> S:
        """``num`` histories at the beginning of a sentence."""

    def read(self, parts: Sequence[tuple[S, np.ndarray]], symbols: np.ndarray) -> S:
        """One more word (M,) after each of M histories.

        Args:
            parts: states and which of their rows, which may repeat; M together.
        """

    def score(self, states: S, rows: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        """(E,) float64 natural log P(symbols[e] | history rows[e])."""


class SteppingNeural:
    """A neural model; a history is the network's state and hidden values."""

    scores_unknown = True

    def __init__(self, scorer: NeuralScorer) -> None:
        self.name, self._scorer, self._model = scorer.name, scorer, scorer.model.eval()

    @property
    def words(self) -> Collection[str]:
        return self._scorer.words

    def symbols(self, words: Sequence[str]) -> np.ndarray:
        return np.append(BOUNDARY, self._scorer.vocabulary.numbers(words[1:])).astype(np.int64)

    def state_size(self, length: int) -> int:
        return self._model.state_size(length) + self._model.output.dim

    def start(self, num: int) -> tuple[Any, Any]:
        first = np.full(num, BOUNDARY, dtype=np.int64)
        return self._step(self._model.initial_state(num), first)

    def read(
        self, parts: Sequence[tuple[tuple[Any, Any], np.ndarray]], symbols: np.ndarray
    ) -> tuple[Any, Any]:
        from privasr_k2.lm.neural.model import join

        states = join([state.select(self._tensor(rows)) for (_, state), rows in parts])
        return self._step(states, symbols)

    def score(self, states: tuple[Any, Any], rows: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            output = self._model.output
            which = self._tensor(symbols), self._tensor(rows)
            log_probs = output.target_log_probs(states[0], *which)
            return log_probs.double().cpu().numpy()

    def _step(self, state: Any, symbols: np.ndarray) -> tuple[Any, Any]:
        import torch

        with torch.no_grad():
            return self._model.step(self._tensor(symbols), state)

    def _tensor(self, values: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(np.ascontiguousarray(values)).to(self._scorer.device)


class SteppingNgram:
    """An ARPA model in kenlm, exact; a history is a kenlm state."""

    def __init__(self, lm: KenlmModel) -> None:
        self.name, self._lm, self._texts = lm.name, lm, [EOS]

    @property
    def words(self) -> Collection[str]:
        return self._lm.words

    @property
    def scores_unknown(self) -> bool:
        return self._lm.scores_unknown

    def symbols(self, words: Sequence[str]) -> np.ndarray:
        self._texts = [EOS, *words[1:]]
        return np.arange(len(words))

    def state_size(self, length: int) -> int:
        return self._lm.model.order

    def start(self, num: int) -> list[Any]:
        import kenlm

        state = kenlm.State()
        self._lm.model.BeginSentenceWrite(state)
        return [state] * num

    def read(self, parts: Sequence[tuple[list[Any], np.ndarray]], symbols: np.ndarray) -> list[Any]:
        before = [states[row] for states, rows in parts for row in rows.tolist()]
        return [self._after(state, symbol)[1] for state, symbol in zip(before, symbols.tolist())]

    def score(self, states: list[Any], rows: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        pairs = zip(rows.tolist(), symbols.tolist())
        log_probs = [self._after(states[row], symbol)[0] for row, symbol in pairs]
        return np.array(log_probs, dtype=np.float64) * math.log(10.0)

    def _after(self, state: Any, symbol: int) -> tuple[float, Any]:
        import kenlm

        out = kenlm.State()
        return self._lm.model.BaseScore(state, self._texts[symbol], out), out


def stepping(lm: LanguageModel) -> SteppingLm[Any]:
    """Open an LM that is read word by word, as :func:`privasr_k2.lm.mixtures.open_lm` opens it.

    Raises:
        DataError: a model of another kind.
    """
    if isinstance(lm, KenlmModel):
        return SteppingNgram(lm)
    from privasr_k2.lm.neural.scoring import NeuralScorer

    if isinstance(lm, NeuralScorer):
        return SteppingNeural(lm)
    expected = "an ARPA file or a folder of train_lm, which are read word by word"
    found = f"a model of the kind {type(lm).__name__}"
    raise DataError(lm.name, expected, found, "rescore N-best lists with it: lm_scores")
