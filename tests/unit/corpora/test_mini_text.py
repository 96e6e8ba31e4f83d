from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from privasr_k2.corpora.mini_names import KINDS, Name
from privasr_k2.corpora.mini_text import compose, expand
from privasr_k2.corpora.mini_words import INTENTS, WORDS
from privasr_k2.randomness import stream
from privasr_k2.text.normalize import normalize_english


def first(what: str, count: int) -> int:
    return 0


def last(what: str, count: int) -> int:
    return count - 1


def draw(generator: np.random.Generator, what: str, count: int) -> int:
    return int(generator.integers(count))


def names(kind: str) -> Name:
    texts = {"PER": "Rose Park", "LOC": "Bath", "ORG": "May Foods", "MISC": "Silver Rain"}
    return Name(texts[kind], 0)


def test_linked_groups_agree_and_free_groups_do_not():
    template = "[1:a|b] [x|y] and far away from it [1:c|d] [x|y]"
    numbers = itertools.cycle([1, 0, 1])
    text = expand(template, "k", lambda what, count: next(numbers), names).text
    assert text == "B x and far away from it d y."


@pytest.mark.parametrize(("gender", "pronoun"), [(0, "her"), (1, "him")])
def test_pronouns_follow_the_last_person(gender, pronoun):
    people = iter([Name("Pat", 1 - gender), Name("Kim", gender)])
    template = "tell {PER} that {PER} wants [g:her|him]"
    sentence = expand(template, "k", last, lambda kind: next(people))
    assert sentence.text.endswith(f"wants {pronoun}.")


def test_entities_count_words():
    sentence = expand("call {PER}, in {LOC}, for {ORG}", "k", first, names)
    assert sentence.text == "Call Rose Park, in Bath, for May Foods."
    assert sentence.entities == ((1, 3, "PER"), (4, 5, "LOC"), (6, 8, "ORG"))


def test_a_list_gives_another_item_the_second_time_if_it_can():
    draws = iter([3, 3, 5])
    text = expand("{digit} {digit}", "k", lambda what, count: next(draws), names).text
    assert text == f"{WORDS['digit'][3].capitalize()} {WORDS['digit'][5]}."


@pytest.mark.parametrize("intent", INTENTS)
def test_every_template_expands_whole(intent):
    for number, template in enumerate(INTENTS[intent]):
        generator = stream(1, intent, number)
        choose = partial(draw, generator)
        for _ in range(20):
            sentence = compose(intent, number, choose, names)
            assert not set("{}[]|*_<>") & set(sentence.text), template
            assert "  " not in sentence.text and sentence.text[0].isupper()
            assert len(normalize_english(sentence.text).split()) == len(sentence.text.split())
            assert {kind for _, _, kind in sentence.entities} <= set(KINDS)


def test_linked_groups_of_a_template_have_as_many_alternatives():
    import re

    for templates in INTENTS.values():
        for template in templates:
            groups = re.findall(r"\[(\w):([^\[\]]*)\]", template)
            for link in {link for link, _ in groups}:
                sizes = {choices.count("|") for of, choices in groups if of == link}
                assert len(sizes) == 1, template
