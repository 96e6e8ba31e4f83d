"""The confidence model: features, classifier and calibration; training, files, application.

Calibration needs words that the network was not trained on: given ones, or by cross-fitting. Users
are dealt into folds, each scored by a network trained on the others; the network that is kept is
trained on all.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge

from privasr_k2.confidence import calibration
from privasr_k2.confidence.calibration import Calibrator
from privasr_k2.confidence.features import AGREEMENT, CONFIDENCE, FeatureSettings, WordFeatures
from privasr_k2.confidence.targets import targets_of
from privasr_k2.constraints import Checked, Count, Natural, NotNegative, Positive, one_of
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_json, write_json
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import NbestList, NbestLists

if TYPE_CHECKING:
    from privasr_k2.confidence.network import ConfidenceNetwork

log = logging.getLogger(__name__)

NETWORK, OWN = "network", "own"
MODEL_FILE, WEIGHTS_FILE = "confidence.json", "confidence.safetensors"
TRAINED_ON = "trained_on"

_CONFIDENCE_DIGITS = 6


@dataclass(frozen=True)
class ConfidenceConfig(Checked):
    """How a confidence model is trained; defaults in ``conf/confidence.yaml#confidence``.

    Args:
        classifier: ``network``, or ``own`` for the recognizer's own confidence as the only score.
        hidden: widths of the network's hidden layers.
        isotonic_from: ``auto`` is isotonic from so many words on.
        folds: of cross-fitting, where no lists for calibration are given.
        around: words on each side for the mean confidence around a word.
        nbest_scale: on total scores, for the posteriors of hypotheses.
        seed: of initial weights, batches and folds.
    """

    classifier: Annotated[str, one_of(NETWORK, OWN)]
    hidden: list[Count]
    epochs: Count
    batch_size: Count
    lr: Positive
    weight_decay: NotNegative
    calibration: Annotated[str, one_of(*calibration.KINDS)]
    isotonic_from: Natural
    folds: Annotated[int, Ge(2)]
    around: Natural
    nbest_scale: Positive
    seed: int

    def settings(self, weights: Weights) -> FeatureSettings:
        """How features are computed."""
        return FeatureSettings(weights, self.nbest_scale, self.around)


@dataclass(frozen=True)
class Examples:
    """Words of known correctness.

    Attributes:
        features: (N, F) of the model's features.
        correct: (N,) bool.
        speakers: (N,) numbers of users.
        utterances: (U,) :func:`hashes_of` their utterances.
        place: of the lists, for an error.
    """

    features: np.ndarray
    correct: np.ndarray
    speakers: np.ndarray
    utterances: np.ndarray
    place: Path


@dataclass(frozen=True)
class ConfidenceModel:
    """A trained model.

    Attributes:
        names: the features that it takes.
        settings: how they are computed.
        calibrator: from scores to probabilities.
        network: ``None`` where the classifier is the recognizer's own confidence.
        trained_on: (U,) :func:`hashes_of` the utterances of network and calibrator, increasing.
    """

    classifier: str
    names: tuple[str, ...]
    settings: FeatureSettings
    calibrator: Calibrator
    network: ConfidenceNetwork | None
    trained_on: np.ndarray

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(N,) log-odds of (N, F) features."""
        return features[:, 0] if self.network is None else self.network.scores(features)

    def confidences(self, features: np.ndarray, *, calibrated: bool) -> np.ndarray:
        """(N,) probabilities; without calibration the classifier's own."""
        use = self.calibrator if calibrated else calibration.IDENTITY
        return np.clip(use(self.scores(features)), 0.0, 1.0)


def feature_names(config: ConfidenceConfig, features: WordFeatures, place: Path) -> tuple[str, ...]:
    """The features of a model that is trained on these words.

    Raises:
        DataError: ``classifier=own`` for hypotheses without confidences.
    """
    if config.classifier == NETWORK:
        # Lists of one hypothesis each tell nothing by their agreement, 1 for all words.
        agree = AGREEMENT in features.names and (features.column(AGREEMENT) != 1).any()
        return tuple(name for name in features.names if name != AGREEMENT or agree)
    if CONFIDENCE not in features.names:
        raise DataError(place, "word confidences", "none", "choose --set classifier=network")
    return (CONFIDENCE,)


def select(features: WordFeatures, names: Sequence[str], place: Path) -> np.ndarray:
    """(W, F) the values of some features.

    Raises:
        DataError: lists that cannot give one of them.
    """
    if missing := [name for name in names if name not in features.names]:
        way_out = "give the scores, times and confidences of the training, or train without"
        expected, found_names = f"the features {' '.join(names)}", f"no {' '.join(missing)}"
        raise DataError(place, expected, found_names, way_out)
    return features.values[:, [features.names.index(name) for name in names]]


def examples_of(
    lists: NbestLists, features: WordFeatures, names: Sequence[str], scored_units: Mapping[str, str]
) -> Examples:
    """The scored words of the best hypotheses of ``lists``, with the features ``names``."""
    targets = targets_of(lists, scored_units)
    values, kept = select(features, names, lists.place)[features.best], targets.scored
    seen = hashes_of(nbest.id for nbest in lists.lists)
    correct, speakers = targets.correct[kept] == 1, targets.speakers[kept]
    return Examples(values[kept], correct, speakers, seen, lists.place)


def hashes_of(utterances: Iterable[str]) -> np.ndarray:
    """(U,) int64 the first 8 bytes of the SHA-256 of each id, the least significant one first."""
    digests = b"".join(hashlib.sha256(name.encode()).digest()[:8] for name in utterances)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


def check_unseen(lists: NbestLists, trained_on: np.ndarray) -> None:
    """Refuse utterances that a network or a calibrator was trained on.

    Args:
        trained_on: (U,) their :func:`hashes_of`.

    Raises:
        DataError: there are such, with the line of the first one.
    """
    seen = np.isin(hashes_of(nbest.id for nbest in lists.lists), trained_on)
    if seen.any():
        first = lists.lists[int(seen.argmax())].id
        expected = "utterances that the confidence model was not trained on"
        found = f"{int(seen.sum())} of {len(seen)} that it was, {first} the first"
        raise DataError(lists.lines[first], expected, found, "give lists of other utterances")


def with_confidences(lists: NbestLists, confidences: np.ndarray) -> Iterator[NbestList]:
    """The lists with the confidences (W,) in [0, 1] of the words of all hypotheses."""
    at = 0
    for nbest in lists.lists:
        hyps = []
        for hyp in nbest.hyps:
            end = at + len(hyp.words.split())
            values = tuple(round(float(value), _CONFIDENCE_DIGITS) for value in confidences[at:end])
            hyps.append(replace(hyp, confidences=values))
            at = end
        yield replace(nbest, hyps=tuple(hyps))


def train_model(
    config: ConfidenceConfig,
    names: Sequence[str],
    settings: FeatureSettings,
    train: Examples,
    held_out: Examples | None,
) -> ConfidenceModel:
    """Train the classifier and calibrate it on words that it was not trained on.

    Args:
        train: for the network; without ``held_out`` also for the calibrator, by cross-fitting.
        held_out: for the calibrator, of other utterances (:func:`check_unseen`).

    Raises:
        DataError: all words are correct, or none.
    """
    for examples in (train, held_out):
        if examples is not None and len(np.unique(examples.correct)) < 2:
            expected, found = "correct and wrong words", "words of one kind only"
            way_out = "give more utterances; recipe rescore: --confidence false"
            raise DataError(examples.place, expected, found, way_out)
    network, scorer = None, _own
    if config.classifier == NETWORK:
        network = _network(config, train, np.ones(len(train.correct), dtype=bool))
        scorer = network.scores
    if held_out is not None:
        scores, correct = scorer(held_out.features), held_out.correct
    elif config.classifier == NETWORK:
        scores, correct = _cross_fitted(config, train), train.correct
    else:
        scores, correct = _own(train.features), train.correct
    kind, isotonic_from = config.calibration, config.isotonic_from
    calibrator = calibration.fit(kind, scores, correct, isotonic_from=isotonic_from)
    log.info(
        "%s on %d words, %.1f %% correct; calibration %s on %d words, %.1f %% correct",
        config.classifier, len(train.correct), 100 * train.correct.mean(),
        calibrator.kind, len(correct), 100 * correct.mean(),
    )  # fmt: skip
    seen = [examples.utterances for examples in (train, held_out) if examples is not None]
    trained_on = np.unique(np.concatenate(seen))
    return ConfidenceModel(
        config.classifier, tuple(names), settings, calibrator, network, trained_on
    )


def _own(features: np.ndarray) -> np.ndarray:
    return features[:, 0]


def _network(config: ConfidenceConfig, train: Examples, kept: np.ndarray) -> ConfidenceNetwork:
    from privasr_k2.confidence.network import train_network

    names = ("hidden", "epochs", "batch_size", "lr", "weight_decay", "seed")
    settings: dict[str, Any] = {name: getattr(config, name) for name in names}
    return train_network(train.features[kept], train.correct[kept], **settings)


def _cross_fitted(config: ConfidenceConfig, train: Examples) -> np.ndarray:
    """(N,) scores of each word by a network of other users (for one user: of other words)."""
    groups = train.speakers
    if len(np.unique(groups)) < 2:
        groups = np.arange(len(groups))
    names, where = np.unique(groups, return_inverse=True)
    folds = min(config.folds, len(names))
    fold = (stream(config.seed, "folds").permutation(len(names)) % folds)[where]
    scores = np.zeros(len(groups))
    for number in range(folds):
        held = fold == number
        scores[held] = _network(config, train, ~held).scores(train.features[held])
    return scores


def save_model(model: ConfidenceModel, folder: Path) -> None:
    """Write a model's folder, all or nothing: plain values as JSON, numbers as safetensors."""
    import torch

    from privasr_k2.training.weights import save_tensors

    weights = model.settings.weights
    plain = {
        "classifier": model.classifier,
        "features": list(model.names),
        "hidden": [] if model.network is None else _widths(model.network),
        "calibration": model.calibrator.kind,
        "around": model.settings.around,
        "nbest_scale": model.settings.nbest_scale,
        **weights._asdict(),
    }
    tensors = {
        "calibrator/x": torch.from_numpy(model.calibrator.x),
        "calibrator/y": torch.from_numpy(model.calibrator.y),
        TRAINED_ON: torch.from_numpy(model.trained_on),
    }
    if model.network is not None:
        state = model.network.state_dict()
        tensors |= {f"network/{name}": value for name, value in state.items()}
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        write_json(temporary / MODEL_FILE, plain)
        save_tensors(temporary / WEIGHTS_FILE, tensors)


def load_model(folder: Path) -> ConfidenceModel:
    """Read what :func:`save_model` wrote.

    Raises:
        DataError: a file is missing or damaged.
    """
    from privasr_k2.confidence.network import ConfidenceNetwork
    from privasr_k2.training.weights import fill, load_tensors

    path = folder / MODEL_FILE
    if not path.is_file():
        raise DataError(path, "a confidence model", "nothing", "train one: train_confidence")
    plain: dict[str, Any] = read_json(path)
    tensors = load_tensors(folder / WEIGHTS_FILE)
    try:
        names = tuple(map(str, plain["features"]))
        weights = Weights(float(plain["lm_weight"]), float(plain["insertion_penalty"]))
        settings = FeatureSettings(weights, float(plain["nbest_scale"]), int(plain["around"]))
        tensor_names = ("calibrator/x", "calibrator/y", TRAINED_ON)
        x, y, trained_on = (tensors[name].numpy() for name in tensor_names)
        kind, classifier = str(plain["calibration"]), str(plain["classifier"])
        kinds = set(calibration.KINDS) - {calibration.AUTO}
        if kind not in kinds or classifier not in (NETWORK, OWN):
            raise ValueError(f"calibration: {kind}, classifier: {classifier}")
        calibrator = Calibrator(kind, x, y)
        network = None
        if classifier == NETWORK:
            network = ConfidenceNetwork(len(names), [int(width) for width in plain["hidden"]])
            network.eval()
    except (KeyError, TypeError, ValueError) as error:
        way_out = "train the model again"
        raise DataError(path, "what train_confidence writes", repr(error), way_out) from error
    if network is not None:
        of_network = (name for name in tensors if name.startswith("network/"))
        values = {name.removeprefix("network/"): tensors[name] for name in of_network}
        fill(network, values, folder / WEIGHTS_FILE)
    return ConfidenceModel(classifier, names, settings, calibrator, network, trained_on)


def _widths(network: ConfidenceNetwork) -> list[int]:
    return [layer.out_features for layer in network.layers if hasattr(layer, "out_features")][:-1]
