"""What recipes declare for a list of hotwords or contacts."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2 import sections
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.recipe.front import Declaration, declare
from tests.support.hotwords import write_list

ROOT = Path(__file__).resolve().parents[3]


def declared(folder: Path, recipe: str, *words: str) -> Declaration:
    return declare("mini", recipe, ["--work-dir", str(folder / "work"), *words], ROOT, folder)


@pytest.fixture
def names(tmp_path: Path) -> str:
    return str(write_list(tmp_path / "contacts.txt", "Ann", "Bob Smith"))


#: The option of a list, that of its setting, and a value.
LISTS = {"hotwords": ("hotword_bonus", 2.5), "contacts": ("contact_log_prob", -2.5)}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("recipe", ["ctc", "rescore", "fmp", "fedlm"])
def test_runs_with_and_without_a_list_stand_beside_each_other(
    recipe: str, kind: str, names: str, tmp_path: Path
) -> None:
    setting, value = LISTS[kind]
    plain = declared(tmp_path, recipe)
    with_list = declared(tmp_path, recipe, f"--{kind}", names)
    given = f"--{setting.replace('_', '-')}={value}"
    other = declared(tmp_path, recipe, f"--{kind}", names, given)
    outputs = [
        {p for s in d.stages for t in s.tasks for p in t.outputs} for d in (plain, with_list, other)
    ]
    shared = outputs[0] & outputs[1]
    assert "exp/ctc_tdnn_phone/am" in shared and "data/graph_phone" not in outputs[1]
    assert f"data/graph_phone_{kind}_contacts" in outputs[1]
    assert f"data/graph_phone_{kind}_contacts_{value}" in outputs[2]
    alone = {path for path in outputs[0] if path.startswith("exp/")} - {"exp/ctc_tdnn_phone/am"}
    assert not alone & outputs[1] and shared == outputs[0] & outputs[2] == outputs[1] & outputs[2]
    tasks = [task for stage in with_list.stages for task in stage.tasks]
    [graph] = [task for task in tasks if task.argv[0] == "compile_graph"]
    assert names in graph.inputs and f"--in-{kind}" in graph.argv
    assert {sections.split(path)[1] for path in graph.configs} >= {"graph", kind}
    assert all(
        s.label.endswith(f", 2 {kind} of contacts")
        for s in with_list.systems
        if s.method != "recipe"
    )
    facts = [s.facts for s in other.systems if s.method != "recipe"]
    expected = {kind: "contacts", f"{kind[:-1]}_entries": 2, setting: value}
    assert facts and all(expected.items() <= of.items() for of in facts)
    assert not any(kind in system.facts for system in plain.systems)


@pytest.mark.parametrize("kind", LISTS)
def test_times_of_words_come_from_the_lexicon_of_the_graph(
    kind: str, names: str, tmp_path: Path
) -> None:
    tasks = [t for s in declared(tmp_path, "rescore", f"--{kind}", names).stages for t in s.tasks]
    lists = [t for t in tasks if t.argv[0] == "decode" and "--out-nbest" in t.argv]
    graph = f"data/graph_phone_{kind}_contacts"
    assert lists and all(t.argv[t.argv.index("--in-lang") + 1] == graph for t in lists)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("ctc", ["--hotword-bonus", "2"]),
        ("ctc", ["--hotwords", "contacts.txt", "--hotword-bonus", "-1"]),
        ("classlm", ["--hotwords", "contacts.txt"]),
        ("rescore", ["--hotwords", "contacts.txt", "--whisper", "base"]),
        ("ctc", ["--contact-log-prob", "-2"]),
        ("ctc", ["--contacts", "contacts.txt", "--contact-log-prob", "1"]),
        ("ctc", ["--contacts", "contacts.txt", "--hotwords", "contacts.txt"]),
        ("ctc", ["--contacts", "contacts.txt", "--backend", "kaldi"]),
        ("classlm", ["--contacts", "contacts.txt"]),
    ],
)
def test_options_without_effect(recipe: str, words: list[str], names: str, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    with pytest.raises(ConfigError, match=r"--(hotword|contact|backend)"):
        declared(tmp_path, recipe, *words)


@pytest.mark.parametrize("kind", LISTS)
def test_a_bad_list_ends_the_run_before_its_first_stage(kind: str, tmp_path: Path) -> None:
    write_list(tmp_path / "bad.txt", "ann", "bob\tx")
    with pytest.raises(DataError, match=r"bad.txt:2: expected a bonus"):
        declared(tmp_path, "ctc", f"--{kind}", "bad.txt")
