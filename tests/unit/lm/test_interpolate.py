"""Weights and mixtures; the mixtures' probabilities are checked in tests/oracles."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.lm.arpa import Arpa, write_arpa
from privasr_k2.lm.class_files import save_class_lm
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.interpolate import (
    DevText,
    Interpolated,
    InterpolationConfig,
    checked_weights,
    em_weights,
    interpolate,
)
from privasr_k2.lm.mixtures import interpolate_files, open_lm, save_mixture
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.lm.sub_lm import make_sub_lm
from tests.support.conf import section
from tests.support.tiny_lm import table

CONF = section("interpolate")


def bigrams(text: str, words: str, discounting: str = "witten_bell") -> Arpa:
    sentences = [line.split() for line in text.split(";")]
    return estimate(count_ngrams(sentences, words.split(), order=2), discounting)


def class_lm(weight: float = 1.0) -> ClassLm:
    names = make_sub_lm({("ann",): 1.0, ("bob",): weight}, "tree")
    return ClassLm(bigrams("a <PER>;b <PER> a", "a b ann bob <PER>"), {"PER": names})


def test_one_model_is_itself() -> None:
    model = bigrams("a b;b", "a b")
    mixed = interpolate([model, bigrams("a a", "a b")], [1.0, 0.0])
    expected = table(model)
    for ngram, (prob, _) in table(mixed).items():
        if ngram in expected:
            assert prob == pytest.approx(expected[ngram][0])


def test_by_hand() -> None:
    mixed = interpolate([bigrams("a b", "a b"), bigrams("b", "a b")], [0.25, 0.75])
    found = table(mixed)
    # Unigrams, Witten-Bell: (count + 3 / 4) / 6 and (count + 2 / 4) / 4 for a b </s> <unk>.
    assert found[("a",)][0] == pytest.approx(0.25 * 1.75 / 6 + 0.75 * 0.5 / 4)
    # (count + P(b)) / 2 in the first; backing off from a history it does not have in the second.
    assert found[("a", "b")][0] == pytest.approx(0.25 * (1 + 1.75 / 6) / 2 + 0.75 * 1.5 / 4)
    assert set(found) >= {("<s>", "a"), ("<s>", "b"), ("a", "b"), ("b", "</s>")}


def test_no_weight_becomes_zero() -> None:
    """EM's steps would underflow; a class LM of weight 0 would lose its names."""
    log_probs = np.log(np.tile([[1e-12, 0.4, 0.5]], (50, 1)))
    weights, _ = em_weights(log_probs, tolerance=-1.0)
    assert weights.min() > 0 and weights.sum() == pytest.approx(1) and weights[2] > 0.999


def test_em_and_what_it_cannot_use() -> None:
    weights, mean = em_weights(np.log([[0.5, 0.25]] * 3))
    assert weights[0] > 0.999
    assert mean == pytest.approx(math.log(0.5), abs=1e-3)
    with pytest.raises(DataError, match="word 2"):
        em_weights(np.array([[0.0, 0.0], [-np.inf, -np.inf]]))


@pytest.mark.parametrize(
    ("weights", "count", "expected"),
    [
        ("em", 5, None),
        ("preset", 2, [0.3, 0.7]),
        ("preset", 3, [0.18, 0.42, 0.4]),
        ("0.25,0.75", 2, [0.25, 0.75]),
    ],
)
def test_weights_of_the_configuration(
    weights: str, count: int, expected: list[float] | None
) -> None:
    found = config.load(InterpolationConfig, [CONF], [f"weights='{weights}'"]).fixed_weights(count)
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("weights", "count", "words"),
    [
        ("0.5,0.6", 2, "sum 1.1"),
        ("0.5,0.5", 3, "3 numbers"),
        ("-0.5,1.5", 2, "in \\[0, 1\\]"),
        ("preset", 4, "2 or 3 models"),
        ("half,half", 2, "numbers parted by commas"),
    ],
)
def test_weights_that_do_not_fit(weights: str, count: int, words: str) -> None:
    settings = config.load(InterpolationConfig, [CONF], [f"weights='{weights}'"])
    with pytest.raises(DataError, match=words):
        settings.fixed_weights(count)


@pytest.mark.parametrize(
    "value", ["form=both", "preset=[0.3,0.6,0.4]", "preset=[0.3,0.7]", "tolerance=0", "max_steps=0"]
)
def test_values_out_of_range(value: str) -> None:
    with pytest.raises(ConfigError):
        config.load(InterpolationConfig, [CONF], [value])


def test_vocabularies_that_differ(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    paths = [tmp_path / "a.arpa", tmp_path / "b.arpa"]
    write_arpa(bigrams("a b", "a b"), paths[0])
    write_arpa(bigrams("a c", "a c"), paths[1])
    lms = [open_lm(path) for path in paths]
    mixture = Interpolated(lms, [0.5, 0.5])
    assert mixture.words == {"a", "b", "c"}
    assert len(mixture.token_log_probs([["a", "zzz"]])) == 3
    for call in (mixture.token_log_probs, lambda s: mixture.nbest_token_log_probs([s])):
        with pytest.raises(GraphError, match="'b', known to some"):
            call([["a", "b"]])
    # For EM such words are left out, and those that nobody knows.
    dev = DevText(lms, [["a", "b"], ["zzz"]])
    assert dev.log_probs.shape == (3, 2)
    every = lms[0].token_log_probs([["a", "b"], ["zzz"]])
    np.testing.assert_array_equal(dev.log_probs[:, 0], every[[0, 2, 4]])
    known = DevText(lms, [["a"]]).log_probs[:, 0]
    np.testing.assert_array_equal(known, lms[0].token_log_probs([["a"]]))
    with pytest.raises(DataError, match="dev text: expected sentences"):
        DevText(lms, [])


def test_dev_text_measures_as_perplexity_does(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    paths = [tmp_path / "a.arpa", tmp_path / "b.arpa"]
    for path, text in zip(paths, ("a b;a a b", "b a;b")):
        write_arpa(bigrams(text, "a b"), path)
    text = [["a", "zzz", "b"], ["b", "a"]]
    dev = DevText([open_lm(path) for path in paths], text)
    save_mixture(tmp_path / "m.json", paths, [0.25, 0.75])
    exact = perplexity(open_lm(tmp_path / "m.json"), text, ["a", "b"])
    assert dev.exact_ppl(np.array([0.25, 0.75])) == pytest.approx(exact.ppl, rel=1e-9)
    assert exact.ppl_with_oov != pytest.approx(exact.ppl, rel=1e-2)
    first = open_lm(paths[0])
    assert dev.ppl(first) == pytest.approx(perplexity(first, text, ["a", "b"]).ppl, rel=1e-9)


def test_a_mixture_file(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    write_arpa(bigrams("a ann;b", "a b ann bob"), tmp_path / "x" / "a.arpa")
    save_class_lm(tmp_path / "c", class_lm())
    path = tmp_path / "y" / "mixture.json"
    save_mixture(path, [tmp_path / "x" / "a.arpa", tmp_path / "c"], [0.25, 0.75])
    assert [one["path"] for one in read_json(path)["lms"]] == ["../x/a.arpa", "../c"]
    text = [["a", "bob"], ["b"]]
    parts = [open_lm(p).token_log_probs(text) for p in (tmp_path / "x" / "a.arpa", tmp_path / "c")]
    expected = np.log(0.25 * np.exp(parts[0]) + 0.75 * np.exp(parts[1]))
    mixture = open_lm(path)
    np.testing.assert_allclose(mixture.token_log_probs(text), expected, atol=1e-12)
    assert mixture.name == str(path)
    spec = read_json(path)
    spec["lms"][0]["weight"] = 0.5
    write_json(path, spec)
    with pytest.raises(DataError, match=r"sum 1.25"):
        open_lm(path)
    save_class_lm(tmp_path / "c", class_lm(weight=2.0))
    with pytest.raises(DataError, match="as it was when weights were chosen"):
        open_lm(path)
    write_json(path, {"lms": []})
    with pytest.raises(DataError, match="another file"):
        open_lm(path)


def test_static_mixtures_of_files(tmp_path: Path) -> None:
    words = bigrams("a ann;b", "a b ann bob")
    write_arpa(words, tmp_path / "a.arpa")
    save_class_lm(tmp_path / "c", class_lm())
    save_class_lm(tmp_path / "d", class_lm(weight=2.0))
    plain = interpolate_files([tmp_path / "a.arpa"] * 2, [0.5, 0.5])
    assert isinstance(plain, Arpa) and plain.counts == words.counts
    mixed = interpolate_files([tmp_path / "a.arpa", tmp_path / "c"], [0.25, 0.75])
    assert isinstance(mixed, ClassLm) and mixed.same_names(class_lm())
    nodes, _ = mixed.sums()
    assert np.abs(nodes - 1).max() < 1e-5
    expected = 0.75 * table(class_lm().root)[("a", "<PER>")][0]
    assert table(mixed.root)[("a", "<PER>")][0] == pytest.approx(expected, abs=1e-6)
    with pytest.raises(DataError, match="the names of"):
        interpolate_files([tmp_path / "c", tmp_path / "d"], [0.5, 0.5])
    (tmp_path / "neural").mkdir()
    with pytest.raises(DataError, match="form=dynamic"):
        interpolate_files([tmp_path / "neural"], [1.0])


def test_checked_weights_name_the_place() -> None:
    with pytest.raises(DataError, match=r"mix.json: expected 2 numbers"):
        checked_weights([1.0], 2, "mix.json")
