"""Models, lists, timelines and backgrounds of the FMP verbs, and scores by eq. 1 of [liu2020]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.decoding.lm_scores import read_lm_scores, sentences_of
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.federated.adapted_lm import Mixing, Nbest, adapted_arpa_log_probs, adapted_log_probs
from privasr_k2.federated.fmp_background import read_background
from privasr_k2.federated.fmp_published import is_published, read_published
from privasr_k2.federated.fmp_release import read_release, released_marginals
from privasr_k2.federated.fmp_settings import FmpConfig
from privasr_k2.federated.fmp_simulation import (
    AdaptedScores,
    normalized_log_probs,
    token_log_ratios,
)
from privasr_k2.federated.fmp_spoken import (
    Spoken,
    Turn,
    WordNumbers,
    numbers_of_arpa,
    numbers_of_vocabulary,
    spoken_of,
)
from privasr_k2.federated.fmp_timeline import read_timeline
from privasr_k2.fileio import read_json
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.lm.class_files import is_class_lm
from privasr_k2.lm.mixtures import open_lm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import read_vocabulary
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestLists, read_nbest


@dataclass(frozen=True)
class Adaptable:
    """A language model that marginals can adapt.

    Attributes:
        name: of its folder or file.
        numbers: of its words.
        plain: unadapted natural logs of every word and sentence end of N-best lists.
        score: the same, adapted and normalized.
    """

    name: str
    numbers: WordNumbers
    plain: Callable[[Sequence[Nbest]], np.ndarray]
    score: AdaptedScores


def numbers_of_lm(path: Path) -> WordNumbers:
    """The numbering of the words of a neural model's folder or an ARPA file."""
    _refuse_mixtures(path)
    if path.is_dir():
        return numbers_of_vocabulary(read_vocabulary(path / "words.txt"), unknown=True)
    return numbers_of_arpa(read_arpa(path), unknown=True)


def _refuse_mixtures(path: Path) -> None:
    if is_class_lm(path) or path.suffix == ".json":
        raise DataError(path, "a neural LM or ARPA file", "a class LM or mixture", "adapt a part")


def open_adaptable(path: Path, device: str) -> Adaptable:
    """The model at ``path``: a folder of ``train_lm``, or an ARPA file.

    Raises:
        DataError: another kind of model.
    """
    _refuse_mixtures(path)
    lm = open_lm(path, device)
    if isinstance(lm, NeuralScorer):
        numbers = numbers_of_vocabulary(lm.vocabulary, unknown=True)
        score: AdaptedScores = partial(adapted_log_probs, lm)
    else:
        arpa = read_arpa(path)
        numbers, score = numbers_of_arpa(arpa, unknown=True), partial(adapted_arpa_log_probs, arpa)
    return Adaptable(path.name.split(".")[0], numbers, lm.nbest_token_log_probs, score)


@dataclass(frozen=True, eq=False)
class World:
    """The lists of one role, the same as arrays, and the background u (V,)."""

    lists: NbestLists
    spoken: Spoken
    background: np.ndarray


def read_world(nbest: Path, timeline: Path, background: Path, numbers: WordNumbers) -> World:
    """Lists, their timeline, and u of the file of ``prepare_fmp``."""
    lists = read_nbest(nbest)
    spoken = spoken_of(lists, read_timeline(timeline), numbers)
    return World(lists, spoken, read_background(background, numbers))


def references(world: World) -> World:
    """The same utterances of the same clients, each with what was said as its one hypothesis."""
    spoken = world.spoken
    order = np.lexsort((spoken.places, spoken.clients)).tolist()
    turns = [
        Turn(
            spoken.ids[i],
            spoken.client_names[spoken.clients[i]],
            spoken.user_names[spoken.users[i]],
            spoken.kind,
        )
        for i in order
    ]
    said = tuple(
        replace(nbest, no_path=False, hyps=(Hypothesis(1, nbest.ref, 0.0, {}),))
        for nbest in world.lists.lists
    )
    lists = replace(world.lists, lists=said)
    return World(lists, spoken_of(lists, turns, spoken.numbers), world.background)


def read_plain(path: Path, lists: NbestLists) -> np.ndarray:
    """(W,) the unadapted model's scores in a file of ``lm_scores``."""
    [log_probs] = read_lm_scores([path], lists).values()
    return log_probs


def token_scores(
    world: World,
    lm: Adaptable,
    config: FmpConfig,
    lams: Sequence[float],
    released: np.ndarray | None,
    plain: np.ndarray | None,
    said: World | None = None,
) -> np.ndarray:
    """(W, K) natural logs of all words and sentence ends of all hypotheses, for each lambda.

    Args:
        said: :func:`references`, which are scored in place of the lists, normalized.
        released: (T, V) global marginals; None: the exact average of eq. 6.
        plain: (W,) unadapted scores, where known; unnormalized scores then need no model.
    """
    spoken, caches = world.spoken, (config, world.background)
    if config.normalized or said is not None:
        scored = world if said is None else said
        mixings = [Mixing(lam, config.alpha, config.beta) for lam in lams]
        nbests = [[hyp.words.split() for hyp in nbest.hyps] for nbest in scored.lists.lists]
        shared = [released] * len(lams)
        return normalized_log_probs(
            spoken, nbests, lm.score, *caches, mixings, shared, scored.spoken
        )
    scores = lm.plain(sentences_of(world.lists)) if plain is None else plain
    mixing = Mixing(1.0, config.alpha, config.beta)
    ratios = token_log_ratios(spoken, *caches, [mixing], [released])
    return scores[:, None] + np.array(lams) * ratios


def read_released(
    path: Path, numbers: WordNumbers, config: FmpConfig, background: np.ndarray
) -> tuple[np.ndarray, dict[str, Any]]:
    """The usable global marginals (T, V) of a release, and its settings.

    Raises:
        DataError: another vocabulary.
        ConfigError: another number of rounds.
    """
    if is_published(path):
        marginals, settings = read_published(path, numbers)
        about: dict[str, Any] = {"mechanism": "as published, eq. 8-9", **settings}
    else:
        mechanism, measured = read_release(path, numbers)
        sums, errors = mechanism.sums(measured), mechanism.errors()
        smoothing = {"threshold": config.threshold, "prior_words": config.release_words}
        marginals = released_marginals(sums, errors, background, **smoothing)
        about = {**vars(mechanism.config), "sd_of_counts": [float(value) for value in errors]}
    if len(marginals) != config.rounds:
        raise ConfigError("rounds", f"{len(marginals)}, as {path}", str(config.rounds), "set its T")
    return marginals, about


def as_chosen(config: FmpConfig, path: Path) -> FmpConfig:
    """The settings with lambda and whatever else was chosen on dev.

    Raises:
        DataError: the file is not one of ``personalize --out-choice``.
    """
    content = read_json(path)
    try:
        if content["role"] != "dev":
            raise DataError(path, "lambda that was chosen on dev", str(content["role"]), "use dev")
        names = {"alpha": "alpha", "beta": "beta", "kernel_bandwidth": "kernel_bandwidth"}
        names |= {"sigma": "kernel_bandwidth"}  # as it was called
        chosen = {name: float(content[key]) for key, name in names.items() if key in content}
        return replace(config, lam=float(content["lam"]), **chosen)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            path, "what personalize --out-choice writes", repr(error), "choose again"
        ) from error
