"""classlm --measure-sanitizing: what is measured, and by lists that know nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe.front import Declaration, declare

ROOT = Path(__file__).resolve().parents[3]


def declared(tmp_path: Path, *more: str) -> Declaration:
    words = ["--measure-sanitizing", "true", "--public-text", "/text", *more]
    words += ["--work-dir", str(tmp_path)]
    return declare("earnings21", "classlm", words, ROOT, tmp_path)


@pytest.fixture
def measured(tmp_path: Path) -> Declaration:
    conll = "/text/wikigold.conll.txt.gz /text/emerging.test.annotated"
    more = ("--measured-conll", conll, "--measured-corpus", "sgd", "--measured-dir", "/sgd")
    return declared(tmp_path, *more)


def commands(declaration: Declaration, verb: str) -> list[list[str]]:
    return [s.tasks[0].argv for s in declaration.stages if s.tasks[0].argv[0] == verb]


def test_nothing_is_released_and_every_text_is_scored(measured: Declaration) -> None:
    assert not commands(measured, "sanitize_text")
    assert not any("--ledger" in s.tasks[0].argv for s in measured.stages[:-1])
    systems = [s for s in measured.systems if s.method == "tagger"]
    texts = {s.facts["measured"] for s in systems if s.facts["seen"] == "as written"}
    assert texts == {"wikigold", "emerging", "earnings21", "sgd"}
    assert len(commands(measured, "report_entities")) == len(systems) == 4 * 3 + 2 * 2


def test_a_measured_file_gives_its_own_lists_no_name(measured: Declaration) -> None:
    found = [argv for argv in commands(measured, "tag_entities") if "leave_out=[wikigold]" in argv]
    [public] = [argv[argv.index("--out-text") + 1] for argv in found]
    users = [argv for argv in commands(measured, "tag_entities") if public in argv[1:]]
    assert len(users) == 1 + 2  # it is made, and told to the gazetteer and to the union


def test_models_are_those_of_the_audit(measured: Declaration) -> None:
    [audit] = commands(measured, "audit")
    tagged = audit[audit.index("--in-tagged") + 1 :][:3]
    assert [Path(path).name for path in tagged] == [
        f"{name}.jsonl.gz" for name in ("spacy", "gazetteer", "spacy_gazetteer")
    ]
    names = {s.name.removeprefix("names/") for s in measured.systems if s.method == "names"}
    assert {"original", "unseen", "gold_0", "gold_0.1", "spacy_gazetteer_0.5"} <= names
    assert len(names) == 2 + 4 * 3


def test_without_public_text_another_corpus_is_refused(tmp_path: Path) -> None:
    words = ["--measure-sanitizing", "true", "--measured-corpus", "sgd", "--public-text", ""]
    words += ["--public-names", "/lists", "--work-dir", str(tmp_path)]
    with pytest.raises(ConfigError, match="--public-text"):
        declare("earnings21", "classlm", words, ROOT, tmp_path)


def test_an_unknown_tagger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="spacy, gazetteer or presidio"):
        declared(tmp_path, "--measured-taggers", "spacy flair")
