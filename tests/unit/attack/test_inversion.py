"""Inversion climbs the likelihood, by gradients and by scores, and counts what it asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.attack.background import read_background
from privasr_k2.attack.inversion import Inverted, cosines, invert, penalty
from privasr_k2.attack.inversion_files import read_inversion, write_inversion
from privasr_k2.attack.likelihood import attacked, randomly_initialized
from privasr_k2.attack.settings import InversionConfig
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import load_lang
from tests.support.attack_small import background, loaded, speak, write_cuts, write_lang
from tests.support.end_to_end import END_TO_END, model
from tests.support.sequence_scores import score_hypotheses
from tests.support.small_am import tiny_model

QUICK = ("steps=40", "restarts=2", "lr=0.1", "population=10", "queries=400")


def config(*overrides: str) -> InversionConfig:
    return loaded(InversionConfig, "inversion", *QUICK, *overrides)


def inverted(*overrides: str) -> Inverted:
    """The attack on a tiny model for one word."""
    target = attacked([tiny_model("tdnn")])
    return invert(target, "AB", [1, 2], background(AB=32), config(*overrides), "cpu")


def tiny(kind: str) -> object:
    return tiny_model("tdnn") if kind == "ctc" else model(kind)


@pytest.mark.parametrize("kind", ["ctc", *END_TO_END])
def test_likelihoods_are_those_of_the_recognizer(kind: str) -> None:
    features = torch.randn(3, 40, 5, generator=torch.Generator().manual_seed(1))
    of_one = tiny(kind)
    # A hybrid's loss weighs its parts otherwise than its scores.
    if kind == "ctc_attention":
        of_one.ctc_weight = of_one.spec.ctc_share  # type: ignore[attr-defined]
    found = attacked([of_one]).log_likelihoods(features, [1, 3, 2])
    expected = score_hypotheses(of_one, features, torch.full((3,), 40), [[[1, 3, 2]]] * 3)  # type: ignore[arg-type]
    assert torch.allclose(found, torch.cat(expected), atol=1e-4)


def test_an_ensemble_averages_probabilities() -> None:
    features = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(1))
    models = [model("rnnt"), model("las")]
    alone = [attacked([one]).log_likelihoods(features, [2, 1]).exp() for one in models]
    found = attacked(models, [0.25, 0.75]).log_likelihoods(features, [2, 1])
    assert torch.allclose(found.exp(), 0.25 * alone[0] + 0.75 * alone[1], rtol=1e-5)
    found = attacked(models).log_likelihoods(features, [2, 1])
    assert torch.allclose(found.exp(), (alone[0] + alone[1]) / 2, rtol=1e-5)
    with pytest.raises(ConfigError, match="one for each of 2 models"):
        attacked(models, [1.0])


@pytest.mark.parametrize("kind", ["ctc", *END_TO_END])
@pytest.mark.parametrize("attack", ["white_box", "black_box"])
def test_the_word_becomes_likely(kind: str, attack: str) -> None:
    target = attacked([tiny(kind)])
    free = config(f"attack={attack}", "prior=0.0", "smoothness=0.0", "jitter=0.0")
    found = invert(target, "AB", [1, 2], background(AB=32), free, "cpu")
    assert found.features.shape == (32, 5)
    assert found.log_likelihood > found.begun_at + 0.05
    again = target.log_likelihoods(torch.from_numpy(found.features).unsqueeze(0), [1, 2])
    assert again.item() == pytest.approx(found.log_likelihood, abs=1e-4)


def test_queries_are_counted_and_bounded() -> None:
    asked = []
    target = attacked([tiny_model("tdnn")])
    score = target.log_likelihoods

    class Counted:
        models = target.models

        def fewest_frames(self, tokens: list[int]) -> int:
            return target.fewest_frames(tokens)

        def log_likelihoods(self, features: torch.Tensor, tokens: list[int]) -> torch.Tensor:
            asked.append(len(features))
            return score(features, tokens)

    black = config("attack=black_box", "queries=400")
    found = invert(Counted(), "AB", [1, 2], background(AB=32), black, "cpu")  # type: ignore[arg-type]
    assert sum(asked) == found.queries == 381
    asked.clear()
    found = invert(Counted(), "AB", [1, 2], background(AB=32), config(), "cpu")  # type: ignore[arg-type]
    assert sum(asked) == found.queries == 2 * 41


def test_the_prior_keeps_features_ordinary() -> None:
    sizes = [np.square(inverted(f"prior={prior}").features).mean() for prior in (0.0, 100.0)]
    assert sizes[1] < sizes[0] / 4
    z = torch.tensor([[[1.0], [3.0]]])
    found = penalty(z, config("prior=2.0", "smoothness=10.0")).item()
    assert found == pytest.approx(2 * 5 + 10 * 4)


def test_the_same_seed_finds_the_same() -> None:
    for attack in ("white_box", "black_box"):
        one, two, other = (inverted(f"attack={attack}", f"seed={s}") for s in (1, 1, 2))
        assert (one.features == two.features).all() and (one.features != other.features).any()


def test_a_word_has_room_for_its_tokens() -> None:
    target = attacked([tiny_model("tdnn")])
    # 4 output frames, a third of the input frames each.
    assert target.fewest_frames([1, 1, 2]) == 10
    assert target.models[0].output_frames(9) == 3
    found = invert(target, "x", [1, 1, 2], background(x=2), config("steps=1"), "cpu")
    assert len(found.features) == 10


def test_cosines_are_slow() -> None:
    assert (cosines(20, 1) - 20**-0.5).abs().max() < 1e-6
    turns = (cosines(20, 6).sign().diff(dim=0) != 0).sum(0)
    assert turns.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_control_knows_nothing_private() -> None:
    trained = tiny_model("tdnn")
    trained.mean += 7.0
    mean, deviation = torch.full((5,), 2.0), torch.full((5,), 3.0)
    made = randomly_initialized(trained, mean, deviation, seed=5).models[0]
    assert made.mean.tolist() == [2.0] * 5 and made.deviation.tolist() == [3.0] * 5
    assert not torch.equal(made.output.weight, trained.output.weight)
    assert trained.mean[0] == 7.0


def test_background(tmp_path: Path) -> None:
    rng, feats = np.random.default_rng(0), tmp_path / "feats"
    lang = load_lang(write_lang(tmp_path / "lang"))
    spoken = [("s", text, speak(text, rng)) for text in ("AB", "AB C", "AB")]
    spoken[2] = ("s", "AB", np.concatenate([spoken[2][2], np.zeros((4, 5))]))
    write_cuts(feats, "train", spoken)
    found = read_background(feats, ["train"], lang, utterances=100)
    every = np.concatenate([values for *_, values in spoken])
    assert np.allclose(found.mean, every.mean(0), atol=1e-5)
    assert np.allclose(found.deviation, every.std(0))
    assert found.frames == {"AB": 28, "AB C": 37} and found.frame_shift == 0.01
    assert found.frames_of("AB", 2) == 28
    assert found.frames_of("CA", 2) == round(2 * np.median([26 / 2, 37 / 3, 30 / 2]))
    assert read_background(feats, ["train"], lang, utterances=1).frames == {"AB": 26}
    with pytest.raises(DataError, match="dev"):
        read_background(feats, ["dev"], lang, utterances=9)


def test_files(tmp_path: Path) -> None:
    made = inverted("steps=1")
    write_inversion(tmp_path / "teacher_1.safetensors", {"AB": made}, background(), config(), 3)
    found = read_inversion(tmp_path / "teacher_1.safetensors")
    about = (found.name, found.models, found.control, found.frame_shift)
    assert about == ("teacher_1", 3, False, 0.01)
    assert replace(found.words["AB"], features=0) == replace(made, features=0)  # type: ignore[arg-type]
    assert (found.words["AB"].features == made.features).all()
    with pytest.raises(DataError, match="no such file"):
        read_inversion(tmp_path / "none.safetensors")


def test_losses_of_all_models_at_once_are_taken() -> None:
    features = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(1))
    models = [model("rnnt"), model("las")]
    losses = lambda *given: torch.stack([one(*given) for one in models])  # noqa: E731
    both = attacked(models, [0.25, 0.75], losses), attacked(models, [0.25, 0.75])
    assert torch.equal(*(target.log_likelihoods(features, [2, 1]) for target in both))
    halved = attacked(models, (), lambda *given: torch.full((2, 2), 0.5))
    assert halved.log_likelihoods(features, [2, 1]).tolist() == pytest.approx([-0.5, -0.5])


def test_bad_input() -> None:
    lists = ("words=[]", "words=[A,A]", "weights=[0.5,0.6]", "heads=[0]", "heads=[1,1]")
    for wrong in (*lists, "attack=grey", "queries=20", "lr=0.0"):
        with pytest.raises(ConfigError, match=wrong.partition("=")[0]):
            config(wrong)
