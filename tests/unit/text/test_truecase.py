from __future__ import annotations

from privasr_k2.text.truecase import Truecaser, has_case

SENTENCES = [
    ["Rose", "saw", "the", "rose", "in", "New", "York", "."],
    ["Then", "a", "rose", "in", "New", "York", "was", "a", "new", "thing", "."],
    ["The", "new", "thing", "is", "not", "the", "new", "thing", "."],
    ["NO", "CASE", "HERE", "ROSE", "ROSE", "ROSE"],
]


def restore(text, **options):
    return " ".join(
        Truecaser(SENTENCES, **({"capital_unknown": False} | options)).restore(text.split())
    )


def test_forms_follow_the_word_before_and_leave_sentence_beginnings_out():
    assert restore("the rose in new york is a new thing") == "The rose in New York is a new thing"
    assert restore("THE ROSE I SAW") == "The rose I saw"
    assert restore("") == ""


def test_capitals_of_sentence_beginnings_do_not_count():
    sentences = [["Well", "yes"], ["Well", "no"], ["Well", "Ann"], ["Ann", "is", "well"]]
    assert Truecaser(sentences, capital_unknown=True).restore(["i", "am", "well"])[-1] == "well"


def test_unknown_words_and_names_of_lists():
    assert restore("in lisbon") == "In lisbon"
    assert restore("in lisbon", capital_unknown=True) == "In Lisbon"
    assert restore("in lisbon rose", names=["McLisbon", "Lisbon Rose"]) == "In Lisbon rose"


def test_how_often_words_are_written_small():
    small = Truecaser(SENTENCES, capital_unknown=True).small
    assert small["york"] == 0 and min(small["rose"], small["thing"], small["new"]) >= 0.5
    assert Truecaser([["No.", "The", "end"]], capital_unknown=True).small == {"end": 1.0}, (
        "a sentence begins"
    )


def test_text_without_capitals_is_seen():
    assert has_case([["Ask", "Ann"]])
    assert not has_case([["ask", "ann", "ok"]]) and not has_case([["ASK", "ANN"]])
    assert not has_case([]) and not has_case([["small"]] * 5000 + [["One"]])
