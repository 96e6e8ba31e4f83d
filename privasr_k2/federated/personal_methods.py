"""Ways in which a device personalizes a shared language model.

    none      the shared model as it is
    adapter   the device trains low-rank adapters, or another part, on what its user said
    cache     p'(w | h) = (1 - s) p(w | h) + s c(w | h), c the n-gram model of what the user said
    names     p'(w | h) = p(w | h) e^(s [w in N]) / Z(h), N the user's words that are rare in public

Federated marginals are :mod:`privasr_k2.federated.adapted_lm`. A new way is a class with the
methods of :class:`privasr_k2.federated.personal.Device` and an entry of :data:`METHODS`.

The cache is that of [kuhn1990], with n-grams in place of single words, smoothed by Witten and Bell.

[kuhn1990] R. Kuhn and R. De Mori, A cache-based natural language model for speech recognition, IEEE
Trans. Pattern Analysis and Machine Intelligence 12 (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import MinLen
from torch import Tensor

from privasr_k2.constraints import Checked, Choices, Count, FiniteOrZero, PositiveShare, one_of
from privasr_k2.errors import ConfigError
from privasr_k2.federated.adapted_lm import Nbest
from privasr_k2.federated.client import ClientConfig, LocalTrainer
from privasr_k2.federated.client_ngrams import ClientNgrams, ClientWords, Tokens
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.device_costs import COUNT_BYTES, WORD_BYTES
from privasr_k2.federated.fmp_scores import Adaptable
from privasr_k2.federated.personal import Device, Sentences
from privasr_k2.federated.settings import InitConfig
from privasr_k2.federated.train import load_initial
from privasr_k2.lm.neural.files import SPEC
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import NO_WORDS
from privasr_k2.training.trainable import LoraConfig


def _names_of_methods() -> tuple[str, ...]:
    return tuple(METHODS)


@dataclass(frozen=True)
class AdapterConfig(Checked):
    """What a device trains; see ``adapter`` of ``conf/personal.yaml#personal``."""

    trained: list[str]
    lora: LoraConfig
    epochs: Count
    batch_size: Count


@dataclass(frozen=True)
class PersonalConfig(Checked):
    """A way of personalization; see ``conf/personal.yaml#personal``."""

    method: Annotated[str, Choices(_names_of_methods)]
    rounds: Count
    strength: FiniteOrZero
    strengths: Annotated[list[FiniteOrZero], MinLen(1)]
    adapter: AdapterConfig
    order: Count
    rare: PositiveShare
    normalized: bool
    criterion: Annotated[str, one_of("errors", "perplexity")]
    name: str
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "cache" and max([self.strength, *self.strengths]) >= 1:
            raise ValueError("strengths of a cache must be below 1: they are its weight")


class Unchanged:
    """The shared model as it is."""

    reads_shared = True
    kept_bytes = 0

    def __init__(self, strengths: int) -> None:
        self._strengths = strengths

    def learn(self, sentences: Sentences) -> None:
        """Nothing."""

    def log_probs(self, nbests: Sequence[Nbest], plain: np.ndarray) -> np.ndarray:
        return np.repeat(plain[:, None], self._strengths, axis=1)


class Copy(NamedTuple):
    """A copy of the shared model that devices train one after the other."""

    trainer: LocalTrainer
    scorer: NeuralScorer


class Adapter:
    """SGD on the device, from the shared weights on: each utterance is trained on once it is said.

    A device whose training has diverged, so that scores are not finite, scores by the shared model.

    Args:
        copies: (K,) for each learning rate its trainer and a scorer of the trainer's model; None
            where the rate is 0.
        shared: (P,) the weights of the part that is trained.
    """

    reads_shared = False

    def __init__(self, copies: Sequence[Copy | None], shared: Tensor) -> None:
        self._copies, self._weights, self._rounds = copies, [shared for _ in copies], 0

    def learn(self, sentences: Sentences) -> None:
        for number, copy in enumerate(self._copies):
            if copy is None:
                continue
            text = copy.scorer.vocabulary.encode(sentences)
            weights = np.ones(int(text.lengths.sum()), dtype=np.float32)
            client = ClientData("device", text, weights, len(text.words))
            copy.trainer.load(self._weights[number])
            for _, update in copy.trainer.updates([client], self._rounds):
                if isinstance(update, Tensor):
                    self._weights[number] = self._weights[number] - update
        self._rounds += 1

    def log_probs(self, nbests: Sequence[Nbest], plain: np.ndarray) -> np.ndarray:
        columns = []
        for copy, weights in zip(self._copies, self._weights):
            scores = plain
            if copy is not None:
                copy.trainer.load(weights)
                scores = copy.scorer.nbest_token_log_probs(nbests)
            columns.append(scores if np.isfinite(scores).all() else plain)
        return np.stack(columns, axis=1)

    @property
    def kept_bytes(self) -> int:
        return self._weights[0].numel() * self._weights[0].element_size()


class Cache:
    """An n-gram model of all that the user said, mixed with the shared model word by word.

    Args:
        words: of the shared model.
        order: of the longest n-grams.
        shares: (K,) the cache's weight, in [0, 1).
    """

    reads_shared = True

    def __init__(self, words: ClientWords, order: int, shares: Sequence[float]) -> None:
        self._words, self._order, self._shares = words, order, np.array(shares)
        self._said: Tokens | None = None
        self._model: ClientNgrams | None = None

    def learn(self, sentences: Sentences) -> None:
        new = self._words.encode(sentences)
        self._said = new if self._said is None else self._said.followed_by(new)
        self._model = ClientNgrams(self._words, self._said, order=self._order)

    def log_probs(self, nbests: Sequence[Nbest], plain: np.ndarray) -> np.ndarray:
        assert self._model is not None
        text = self._words.encode([hyp for nbest in nbests for hyp in nbest])
        own = self._model.log_probs(text)
        with np.errstate(divide="ignore"):
            weights = np.log([1 - self._shares, self._shares])
        # A share of 0 leaves the bits of the shared model.
        return np.logaddexp(plain[:, None] + weights[0], own[:, None] + weights[1])

    @property
    def kept_bytes(self) -> int:
        return 0 if self._model is None else self._model.ngrams * (COUNT_BYTES + WORD_BYTES)


class Names:
    """A bonus for the user's words that are rare in public text, names most of them.

    Args:
        is_rare: (V,) words that public text has at most so often.
        bonuses: (K,) natural logs.
        normalized: divide by Z(h).
    """

    def __init__(
        self, lm: Adaptable, is_rare: np.ndarray, bonuses: Sequence[float], *, normalized: bool
    ) -> None:
        self._lm, self._is_rare, self._normalized = lm, is_rare, normalized
        self._bonuses = np.array(bonuses)
        self._own = np.zeros(len(is_rare), dtype=bool)
        self.reads_shared = not normalized

    def learn(self, sentences: Sentences) -> None:
        words = (word for sentence in sentences for word in sentence)
        numbers = np.array(self._lm.numbers.of([*words], "what the user said"), dtype=np.int64)
        self._own[numbers[self._is_rare[numbers]]] = True

    def log_probs(self, nbests: Sequence[Nbest], plain: np.ndarray) -> np.ndarray:
        table = self._bonuses[:, None] * self._own
        if self._normalized:
            states = np.zeros(len(nbests), dtype=np.int64)
            scores = self._lm.score(nbests, states, lambda _: table)
            # A bonus of 0 has the bits of the shared model.
            return np.where(self._bonuses > 0, scores, plain[:, None])
        numbers, end = self._lm.numbers, [self._lm.numbers.end]
        tokens = [n for nbest in nbests for hyp in nbest for n in numbers.of(hyp, "lists") + end]
        return plain[:, None] + table[:, tokens].T

    @property
    def kept_bytes(self) -> int:
        return int(self._own.sum()) * WORD_BYTES


Begin = Callable[[], Device]


def _unchanged(
    path: Path, lm: Adaptable, config: PersonalConfig, strengths: Sequence[float], u: np.ndarray
) -> Begin:
    return lambda: Unchanged(len(strengths))


def _adapters(
    path: Path, lm: Adaptable, config: PersonalConfig, strengths: Sequence[float], u: np.ndarray
) -> Begin:
    if not (path / SPEC).is_file():
        raise ConfigError("method", "cache or names for an ARPA file", "adapter", "change one")
    own = config.adapter
    init = InitConfig(init="pretrained", trained=own.trained, lora=own.lora, seed=config.seed)

    def copy(lr: float) -> Copy:
        model, vocabulary, _ = load_initial(path, init)
        client = ClientConfig(own.epochs, own.batch_size, lr or 1.0, max_seconds=0)
        return Copy(LocalTrainer(model, client, config.seed), NeuralScorer(model, vocabulary))

    # The shared weights are those of a copy before anything is learned.
    shared = copy(1.0).trainer.vector
    copies = [copy(lr) if lr else None for lr in strengths]
    return lambda: Adapter(copies, shared)


def _caches(
    path: Path, lm: Adaptable, config: PersonalConfig, strengths: Sequence[float], u: np.ndarray
) -> Begin:
    words = ClientWords([word for word in lm.numbers.ids if word not in NO_WORDS])
    return lambda: Cache(words, config.order, strengths)


def _names(
    path: Path, lm: Adaptable, config: PersonalConfig, strengths: Sequence[float], u: np.ndarray
) -> Begin:
    is_rare = lm.numbers.is_word & (u <= config.rare)
    if lm.numbers.unknown is not None:
        is_rare[lm.numbers.unknown] = False
    return lambda: Names(lm, is_rare, strengths, normalized=config.normalized)


#: Of each method, what makes the model of a new device.
METHODS: Mapping[
    str, Callable[[Path, Adaptable, PersonalConfig, Sequence[float], np.ndarray], Begin]
] = {"none": _unchanged, "adapter": _adapters, "cache": _caches, "names": _names}
