"""Distances by warping, and a test over speakers that neither cries wolf nor misses one."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.attack.inversion_report import (
    check_apart,
    distances,
    examine,
    panels,
    report_values,
)
from privasr_k2.attack.pictures import draw_side_by_side, mel_spectrogram
from privasr_k2.attack.settings import InversionReportConfig
from privasr_k2.attack.similarity import advantage, centered, minus, warped_distances
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.holm import holm
from tests.support.attack_small import inversion, loaded, said

TEST = dict(permutations=999, replicates=400, confidence=0.95)


def warped_slowly(one: np.ndarray, other: np.ndarray) -> float:
    """By the definition, cell by cell."""
    best = np.full((len(one), len(other)), np.inf)
    for t in range(len(one)):
        for s in range(len(other)):
            d = np.sqrt(np.mean((one[t] - other[s]) ** 2))
            ways = [2 * d] if t == s == 0 else []
            if t:
                ways.append(best[t - 1, s] + d)
            if s:
                ways.append(best[t, s - 1] + d)
            if t and s:
                ways.append(best[t - 1, s - 1] + 2 * d)
            best[t, s] = min(ways)
    return float(best[-1, -1] / (len(one) + len(other)))


def test_distances_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=(7, 3))
    others = [rng.normal(size=(n, 3)) for n in (1, 2, 6, 7, 11)]
    found = warped_distances(one, others)
    assert np.allclose(found, [warped_slowly(one, other) for other in others])
    assert np.allclose([warped_distances(other, [one])[0] for other in others], found)  # symmetric
    [short] = warped_distances(one[:1], [others[0]])
    assert short == pytest.approx(warped_slowly(one[:1], others[0]))


def test_warping_forgives_the_rate_and_not_the_form() -> None:
    wave = np.sin(np.linspace(0, 6, 40))[:, None] * np.ones((1, 4))
    slow, other = np.repeat(wave, 2, axis=0), -wave
    same, apart = warped_distances(wave, [slow, other])
    assert same < 1e-6 < 0.2 < apart  # the square root of a rounding error


def test_words_are_centered_over_all_speakers() -> None:
    ours, theirs, words = centered(
        {"a": {"x": 1.0, "y": 10.0}, "b": {"x": 2.0}}, {"c": {"x": 3.0, "y": 20.0}, "d": {"z": 1.0}}
    )
    assert words == ["x", "y"]
    assert ours.tolist() == [(-1.0 - 5.0) / 2, 0.0] and theirs.tolist() == [(1.0 + 5.0) / 2]


def test_advantage_is_found_and_not_made_up() -> None:
    rng = np.random.default_rng(1)

    def group(name: str, number: int, by: float) -> dict[str, dict[str, float]]:
        return {f"{name}{n}": {w: 5 + by + rng.normal() for w in "xyz"} for n in range(number)}

    found = advantage(group("m", 20, -1.0), group("o", 15, 0.0), stream(1, "a"), **TEST)
    assert found is not None and (found.members, found.others) == (20, 15)
    assert found.value == pytest.approx(found.other_distance - found.member_distance)
    assert found.low < found.value < found.high and found.low > 0
    assert found.p_value == 1 / 1000
    p_values = [
        advantage(group("m", 8, 0.0), group("o", 6, 0.0), stream(n, "b"), **TEST).p_value  # type: ignore[union-attr]
        for n in range(200)
    ]
    # Exact: below 0.1 in a tenth of all cases, give or take three deviations.
    assert 0.1 - 3 * 0.0212 < np.mean(np.array(p_values) <= 0.1) < 0.1 + 3 * 0.0212


def test_permutation_p_is_that_of_all_permutations() -> None:
    members, others = {"a": {"x": 1.0}, "b": {"x": 2.0}}, {"c": {"x": 3.0}, "d": {"x": 4.0}}
    found = advantage(members, others, stream(1, "a"), **{**TEST, "permutations": 6000})
    assert found is not None and found.value == 2.0
    # 2 of the 6 ways to choose two are as far apart.
    assert found.p_value == pytest.approx(2 / 6, abs=0.03)


def test_an_interval_is_drawn_from_six_speakers_a_group() -> None:
    def group(name: str, number: int) -> dict[str, dict[str, float]]:
        return {f"{name}{n}": {"x": float(n)} for n in range(number)}

    six = advantage(group("m", 6), group("o", 7), stream(1, "a"), **TEST)
    assert six is not None and six.low is not None and six.high is not None
    assert six.low < six.value < six.high
    for sizes in ((5, 7), (7, 5)):
        five = advantage(group("m", sizes[0]), group("o", sizes[1]), stream(1, "a"), **TEST)
        assert five is not None and (five.low, five.high) == (None, None)
        assert five.p_value > 0.05 and (five.members, five.others) == sizes


def test_too_few_speakers_are_not_tested() -> None:
    two = {"a": {"x": 1.0}, "b": {"x": 1.0}}
    assert advantage({"c": {"x": 1.0}}, two, stream(1, "a"), **TEST) is None
    assert advantage(two, {"c": {"y": 1.0}, "d": {"y": 1.0}}, stream(1, "a"), **TEST) is None


def test_minus_takes_what_both_have() -> None:
    first, second = {"a": {"x": 3.0, "y": 1.0}, "b": {"x": 1.0}}, {"a": {"x": 1.0}}
    assert minus(first, second) == {"a": {"x": 2.0}}


def report(*overrides: str) -> InversionReportConfig:
    return loaded(InversionReportConfig, "compare_inversion", "permutations=499", *overrides)


def voices(rng: np.random.Generator, names: str, voice: np.ndarray) -> list:
    base = np.sin(np.linspace(0, 6, 30))[:, None] * np.ones((1, 4))
    twice = [name for name in names for _ in range(2)]
    return [said(name, base + voice + 0.05 * rng.normal(size=base.shape)) for name in twice]


def test_the_report_finds_whose_voice_was_stolen() -> None:
    rng = np.random.default_rng(0)
    tilt = np.linspace(0, 1, 30)[:, None] * np.array([[0.5, -0.5, 0.5, -0.5]])
    members = {"STOP": voices(rng, "abcdefgh", tilt)}
    others = {"STOP": voices(rng, "uvwxyz", -tilt)}
    stolen = inversion("teacher", {"STOP": members["STOP"][0].features})
    control = inversion("control", {"STOP": rng.normal(size=(30, 4))}, control=True)
    results = examine([stolen, control], [members, members], others, report())
    assert results[0].alone is not None
    assert results[0].alone.p_value < 0.01 and results[0].alone.value > 0
    assert results[0].less_control is not None and results[0].less_control.p_value < 0.01
    assert results[1].less_control is None
    told = report_values(results, report())["systems"]["teacher"]
    assert told["words"] == ["STOP"]
    assert (told["alone"]["members"], told["alone"]["others"]) == (8, 6)
    p_values = [results[0].alone.p_value, results[0].less_control.p_value, None, None]
    p_values[2] = None if results[1].alone is None else results[1].alone.p_value
    assert told["alone"]["p_holm"] == holm(p_values)[0]
    # A control of the other attack is none.
    about = {"control": True, "attack": "black_box"}
    other = inversion("control", {"STOP": rng.normal(size=(30, 4))}, **about)
    assert examine([stolen, other], [members, members], others, report())[0].less_control is None


def test_the_utterance_mean_is_no_likeness() -> None:
    rng = np.random.default_rng(0)
    [loud] = voices(rng, "a", np.zeros((1, 4)))[:1]
    found = inversion("x", {"STOP": loud.features})
    louder = {"STOP": [said("b", loud.features + 3.0)]}
    assert distances(found, louder, utterance_mean=True)["b"]["STOP"] < 1e-3
    assert distances(found, louder, utterance_mean=False)["b"]["STOP"] > 1


def test_members_are_no_others() -> None:
    rng = np.random.default_rng(0)
    both = {"STOP": voices(rng, "ab", np.zeros((1, 4)))}
    with pytest.raises(DataError, match="2 speakers in both, a, b"):
        check_apart(both, both, "x")


def test_pictures(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    members = {"STOP": voices(rng, "ab", np.zeros((1, 4)))}
    stop, go = members["STOP"][2].features + 0.01, rng.normal(size=(9, 4))
    found = inversion("teacher", {"STOP": stop, "GO": go})
    rows = panels([found], [members], report())
    names = {word: [name for name, _ in shown] for word, shown in rows}
    assert names == {"STOP": ["said by b", "teacher"], "GO": ["teacher"]}
    assert (rows[0][1][0][1] == members["STOP"][2].features).all()
    for name in ("one", "two"):
        draw_side_by_side(rows, 0.01, tmp_path / f"{name}.svg", axis="cepstral coefficient")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    text = (tmp_path / "one.svg").read_text()
    assert "cepstral coefficient" in text and "mel" not in text
    assert "said by b" in text and text.count("<image") == 3


def test_cepstra_become_the_energies_they_came_from() -> None:
    energies = np.random.default_rng(0).normal(size=(5, 23))
    bins, orders = (np.arange(23) + 0.5) / 23, np.arange(23)
    dct = np.sqrt(2 / 23) * np.cos(np.pi * np.outer(orders, bins))
    dct[0] /= np.sqrt(2)
    lift = 1 + 11 * np.sin(np.pi * orders / 22)
    cepstra = energies @ dct.T * lift
    assert np.allclose(mel_spectrogram(cepstra, mel_bins=23, lifter=22.0), energies)
    few = mel_spectrogram(cepstra[:, :13], mel_bins=23, lifter=22.0)
    assert np.abs(few - energies).max() > 0.1 and np.allclose(few.mean(1), energies.mean(1))
    assert mel_spectrogram(energies, mel_bins=0, lifter=22.0) is energies


def test_bad_input() -> None:
    for wrong in ("other_roles=[]", "confidence=1.0", "permutations=0"):
        with pytest.raises(ConfigError, match=wrong.partition("=")[0]):
            report(wrong)
