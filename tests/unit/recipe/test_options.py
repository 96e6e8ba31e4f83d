"""Options of recipes: types, ranges, defaults, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import MinLen

from privasr_k2.errors import ConfigError
from privasr_k2.recipe import options
from privasr_k2.recipe.declare import DataOptions
from privasr_k2.recipe.front import _conf_keys, declare
from privasr_k2.recipe.options import (
    Choices,
    Count,
    Counts,
    Delta,
    Matches,
    Positive,
    Share,
    from_conf,
    option,
    path_option,
)
from tests.support.conf import ROOT


@dataclass(frozen=True)
class Options:
    teachers: Counts = option((15,), "numbers of teachers")
    share: Share | None = option(None, "a share")
    start: Literal["public", "scratch"] = option("public", "where to begin")
    epochs: Count | None = from_conf("am.epochs", "epochs")
    text: Path | None = path_option("a text")
    heads: bool = option(False, "heads")


def parse(*words: str, defaults: dict[str, Any] | None = None) -> options.Parsed:
    return options.parse(
        [Options],
        words,
        defaults=lambda given: (defaults or {}) | ({"share": 0.5} if "heads" in given else {}),
        renamed={"sizes": "--teachers"},
        conf_keys={"lr": ["am", "lm", "heads", "dpsgd", "tune"], "order": ["lm"]},
        conf_place="egs/mine/corpus.yaml",
        conf_value=lambda key, values: {"am.epochs": 7 + values["heads"]}[key],
        caller=Path("/here"),
        prog="x",
        help="",
    )


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (Count, [("1", 1)], ["0", "1.5", "x", ""]),
        (Positive, [("1e-5", 1e-5), ("inf", float("inf"))], ["0", "-1", "nan", "x"]),
        (Share, [("0", 0.0), ("1", 1.0)], ["1.1", "-0.1"]),
        (Delta, [("1e-5", 1e-5)], ["0", "1"]),
        (Counts, [("5 15", (5, 15)), ("", ())], ["5 0", "5,15"]),
        (bool, [("true", True), (False, False)], ["yes", "1"]),
        (Literal["a", "b"], [("a", "a")], ["c", ""]),
        (Annotated[Counts, MinLen(1)], [("1", (1,))], [""]),
        (Annotated[str, Matches("bpe_[0-9]+", "bpe_N")], [("bpe_5", "bpe_5")], ["bpe_", "xbpe_5"]),
        (tuple[Annotated[str, Choices(lambda: ("p", "q"))], ...], [("p q", ("p", "q"))], ["p r"]),
    ],
)
def test_values_by_type(annotation: Any, good: list[tuple[Any, Any]], bad: list[str]) -> None:
    for text, value in good:
        assert options.check("--x", annotation, text) == value
    for text in bad:
        with pytest.raises(ConfigError, match="--x"):
            options.check("--x", annotation, text)


def test_a_command_line_becomes_a_dataclass() -> None:
    parsed = parse("--teachers=5 15", "--share", "0.5", "--text", "a.txt", "--heads", "true")
    assert options.build(Options, parsed) == Options(
        (5, 15), 0.5, "public", None, Path("/here/a.txt"), True
    )
    assert list(parsed.given) == ["teachers", "share", "text", "heads"]
    assert parsed.given["teachers"] == "5 15"


def test_a_corpus_sets_defaults_and_the_last_word_counts() -> None:
    assert parse(defaults={"teachers": 250}).values["teachers"] == (250,)
    assert parse("--heads", "true").values["share"] == 0.5  # a default that depends on another
    assert parse("--heads", "true", "--share", "0.1").values["share"] == 0.1
    parsed = parse("--teachers", "3", "--teachers", "4", defaults={"teachers": [1, 2]})
    assert parsed.values["teachers"] == (4,)
    with pytest.raises(ConfigError, match=r"corpus\.yaml"):
        parse(defaults={"teachers": 0})
    with pytest.raises(ConfigError, match="nothing_of_it"):
        parse(defaults={"nothing_of_it": 1})


def test_no_option_hides_another_of_its_name() -> None:
    with pytest.raises(ConfigError, match="--teachers: expected one option"):
        options.parse([Options, Options], [], renamed={}, caller=Path("/here"), prog="x", help="")


def test_the_noise_of_votes_is_a_number(repo_root: Path, tmp_path: Path) -> None:
    made = declare("mini_pate", "pate", ["--noise", "40"], repo_root, tmp_path)
    labels = [s for s in made.stages if s.title.startswith("labels, ctc/gnmax")]
    assert labels and all("noise=40" in stage.tasks[0].argv for stage in labels)


def test_an_old_name_names_the_new_one() -> None:
    with pytest.raises(ConfigError, match="--teachers"):
        parse("--sizes", "3")


@pytest.mark.parametrize(("words", "epochs"), [(("-h",), 7), (("--help", "--heads", "true"), 8)])
def test_help_tells_defaults_of_conf(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], epochs: int
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(*words)
    assert stopped.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if "--epochs" in line]
    assert line.endswith(f"[{epochs}]")


@pytest.mark.parametrize(
    ("corpus", "preset", "avg"),
    [("librispeech", "small", 6), ("mini", "small", 4), ("mini", "tiny", 2)],
)
def test_help_tells_values_of_the_corpus_and_the_preset(
    repo_root: Path, capsys: pytest.CaptureFixture[str], corpus: str, preset: str, avg: int
) -> None:
    with pytest.raises(SystemExit):
        declare(corpus, "ctc", ["--help", "--preset", preset], repo_root, repo_root)
    assert f"checkpoints to average  [{avg}]" in capsys.readouterr().out


def test_what_was_read_is_remembered() -> None:
    read: set[str] = set()
    tracked = options.Tracked(Options(), read)
    assert tracked.start == "public" and read == {"start"}


@pytest.mark.parametrize(
    ("word", "sections"),
    [("--lr", "the sections am, lm, heads and 2 more"), ("--order", "the section lm")],
)
def test_a_key_of_conf_names_its_sections_and_the_file_of_the_corpus(
    word: str, sections: str
) -> None:
    with pytest.raises(ConfigError) as error:
        parse(word, "3")
    expected = f"it is a key of {sections} of conf/: set it in egs/mine/corpus.yaml"
    assert str(error.value).endswith(expected)


@pytest.mark.parametrize(
    ("corpus", "place"),
    [
        ("mini", "egs/mini/corpus.yaml, below conf:"),
        ("data:{}", "{}/conf"),
        ("{}/corpus.py", "{}/conf.yaml"),
    ],
)
def test_a_recipe_names_its_own_sections_first(
    repo_root: Path, tmp_path: Path, corpus: str, place: str
) -> None:
    (folder := tmp_path / "mine").mkdir()
    (folder / "corpus.py").write_text("")
    if corpus.startswith("data:"):
        (folder / "conf").mkdir()
    words = ["--epochs", "3"]
    with pytest.raises(ConfigError, match="of the sections am_ctc, ") as error:
        declare(corpus.format(folder), "ctc", words, repo_root, repo_root)
    assert str(error.value).endswith(f"set it in {place.format(folder)}")


def test_a_key_of_the_language_folder_names_its_option() -> None:
    keys = _conf_keys(ROOT, "ctc")  # g2p is a key of other sections, too
    with pytest.raises(ConfigError, match="way out: write --lang-options g2p=VALUE"):
        options.parse(
            [DataOptions], ["--g2p", "espeak:de"],
            renamed={}, conf_keys=keys, caller=Path("/here"), prog="x", help="",
        )  # fmt: skip


@pytest.mark.parametrize("flag", ["--corpus-options", "--lang-options"])
@pytest.mark.parametrize("words", ["language", "language=de g2p", "=de"])
def test_settings_have_a_key_and_a_value(flag: str, words: str, repo_root: Path) -> None:
    with pytest.raises(ConfigError, match=f"{flag}: expected KEY=VALUE"):
        declare("mini", "ctc", [flag, words], repo_root, repo_root)


@pytest.mark.parametrize(
    ("recipe", "flag"),
    [
        ("fedlm", "--private-sampling"),
        ("fedlm", "--private-trained"),
        ("fedlm", "--private-init"),
        ("pate", "--teachers"),
        ("pate", "--unlabeled-data"),
        ("redteam", "--models"),
    ],
)
def test_lists_that_a_recipe_needs_hold_something(recipe: str, flag: str, repo_root: Path) -> None:
    with pytest.raises(ConfigError, match=f"{flag}: expected 1 or more values"):
        declare("mini", recipe, [flag, ""], repo_root, repo_root)
