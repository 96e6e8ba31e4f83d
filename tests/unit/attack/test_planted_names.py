"""Names that are planted in text: where they stand, and what models of it tell of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.attack.planted_names import (
    NameCanaryConfig,
    kinds,
    plant_names,
    read_canaries,
    write_planted,
)
from privasr_k2.attack.sanitized_lms import AuditedNamesConfig, audit_names
from privasr_k2.errors import DataError
from privasr_k2.privacy.replacement import uniform_replacement
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.name_lists import NameList
from privasr_k2.text.normalize import normalize_english
from tests.support.conf import section

NAMES = (
    "Ada Abel,Ben Birk,Cleo Crane,Dora Dunn,Emil Evans,Finn Frost,Gina Gray,Hugo Hill,"
    "Ines Irwin,Jack Jones,Kira King,Liam Lane,Mona Moss,Nils Nash,Olga Orr,Paul Pike"
)
CANARIES = NameCanaryConfig(
    canaries=30, candidates=16, repeats=6, most_words=9, held_out=0.5, seed=1
)


def words(tokens):
    return normalize_english(" ".join(tokens)).split()


def text(number: int, cased: str, *entities: tuple[int, int, str]) -> TaggedText:
    spans = tuple(Entity(*e) for e in entities)
    return TaggedText(f"t{number}-0", tuple(words(cased.split())), spans, f"u{number}", "", cased)


BEFORE = ("Ask for", "Thank you", "Question from", "Call back", "Write to", "Meet our")
TEXTS = [text(n, f"{said}, Rita Vogel, please.", (2, 4, "PER")) for n, said in enumerate(BEFORE)]
TEXTS += [text(9, "Rita called in May.", (0, 1, "PER")), text(10, "It is late now, I think.")]
LISTS = {
    "PER": NameList(tuple(NAMES.split(",")), None, ()),
    "LOC": NameList(("Bonn", "Ulm"), None, ()),
}


@pytest.fixture(scope="module")
def planted():
    return plant_names(TEXTS, LISTS, CANARIES, words)


def test_names_stand_where_a_person_was_named(planted):
    by_id = {text.id: text for text in planted.texts}
    assert planted.texts[: len(TEXTS)] == TEXTS
    assert len(by_id) == len(planted.texts) == len(TEXTS) + 30 * sum(kinds(6).values())
    for canary in planted.canaries:
        assert len(canary.places) == kinds(6)[canary.kind]
        name = canary.candidates[canary.planted]
        for id, first in canary.places:
            said = by_id[id]
            assert said.words[first : first + 2] == name
            assert said.entities == (Entity(2, 4, "PER"),)
            assert tuple(words(said.cased.split())) == said.words and ", " in said.cased
            assert name[0].capitalize() in said.cased


def test_unlisted_names_have_no_word_on_any_list(planted):
    listed = {word for names in planted.lists.values() for name in names for word in words([name])}
    assert len(planted.lists["PER"]) == 8
    for canary in planted.canaries:
        of_names = {word for name in canary.candidates for word in name}
        assert of_names <= listed if canary.kind.startswith("listed") else not of_names & listed


def test_too_little_text_and_no_list_are_refused():
    with pytest.raises(DataError, match=r"7 sentences that name a person by two words.*found 6"):
        plant_names(TEXTS, LISTS, replace(CANARIES, repeats=7), words)
    with pytest.raises(DataError, match=r"per\.txt"):
        plant_names(TEXTS, {"LOC": LISTS["LOC"]}, CANARIES, words)


def test_files_keep_the_secrets(planted, tmp_path: Path):
    write_planted(planted, tmp_path / "out")
    assert read_canaries(tmp_path / "out") == planted.canaries
    assert (tmp_path / "out/lists/loc.txt").read_text() == "Bonn\nUlm\n"


@pytest.fixture(scope="module")
def audited(planted):
    lists = {
        label: sorted({word for name in names for word in words([name])})
        for label, names in planted.lists.items()
    }
    files = [section("sanitize"), section("lm_ngram"), section("audit_names")]
    values = ["keep_probs=[0.0,0.9]", "discounting=witten_bell"]
    settings = config.load(AuditedNamesConfig, files, values)
    blind = [replace(text, entities=()) for text in planted.texts]
    tagged = {"gold": planted.texts, "blind": blind}
    scored = [replace(text, document=f"d{n}") for n, text in enumerate(TEXTS)]
    return lists, audit_names(planted.texts, planted.canaries, tagged, lists, scored, settings)


def exposures(audited, model: str) -> dict[str, float]:
    return {kind: of["exposure"] for kind, of in audited[1]["models"][model]["kinds"].items()}


def test_controls_and_what_no_tagger_found(audited):
    """All is told of what was said, nothing of what was not; a blind tagger replaces nothing."""
    told, unseen = exposures(audited, "original"), exposures(audited, "unseen")
    assert min(told.values()) > 2.5 and max(unseen.values()) < 2.0
    assert exposures(audited, "blind_0") == pytest.approx(told)


def test_replaced_names_are_not_told_and_kept_ones_are(audited):
    replaced, kept = exposures(audited, "gold_0"), exposures(audited, "gold_0.9")
    assert max(replaced.values()) < 2.4
    assert kept["listed_often"] > 3.0 > 2.4 > kept["unlisted_often"]


def test_epsilons_are_those_of_the_mechanism_and_above_the_bounds(audited):
    lists, found = audited
    model = found["models"]["gold_0.9"]
    shared = dict(keep_probability=0.9, num_names=len(lists["PER"]), words_per_mention=2)
    for often, mentions in (("once", 1), ("often", 6)):
        made = uniform_replacement(
            mentions=mentions, off_list="replaced", consistency="mention", **shared
        )
        assert model[f"epsilon_{often}"] == pytest.approx(made.epsilon_per_utterance)
        assert 0 <= model[f"lower_{often}"] <= model[f"epsilon_{often}"]
    assert found["models"]["gold_0"]["epsilon_often"] == 0.0
    assert found["models"]["original"]["lower_often"] > 2.0
    assert [lm["lm"] for lm in found["lms"]] == list(found["models"])
    assert set(found["lms"][0]["groups"]) == {f"d{n}" for n in range(len(TEXTS))}
