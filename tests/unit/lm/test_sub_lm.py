"""Automata of names: what they hold, their files, and what they refuse."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.lm.sub_lm import KINDS, make_sub_lm, mix_names, read_sub_lm, within, write_sub_lm

NAMES = {("ann",): 2.0, ("ann", "lee"): 1.0, ("bob",): 1.0}


def test_a_tree_by_hand() -> None:
    sub = make_sub_lm(NAMES, "tree")
    assert sub.words == ("ann", "bob", "lee")
    arcs = np.stack([sub.sources, sub.targets, sub.labels])
    assert arcs.tolist() == [[0, 0, 1], [1, 2, 3], [0, 1, 2]]
    assert np.exp(sub.log_probs).tolist() == pytest.approx([0.75, 0.25, 1 / 3])
    assert np.exp(sub.finals).tolist() == pytest.approx([0, 2 / 3, 1, 1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unknown_mass", [0.0, 0.25])
def test_states_sum_to_one_and_files_keep_all(
    tmp_path: Path, kind: str, unknown_mass: float
) -> None:
    sub = make_sub_lm(NAMES, kind, unknown_mass=unknown_mass)
    np.testing.assert_allclose(sub.sums, 1, atol=1e-12)
    assert sub.finals[0] == -math.inf
    keys = list(zip(sub.sources.tolist(), sub.labels.tolist()))
    assert keys == sorted(set(keys))  # deterministic
    assert (sub.words[-1] == "<unk>") == (unknown_mass > 0)
    write_sub_lm(tmp_path / "PER.txt", sub)
    again = read_sub_lm(tmp_path / "PER.txt")
    assert again.words == sub.words
    for name in ("sources", "labels", "targets"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sub, name))
    np.testing.assert_allclose(again.log_probs, sub.log_probs, atol=1e-14)
    np.testing.assert_allclose(np.exp(again.finals), np.exp(sub.finals), atol=1e-14)


def test_an_unknown_name_is_as_likely_as_asked() -> None:
    sub = make_sub_lm({("ann",): 1.0}, "tree", unknown_mass=0.25)
    assert math.exp(sub.log_prob(("<unk>",))) == pytest.approx(0.25)
    assert sub.log_prob(("<unk>", "<unk>")) == -math.inf  # all names are single words


@pytest.mark.parametrize("names", [{}, {("ann",): 0.0}])
def test_an_empty_class(names: dict[tuple[str, ...], float]) -> None:
    with pytest.raises(DataError, match="class ORG: expected names"):
        make_sub_lm(names, "tree", place="class ORG")


def test_mixing() -> None:
    mixed = mix_names({("a",): 3, ("b",): 1}, {("b",): 1.0}, 0.2)
    assert mixed == pytest.approx({("a",): 0.6, ("b",): 0.4})
    assert mix_names({("a",): 3}, {}, 0.9) == {("a",): 1.0}
    assert mix_names({}, {("b",): 2.0}, 0.0) == {("b",): 1.0}  # the only names there are
    assert mix_names({}, {}, 0.5) == {}
    assert within({("a", "b"): 1.0, ("b",): 2.0}, {"b"}) == {("b",): 2.0}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("0 1 ann 0\n1 0\n1 0\n", 3, "one end"),
        ("0 1 ann 0\n0 -1\n1 0\n", 2, "no empty name"),
        ("0 1 ann 0\n0 1 ann -1\n1 0\n", 2, "one arc for each state and word"),
        ("0 1 <PER> 0\n1 0\n", 1, "not nested"),
        ("0 1 </s> 0\n1 0\n", 1, "words"),
        ("0 1 ann 0.5\n1 0\n", 1, "ln P at most 0"),
        ("0 1 ann x\n1 0\n", 1, "ln P at most 0"),
        ("0 ann 1 0\n1 0\n", 1, "source target word lnP"),
        ("0 1 ann\n1 0\n", 1, "source target word lnP"),
        ("0 1 ann -0.7\n1 0\n", 1, "state 0 that sum to 1"),
        ("0 1 ann 0\n\n1 -0.1\n", 3, "state 1 that sum to 1"),
        ("0 1 ann 0\n1 1 bob 0\n", 1, "a way from state 0 to an end"),
        ("0 1 a -0.6931472\n0 2 b -0.6931472\n1 0\n2 3 c 0\n3 2 c 0\n", 4, "state 2 to an end"),
        ("0 1 ann 0\n1 1 bob 0\n1 2 lee -inf\n2 0\n", 1, "a way from state 0 to an end"),
        ("1 0\n", 1, "an empty class"),
        ("", 1, "an empty class"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = tmp_path / "PER.txt"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_sub_lm(path)
    assert caught.value.place == f"{path}:{line}"
    assert words in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_sub_lm(tmp_path / "PER.txt")
