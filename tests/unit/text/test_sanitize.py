from __future__ import annotations

from dataclasses import replace

import pytest

from privasr_k2.errors import DataError
from privasr_k2.randomness import noise_stream
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.sanitize import (
    Replacement,
    anonymous,
    needs_users,
    replace_words,
    uniform_below,
)

LISTS = {"PER": ["ann", "bob", "eve", "lee"], "LOC": ["bath", "rome", "york"]}
TEXT = TaggedText(
    "u",
    ("ask", "ann", "lee", "about", "bath", "and", "ann's", "zoe"),
    (Entity(1, 3, "PER"), Entity(4, 5, "LOC"), Entity(6, 8, "PER")),
    "user",
    cased="Ask Ann",
)
MANY = {"mentions": 1000, "words_per_mention": 1000, "utterances_per_user": None}


def draw(texts, secret=b"s" * 32, **changes):
    how = Replacement(**({"keep_prob": 0.0, "by_document": False, **MANY} | changes))
    names = []

    def noise(name):
        names.append(name)
        return noise_stream(secret, name)

    made = replace_words(texts, LISTS, how, noise)
    assert len(set(names)) == len(names), "a stream is drawn from once"
    return made


def words_at(texts, position):
    return [text.words[position] for text in texts]


def test_only_words_of_entities_change_and_to_words_of_their_class():
    made = draw([TEXT] * 300)
    assert {text.entities for text in made} == {TEXT.entities}
    assert {text.cased for text in made} == {""}
    for position in (0, 3, 5):
        assert set(words_at(made, position)) == {TEXT.words[position]}
    assert (
        set(words_at(made, 1))
        == set(words_at(made, 2))
        == set(words_at(made, 7))
        == set(LISTS["PER"])
    )
    assert set(words_at(made, 4)) == set(LISTS["LOC"])
    assert set(words_at(made, 6)) == {f"{word}'s" for word in LISTS["PER"]}, "a possessive stays"


def test_each_word_is_drawn_on_its_own():
    made = draw([TEXT] * 400)
    assert len(set(zip(words_at(made, 1), words_at(made, 2)))) == 16


def test_everything_on_the_list_is_kept_with_probability_one_and_nothing_else():
    made = draw([TEXT] * 50, keep_prob=1.0)
    assert {text.words[:7] for text in made} == {TEXT.words[:7]}
    assert set(words_at(made, 7)) == set(LISTS["PER"]), "zoe is on no list: she is always replaced"


def test_mentions_and_words_beyond_what_is_counted_are_always_replaced():
    made = draw([TEXT] * 100, keep_prob=1.0, mentions=1, words_per_mention=1)
    assert set(words_at(made, 1)) == {"ann"}
    assert set(words_at(made, 2)) == set(LISTS["PER"]), "the second word of a mention"
    assert set(words_at(made, 4)) == set(LISTS["LOC"]), "the second mention"


def test_of_a_user_the_first_utterances_with_names_may_keep_words_and_no_others():
    one = TaggedText("1", ("ann",), (Entity(0, 1, "PER"),), "u")
    texts = [one, replace(one, words=("yes",), entities=()), replace(one, user="v"), one, one]
    made = [draw(texts, bytes([n]) * 32, keep_prob=1.0, utterances_per_user=2) for n in range(60)]
    assert {tuple(words_at(texts, 0)[:4]) for texts in made} == {("ann", "yes", "ann", "ann")}
    assert {text.words[0] for *_, text in made} == set(LISTS["PER"]), "the third utterance of u"
    with pytest.raises(DataError, match=r"^x: .*a user.*found none"):
        needs_users([one, TaggedText("x", ("a",), ())])


def test_who_said_what_and_when_is_not_told():
    more = ((Entity(0, 1, "PER"),), "ann", "d", "W")
    texts = [TaggedText(f"ann-{n}", (f"w{n}",), *more) for n in range(200)]
    made = anonymous(texts, noise_stream(b"s" * 32, "order"))
    assert [text.id for text in made] == [f"s{n:06d}" for n in range(1, 201)]
    assert {(text.user, text.document, text.cased) for text in made} == {("", "", "")}
    order = [int(text.words[0][1:]) for text in made]
    assert sorted(order) == list(range(200))
    assert {text.entities for text in made} == {texts[0].entities}
    assert sum(abs(n - m) for n, m in enumerate(order)) > 200 * 40, "as random: 200 * 67"
    assert anonymous(texts, noise_stream(b"s" * 32, "order")) == made, "a continued run: the same"
    assert anonymous(texts, noise_stream(b"t" * 32, "order")) != made
    assert anonymous([], noise_stream(b"s" * 32, "order")) == []


def test_consistent_replacement_draws_once_for_each_word_of_a_document():
    said = (("ann", "ann's"), (Entity(0, 1, "PER"), Entity(1, 2, "PER")))
    texts = [TaggedText(str(n), *said, f"u{n % 40}") for n in range(120)]
    made = draw(texts, by_document=True)
    by_user = {}
    for text in made:
        assert text.words[1] == text.words[0] + "'s"
        by_user.setdefault(text.user, set()).add(text.words[0])
    assert all(len(words) == 1 for words in by_user.values())
    assert set().union(*by_user.values()) == set(LISTS["PER"])
    assert len(set(words_at(draw(texts), 0))) == 4 and draw(texts) != made


def test_documents_are_told_apart_before_users_and_classes_too():
    one = TaggedText("1", ("york", "york"), (Entity(0, 1, "LOC"), Entity(1, 2, "PER")), "u", "d1")
    made = [draw([one], secret=bytes([n]) * 32, by_document=True)[0].words for n in range(40)]
    assert any(a in LISTS["LOC"] and b in LISTS["PER"] for a, b in made) and len(set(made)) > 6
    texts = [TaggedText(str(n), ("ann",), (Entity(0, 1, "PER"),), "u", f"d{n}") for n in range(60)]
    assert set(words_at(draw(texts, by_document=True), 0)) == set(LISTS["PER"])


def test_a_document_may_keep_so_many_different_words_only():
    words, person = ["ann", "bob", "ann", "eve"], (Entity(0, 1, "PER"),)
    texts = [TaggedText(str(n), (word,), person, "u") for n, word in enumerate(words)]
    how = dict(keep_prob=1.0, by_document=True, mentions=2, words_per_mention=1)
    made = [draw(texts, bytes([n]) * 32, **how) for n in range(60)]
    assert {tuple(words_at(texts, 0)[:3]) for texts in made} == {("ann", "bob", "ann")}
    assert {text.words[0] for *_, text in made} == set(LISTS["PER"])


def test_a_class_without_a_list_is_named_without_the_name():
    text = TaggedText("u7", ("ask", "acme"), (Entity(1, 2, "ORG"),))
    with pytest.raises(DataError, match=r"word 2 of u7: .* a list: PER LOC, found ORG") as caught:
        draw([text])
    assert "acme" not in str(caught.value)


def test_no_text_and_no_entity():
    assert draw([]) == []
    assert draw([TaggedText("u", ("yes",), ())])[0].words == ("yes",)


def test_numbers_that_would_favour_some_words_are_drawn_again():
    class Stream:
        """2^64 - 1 first, which is above the largest multiple of 3, then 7."""

        def __init__(self):
            self.blocks = [b"\xff" * 8 + (5).to_bytes(8, "little"), (7).to_bytes(8, "little")]

        def random_bytes(self, count):
            block = self.blocks.pop(0)
            assert len(block) == count
            return block

    assert uniform_below(3, 2, Stream()).tolist() == [1, 2]
