"""Grammars that are lists of phrases."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.corpora.spoken_grammars import GRAMMARS, dates
from privasr_k2.corpora.spoken_numbers import year
from privasr_k2.lm.names import read_lists, read_text
from privasr_k2.lm.sub_lm import SubLm, make_sub_lm
from privasr_k2.text.normalize import normalize_english
from tests.support.conf import ROOT, section
from tests.support.verbs import call, refused


def can_say(sub: SubLm, phrase: str) -> bool:
    """Whether a name of these words has a probability."""
    arcs = {
        (source, sub.words[label]): target
        for source, label, target in zip(sub.sources, sub.labels, sub.targets, strict=True)
    }
    state = 0
    for word in phrase.split():
        if (state, word) not in arcs:
            return False
        state = arcs[state, word]
    return bool(sub.finals[state] > -1e9)


def test_phrases_generalize(tmp_path: Path) -> None:
    names = ",".join(GRAMMARS)
    made = ("--config", section("name_lists"), "--set", f"grammars=[{names}]")
    call("make_name_lists", "--out-lists", tmp_path / "lists", *made)
    lists = read_lists(tmp_path / "lists", normalize_english)
    assert set(lists) == {name.upper() for name in GRAMMARS}
    subs = {kind: make_sub_lm(names, "bigram", unknown_mass=0.0) for kind, names in lists.items()}
    assert can_say(subs["LETTERS"], "r u b o u t") and not can_say(subs["LETTERS"], "r five")
    assert can_say(subs["NUMBER"], "four one two oh nine nine")
    assert can_say(subs["NUMBER"], "nine hundred ninety nine")
    assert not can_say(subs["NUMBER"], "hundred")
    assert can_say(subs["DATE"], "march thirty first nineteen seventy two")
    assert not can_say(subs["DATE"], "thirty first")


def test_all_years_are_there() -> None:
    said = set(dates())
    assert len(said) == 2 * 366
    assert all(any(date.endswith(f" {year(y)}") for date in said) for y in range(1900, 2031))


def test_sentences_around_them_name_their_classes() -> None:
    texts = read_text(ROOT / "conf/grammars.txt", [name.upper() for name in GRAMMARS])
    assert len(texts) > 5


def test_something_is_to_be_collected(tmp_path: Path) -> None:
    with refused("--in-tagged, grammars or packages"):
        call("make_name_lists", "--out-lists", tmp_path, "--config", section("name_lists"))
