"""Membership inference finds who was there, and nobody where nobody was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.attack.membership import of_teachers, told, unit_losses
from privasr_k2.attack.occurrences import cuts_of
from privasr_k2.attack.settings import MembershipConfig
from privasr_k2.attack.studies import Side, study
from privasr_k2.data.features import load_features
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.ensembles import TeacherEnsemble
from tests.support.attack_small import loaded, speak, write_cuts, write_lang
from tests.support.end_to_end import model
from tests.support.sequence_scores import score_hypotheses


def config(*overrides: str) -> MembershipConfig:
    return loaded(MembershipConfig, "membership", *overrides)


def test_losses_are_nats_a_token_of_all_speech(tmp_path: Path) -> None:
    import torch

    rng, models = np.random.default_rng(0), [model("rnnt"), model("ctc_attention")]
    lang = load_lang(write_lang(tmp_path / "lang"))
    spoken = [("y", "C AB"), ("x", "AB"), ("y", "AB AB CA"), ("z", "AB NOWHERE")]
    said = [(who, text, speak(text.replace("NOWHERE", "C"), rng)) for who, text in spoken]
    write_cuts(tmp_path / "feats", "train", said)
    cuts = list(cuts_of([tmp_path / "feats"], ["train"]))
    scores = TeacherEnsemble(models, per_token=False).hypothesis_scores
    found = unit_losses(scores, cuts, lang, "cpu", unit="speaker", max_duration=0.5)
    assert list(found) == ["x", "y"]
    alone = []
    for cut in (cuts[0], cuts[2]):
        features = torch.from_numpy(load_features(cut)).unsqueeze(0)
        tokens = lang.encode(cut.supervisions[0].text)
        batch = features, torch.tensor([features.size(1)]), [[tokens]]
        alone.append([-float(score_hypotheses(one, *batch)[0]) for one in models])
    assert found["y"] == pytest.approx(np.array(alone).sum(0) / (3 + 6), rel=1e-4)
    by_utterance = unit_losses(scores, cuts, lang, "cpu", unit="utterance", max_duration=60)
    assert len(by_utterance) == 3
    assert by_utterance[cuts[0].id] == pytest.approx(np.array(alone[0]) / 3, rel=1e-4)


def losses(
    gain: float, units: int = 60, teachers: int = 5
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Some speakers are hard and some teachers bad; of whom it has seen one makes ``gain`` less."""
    rng = np.random.default_rng(3)
    hard, bad = 3 * rng.normal(size=(units, 1)), 3 * rng.normal(size=teachers)
    made = hard + bad + rng.normal(size=(units, teachers))
    roster = {f"u{n:02}": n % teachers + 1 for n in range(units)}
    made[np.arange(units), np.arange(units) % teachers] -= gain
    return dict(zip(roster, made)), roster


def test_teachers_give_their_shards_away() -> None:
    found = of_teachers(*losses(gain=4.0), config())
    assert found["right_shard"] > 0.9 and found["right_shard_interval"][0] > found["chance"] == 0.2
    assert found["auc"] > 0.95 and found["tpr"] > 0.9
    nothing = of_teachers(*losses(gain=0.0), config())
    low, high = nothing["right_shard_interval"]
    assert low < nothing["chance"] < high and abs(nothing["auc"] - 0.5) < 0.1


def test_teachers_need_their_shards() -> None:
    made, roster = losses(gain=0.0)
    with pytest.raises(DataError, match=r"shards \[6\]"):
        of_teachers(made, {**roster, "u00": 6}, config())
    with pytest.raises(DataError, match="1 teachers"):
        of_teachers({unit: of[:1] for unit, of in made.items()}, dict.fromkeys(roster, 1), config())


def test_a_reference_takes_off_what_is_hard() -> None:
    rng = np.random.default_rng(5)
    hard = 5 * rng.normal(size=80)
    members = hard[:40] - 1 + 0.3 * rng.normal(size=40)
    others = hard[40:] + 0.3 * rng.normal(size=40)
    bare = told(-members, -others, config())
    found = told(hard[:40] - members, hard[40:] - others, config())
    assert found["auc"] > 0.95 > bare["auc"] + 0.2
    assert (found["members"], found["others"]) == (40, 40)


def test_models_by_name() -> None:
    members = {"a": np.array([0.0, 9.0, 1.0]), "b": np.array([1.0, 9.0, 2.0])}
    others = {"c": np.array([4.0, 9.0, 2.0]), "d": np.array([5.0, 9.0, 3.0])}
    sides = Side(members, None, None), Side(others, None, None)
    found = study(*sides, ["one", "two"], config("fpr=0.5"), reference=True)["models"]
    assert (found["one"]["auc"], found["two"]["auc"]) == (1.0, 0.125)
    with pytest.raises(DataError, match="1 of them both a"):
        study(sides[0], Side({"a": others["c"]}, None, None), ["one"], config(), reference=False)


def test_bad_input() -> None:
    for wrong in ("unit=word", "fpr=0.0", "max_duration=0.0", "other_roles=[]"):
        with pytest.raises(ConfigError, match=wrong.partition("=")[0]):
            config(wrong)
