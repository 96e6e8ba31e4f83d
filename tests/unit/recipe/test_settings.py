"""Keys that no default has are refused before anything runs."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe import plan
from privasr_k2.recipe.plan import Stage
from privasr_k2.recipe.settings import check_keys, without_effect

DEFAULTS = "lr: 0.1\nencoder:\n  kind: a\n  dim: 8\n  kinds: [a]\npeople: {}\nlimit: null\n"


def declared(folder: Path, own: str = "", flags: str = "") -> list[Stage]:
    """One stage that reads conf/am.yaml and own/am.yaml."""
    for place, text in (("conf", DEFAULTS), ("own", own)):
        (folder / place).mkdir()
        (folder / place / "am.yaml").write_text(text)
    files = [f"{folder}/conf/am.yaml", f"{folder}/own/am.yaml"]
    words = ["4", "train", "./v", "--config", *files, "--out-x", "exp/x", *flags.split()]
    return list(plan.parse([words], str(folder)))


def check(folder: Path, own: str = "", flags: str = "") -> None:
    """Check its keys."""
    check_keys(declared(folder, own, flags), folder, folder / "conf")


@pytest.mark.parametrize(
    ("own", "flags"),
    [
        ("", ""),
        ("# nothing yet\n", ""),
        ("lr: 1\nencoder:\n  dim: 9\n", "--set encoder.kinds=[b] lr=2"),
        ("encoder: {dim: 9}\nlimit: 3\n", ""),
        ("people: {anna: 1}\nlimit: {of: 2}\n", "--set people.bert=2"),
    ],
)
def test_keys_of_the_defaults_pass(tmp_path: Path, own: str, flags: str) -> None:
    check(tmp_path, own, flags)


@pytest.mark.parametrize(
    ("own", "flags", "message"),
    [
        (
            "lrr: 1\n",
            "",
            r"own/am.yaml: expected a key of conf/am.yaml, found lrr .* lr\?",
        ),
        ("encoder:\n  dmi: 9\n", "", r"found encoder.dmi way out: did you mean encoder.dim\?"),
        ("", "--set enocder.dim=9", r"--set enocder.dim=9: .*did you mean encoder.dim\?"),
        ("zzzzzz: 1\n", "", "correct the key, or take it out"),
        ("lr: [1\n", "", "expected YAML"),
        ("- lr\n", "", "expected keys and values, found a list"),
    ],
)
def test_others_are_named(tmp_path: Path, own: str, flags: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        check(tmp_path, own, flags)
    text = " ".join(str(error.value).split())
    assert re.search(message, text), text


@pytest.mark.parametrize(
    ("plugins", "setting", "accepted"),
    [
        ("mine.py", "encoder.mine.width=3", True),
        ("mine.py", "encoder.mine=3", False),
        ("mine.py", "enocder.mine.width=3", False),
        ("", "encoder.mine.width=3", False),
    ],
)
def test_settings_of_a_kind_that_a_plugin_may_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: str, setting: str, accepted: bool
) -> None:
    monkeypatch.setenv("PRIVASR_PLUGINS", plugins)
    with nullcontext() if accepted else pytest.raises(ConfigError, match="mine"):
        check(tmp_path, flags=f"--set {setting}")


def test_a_stage_without_defaults_is_its_verbs_own(tmp_path: Path) -> None:
    words = "0 a ./v --out-x exp/x --set anything=1"
    check_keys(plan.parse([words.split()], str(tmp_path)), tmp_path, tmp_path / "conf")


def test_a_key_that_an_option_replaces_is_named(tmp_path: Path) -> None:
    stages = declared(tmp_path, "lr: 1\nencoder: {dim: 9}\n", "--set lr=2 limit=1")
    [note] = without_effect(stages, tmp_path, tmp_path / "conf")
    assert note == f"{tmp_path}/own/am.yaml: lr is not used: stage 4 (train) has 2, by an option"
