from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.scoring.corpus_info import UNKNOWN, CorpusInfo, read_corpus_info, read_vocabulary


def test_what_scoring_needs_is_taken_and_the_rest_is_left(tmp_path: Path) -> None:
    about = {"name": "timit", "synthetic": False, "scored_units": {"ix": "ih"}}
    write_json(tmp_path / "corpus.json", {**about, "sampling_rate": 16000})
    assert read_corpus_info(tmp_path) == CorpusInfo("timit", False, {"ix": "ih"})


def test_units_that_are_phones_and_words_that_are_left_out(tmp_path: Path) -> None:
    content = {"name": "x", "scored_units": {"uh": "", "um": "", "ix": "ih"}, "unit": "phone"}
    write_json(
        tmp_path / "corpus.json", {**content, "public_roles": ["train"], "entities": "spacy"}
    )
    found = read_corpus_info(tmp_path)
    assert (found.unit, found.public_roles, found.entities) == ("phone", ("train",), "spacy")
    assert found.all_groups == ()


def test_groups_are_those_of_the_utterances_and_those_that_tell_of_train(tmp_path: Path) -> None:
    groups = {"groups": ["age", "gender"], "train_groups": ["seen"]}
    write_json(tmp_path / "corpus.json", {"name": "x", **groups})
    found = read_corpus_info(tmp_path)
    assert (found.groups, found.train_groups) == (("age", "gender"), ("seen",))
    assert found.all_groups == ("age", "gender", "seen")


def test_no_manifests_no_knowledge() -> None:
    assert read_corpus_info(None) is UNKNOWN


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"name": "x", "scored_units": ["ix"]},
        {"name": "x", "scored_units": {}, "unit": "syllable"},
        {"name": "x", "scored_units": {}, "public_roles": "train"},
        {"name": "x", "scored_units": {}, "groups": "gender"},
        {"name": "x", "scored_units": {}, "train_groups": {"seen": True}},
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: object) -> None:
    write_json(tmp_path / "corpus.json", content)
    with pytest.raises(DataError, match="prepare the corpus again"):
        read_corpus_info(tmp_path)


def test_the_vocabulary_has_words_only(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("<eps> 0\nA 1\n<UNK> 2\n#0 3\n")
    assert read_vocabulary(tmp_path) == {"A", "<UNK>"}
    (tmp_path / "words.txt").write_text("<eps> 0\nA\n")
    with pytest.raises(DataError, match=r"words\.txt:2: expected a word and its number, found 'A'"):
        read_vocabulary(tmp_path)
