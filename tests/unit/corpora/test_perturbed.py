"""Perturbed copies by their names, as lhotse and Kaldi make them."""

from __future__ import annotations

from pathlib import Path

import pytest
from lhotse.utils import fastcopy

from privasr_k2.corpora.perturbed import is_copy, named_originals, original_of
from privasr_k2.corpora.utterances import Utterance, make_cuts, split_by_speaker
from tests.support import trees


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("a-1_sp0.9", "a-1"),
        ("a-1_sp1.1_vp2.0", "a-1"),
        ("a-1_rvb", "a-1"),
        ("sp0.9-a-1", "a-1"),
        ("sp2-a", "sp2-a"),  # a speaker's name
        ("_sp0.9", "_sp0.9"),
        ("sp0.9-", "sp0.9-"),
        ("a_sp", "a_sp"),
    ],
)
def test_originals(name: str, original: str) -> None:
    assert original_of(name) == original


def test_names_are_those_that_lhotse_gives(tmp_path: Path) -> None:
    [cut] = make_cuts([Utterance("a-1", "x", "a", "train", trees.noise(tmp_path / "a.flac"))])
    for copy in (cut.perturb_speed(0.9), cut.perturb_tempo(1.1), cut.perturb_volume(2.0)):
        [named] = named_originals([copy])
        assert named.custom["original_id"] == "a-1" and is_copy(named)
    assert not is_copy(next(iter(named_originals([cut]))))


def test_kaldis_copies_are_of_the_same_person_and_are_not_held_out() -> None:
    plain = make_cuts(Utterance(f"{s}-{n}", "x y", s, "train") for s in "abcdef" for n in "01")
    copies = make_cuts(
        Utterance(f"sp{f}-{c.id}", "x y", f"sp{f}-{c.supervisions[0].speaker}", "train")
        for c in plain
        for f in ("0.9", "1.1")
    )
    named = type(plain).from_cuts(named_originals([*plain, *copies]))
    assert {cut.supervisions[0].speaker for cut in named} == set("abcdef")
    rest, taken = split_by_speaker(named, fraction=0.3, at_least=2, seed=0)
    held = {cut.supervisions[0].speaker for cut in taken}
    assert len(held) == 2 and len(taken) == 4
    assert len(rest) == 4 * 6  # and no copy of those who are held out
    assert not held & {cut.supervisions[0].speaker for cut in rest}


def test_a_copy_that_names_its_original_keeps_the_name() -> None:
    [cut] = make_cuts([Utterance("a-1_sp0.9", "x", "a", "train")])
    cut = fastcopy(cut, custom={"original_id": "else"})
    assert next(iter(named_originals([cut]))).custom["original_id"] == "else"
