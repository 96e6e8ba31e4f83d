"""One spelling of commands: what makes a stage run again, and what does not."""

from __future__ import annotations

import pytest

from privasr_k2.recipe import renames, stamps
from privasr_k2.recipe.fingerprint import Fingerprint


def stamp(*command: str) -> dict:
    read = {"configs": [["c.yaml", "1"]], "inputs": [["a", "2"], ["b", "3"]]}
    return {"fingerprint": "old", "command": list(command), **read}


def now(
    *command: str, inputs: tuple = (("b", "3"), ("a", "2")), configs: tuple = (("d.yaml", "1"),)
) -> Fingerprint:
    return Fingerprint(command, configs, inputs)


def test_order_of_flags_and_forms_of_numbers_change_nothing() -> None:
    old = stamp("verb", "--in-x", "a", "--out-y", "o", "--set", "delta=1e-5", "n=3")
    words = "verb --set n=3.0 delta=1e-05 --out-y o --in-x a"
    assert stamps.is_same(old, now(*words.split()))


@pytest.mark.parametrize(
    "other",
    [
        now("verb", "--in-x", "b", "a"),
        now("verb", "--in-x", "a", "b", "--set", "n=2"),
        now("verb2", "--in-x", "a", "b"),
        now("verb", "--in-x", "a", "b", inputs=(("a", "2"), ("b", "4"))),
        now("verb", "--in-x", "a", "b", configs=(("c.yaml", "2"),)),
    ],
)
def test_anything_else_does(other: Fingerprint) -> None:
    old = stamp("verb", "--in-x", "a", "b")
    assert stamps.is_same(old, now("verb", "--in-x", "a", "b"))
    assert not stamps.is_same(old, other)


def test_names_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(renames.VERBS, "run_fmp", "personalize")
    monkeypatch.setitem(renames.KEYS, "personalize", {"sigma": "kernel_bandwidth"})
    old = stamp("run_fmp", "--in-x", "a", "--set", "sigma=1")
    assert stamps.is_same(old, now("personalize", "--in-x", "a", "--set", "kernel_bandwidth=1"))
