"""The model learns, is calibrated on unseen words, and is the same when read again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.confidence import model as model_module
from privasr_k2.confidence.calibration import ISOTONIC, PLATT, sigmoid
from privasr_k2.confidence.features import WordFeatures
from privasr_k2.confidence.model import (
    ConfidenceConfig,
    Examples,
    check_unseen,
    examples_of,
    feature_names,
    hashes_of,
    load_model,
    save_model,
    select,
    train_model,
    with_confidences,
)
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.randomness import stream
from privasr_k2.scoring.confidence_metrics import AUC, ConfidenceSums, MetricOptions
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists
from tests.support.conf import section

NAMES = ("confidence", "characters", "constant")
PLACE = Path("nbest_dev")


@pytest.fixture
def settings() -> ConfidenceConfig:
    return config.load(ConfidenceConfig, [section("confidence")], ["hidden=[16]", "batch_size=100"])


def examples(seed: int, number: int = 3000, speakers: int = 6) -> Examples:
    """Words are correct where the first feature is near 0: no increasing function of it tells."""
    generator = stream(seed, "examples")
    values = generator.normal(0.0, 2.0, (number, 3))
    values[:, 2] = 5.0
    correct = generator.random(number) < sigmoid(3 - values[:, 0] ** 2 + 0.3 * values[:, 1])
    users, seen = generator.integers(0, speakers, number), hashes_of([f"u{seed}", f"v{seed}"])
    return Examples(values, correct, users, seen, Path(f"nbest_{seed}"))


def auc(values: np.ndarray, correct: np.ndarray) -> float:
    speakers, options = np.zeros(len(values), dtype=int), MetricOptions(0.01, 5, 1, 0.9, 1)
    sums = ConfidenceSums(values, correct, speakers, 1, options)
    return float(sums.metrics(np.ones((1, 1)))[AUC][0])


def test_the_network_learns_what_one_feature_cannot_tell(settings: ConfidenceConfig) -> None:
    features = settings.settings(Weights(1.0, 0.0))
    trained = train_model(settings, NAMES, features, examples(1), examples(2))
    test = examples(3)
    found = trained.confidences(test.features, calibrated=True)
    assert auc(found, test.correct) > 0.85 > 0.6 > auc(sigmoid(test.features[:, 0]), test.correct)
    assert abs(found.mean() - test.correct.mean()) < 0.03
    assert trained.calibrator.kind == ISOTONIC
    raw = trained.confidences(test.features, calibrated=False)
    assert raw == pytest.approx(sigmoid(trained.scores(test.features)))


def test_the_scale_of_features_does_not_matter(settings: ConfidenceConfig) -> None:
    scaled = (1e-4 * examples(seed).features + 0.01 for seed in (1, 3))
    train, test = (dataclasses.replace(examples(s), features=f) for s, f in zip((1, 3), scaled))
    trained = train_model(settings, NAMES, settings.settings(Weights(1.0, 0.0)), train, None)
    assert auc(trained.confidences(test.features, calibrated=False), test.correct) > 0.85


def test_the_same_seed_gives_the_same_model(settings: ConfidenceConfig, tmp_path: Path) -> None:
    features = settings.settings(Weights(1.5, -0.5))
    models = [train_model(settings, NAMES, features, examples(1), None) for _ in range(2)]
    for number, one in enumerate(models):
        save_model(one, tmp_path / str(number))
    for name in ("confidence.json", "confidence.safetensors"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
    read, test = load_model(tmp_path / "0"), examples(3)
    assert read.settings == features and read.names == NAMES
    for calibrated in (True, False):
        expected = models[0].confidences(test.features, calibrated=calibrated)
        assert np.array_equal(read.confidences(test.features, calibrated=calibrated), expected)


def test_calibration_never_sees_what_the_network_was_trained_on(
    settings: ConfidenceConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fold's network is trained on all other users; the one that is kept, on all."""
    train, seen = examples(1, number=300, speakers=4), []

    class Remembers:
        def __init__(self, kept: np.ndarray) -> None:
            self.kept = kept

        def scores(self, features: np.ndarray) -> np.ndarray:
            own = {tuple(row) for row in train.features[self.kept]}
            assert not own & {tuple(row) for row in features}
            return features[:, 0]

    def network(_: object, given: Examples, kept: np.ndarray) -> Remembers:
        assert given is train
        seen.append(kept)
        return Remembers(kept)

    monkeypatch.setattr(model_module, "_network", network)
    trained = train_model(settings, NAMES, settings.settings(Weights(1.0, 0.0)), train, None)
    assert seen[0].all() and len(seen) == 5  # 4 users: as many folds
    assert (sum((~kept).astype(int) for kept in seen[1:]) == 1).all()
    for kept in seen[1:]:
        assert not set(train.speakers[kept]) & set(train.speakers[~kept])
    assert trained.calibrator.kind == PLATT


def test_one_user_is_parted_by_words(settings: ConfidenceConfig) -> None:
    train = dataclasses.replace(examples(1, number=400), speakers=np.zeros(400, dtype=int))
    trained = train_model(settings, NAMES, settings.settings(Weights(1.0, 0.0)), train, None)
    assert trained.calibrator.kind == PLATT


def test_the_recognizers_own_confidence(settings: ConfidenceConfig, tmp_path: Path) -> None:
    own = dataclasses.replace(settings, classifier="own", calibration="isotonic")
    found = WordFeatures(("confidence", "characters"), np.ones((4, 2)), np.ones(4, dtype=bool))
    assert feature_names(own, found, PLACE) == ("confidence",)
    assert feature_names(settings, found, PLACE) == ("confidence", "characters")
    one = examples(1)
    data = dataclasses.replace(one, features=one.features[:, :1], correct=one.features[:, 0] > 0)
    trained = train_model(own, ("confidence",), own.settings(Weights(1.0, 0.0)), data, None)
    save_model(trained, tmp_path / "own")
    read = load_model(tmp_path / "own")
    assert read.network is None and read.calibrator.kind == ISOTONIC
    confidences = read.confidences(np.array([[-1.0], [1.0]]), calibrated=True)
    assert confidences == pytest.approx([0, 1], abs=0.01)
    without = WordFeatures(("characters",), np.ones((4, 1)), np.ones(4, dtype=bool))
    with pytest.raises(DataError, match="expected word confidences"):
        feature_names(own, without, PLACE)


def test_what_is_refused(settings: ConfidenceConfig, tmp_path: Path) -> None:
    train = examples(1, number=50)
    for value in (True, False):
        alike = dataclasses.replace(examples(2, number=50), correct=np.full(50, value))
        for given in ((alike, None), (train, alike)):
            with pytest.raises(DataError) as error:
                train_model(settings, NAMES, settings.settings(Weights(1.0, 0.0)), *given)
            told = "nbest_2: expected correct and wrong words, found words of one kind only"
            assert str(error.value).startswith(told) and "--confidence false" in str(error.value)
    found = WordFeatures(("characters",), np.ones((4, 1)), np.ones(4, dtype=bool))
    with pytest.raises(DataError, match="features characters depth, found no depth"):
        select(found, ("characters", "depth"), PLACE)
    with pytest.raises(DataError, match="a confidence model, found nothing"):
        load_model(tmp_path)
    trained = train_model(settings, NAMES, settings.settings(Weights(1.0, 0.0)), train, None)
    save_model(trained, tmp_path / "m")
    plain = read_json(tmp_path / "m/confidence.json")
    write_json(tmp_path / "m/confidence.json", {**plain, "features": ["confidence"]})
    with pytest.raises(DataError, match="the weights of this model"):
        load_model(tmp_path / "m")
    for wrong in ({"calibration": "auto"}, {"calibration": "x"}, {"classifier": "x"}):
        write_json(tmp_path / "m/confidence.json", {**plain, **wrong})
        with pytest.raises(DataError, match="what train_confidence writes, found ValueError"):
            load_model(tmp_path / "m")
    write_json(tmp_path / "m/confidence.json", {"features": []})
    with pytest.raises(DataError, match="what train_confidence writes"):
        load_model(tmp_path / "m")


def test_ranges() -> None:
    training = ("classifier=x", "hidden=[0]", "lr=0", "epochs=0")
    for wrong in (*training, "calibration=x", "folds=1", "around=-1"):
        with pytest.raises(ConfigError, match="allows"):
            config.load(ConfidenceConfig, [section("confidence")], [wrong])


def test_a_model_knows_what_it_was_trained_on(settings: ConfidenceConfig, tmp_path: Path) -> None:
    digest = bytes.fromhex("ba7816bf8f01cfea")
    assert hashes_of(["abc"]).tolist() == [int.from_bytes(digest, "little", signed=True)]
    assert hashes_of([]).shape == (0,)
    features = settings.settings(Weights(1.0, 0.0))
    for folder, held_out in (("one", None), ("two", examples(2, number=200))):
        trained = train_model(settings, NAMES, features, examples(1, number=200), held_out)
        save_model(trained, tmp_path / folder)
    ids = ["u0", "u1", "u2", "v2"]
    nbest = tuple(NbestList(name, "", "s", "", True, ()) for name in ids)
    lists = NbestLists(PLACE, nbest, {name: f"1.jsonl:{name}" for name in ids}, ())
    for folder, found in (("one", "1 of 4"), ("two", "3 of 4")):
        seen = load_model(tmp_path / folder).trained_on
        assert seen.dtype == np.int64 and (np.diff(seen) > 0).all()
        with pytest.raises(
            DataError, match=f"^1.jsonl:u1: .* trained on, found {found} .*, u1 the"
        ):
            check_unseen(lists, seen)
        check_unseen(dataclasses.replace(lists, lists=lists.lists[:1]), seen)


def test_lists_of_one_hypothesis_have_no_say_in_whether_agreement_is_used(
    settings: ConfidenceConfig,
) -> None:
    for agreement, names in ((1, ("n",)), (0.5, ("n", "agreement"))):
        values = np.array([[3.0, 1.0], [3.0, agreement]])
        found = WordFeatures(("n", "agreement"), values, np.ones(2))
        assert feature_names(settings, found, PLACE) == names


def test_words_of_best_hypotheses_and_confidences_of_all() -> None:
    ranked = enumerate(("a uh b", "", "c"), start=1)
    hyps = tuple(Hypothesis(rank, words, 0.0, {}) for rank, words in ranked)
    given = (NbestList("u0", "", "s", "x", True, ()), NbestList("u1", "", "s", "a", False, hyps))
    lists = NbestLists(PLACE, given, {}, ())
    found = WordFeatures(("n",), np.arange(4.0)[:, None], np.array([True, True, True, False]))
    chosen = examples_of(lists, found, ("n",), {"uh": ""})
    assert chosen.features.tolist() == [[0.0], [2.0]] and chosen.correct.tolist() == [True, False]
    assert chosen.utterances.tolist() == hashes_of(["u0", "u1"]).tolist() and chosen.place == PLACE
    written = list(with_confidences(lists, np.array([0.1, 0.2, 0.3, 0.4])))
    assert [hyp.confidences for one in written for hyp in one.hyps] == [(0.1, 0.2, 0.3), (), (0.4,)]
    assert written[0] == given[0]
