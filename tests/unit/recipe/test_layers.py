"""The order of layers: the repository's, the recipe's, the corpus's, and those of a preset."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe.layers import defaults, layers, layout_of, preset_options, unknown

C = "egs/c/corpus.yaml#conf"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A configuration with one section, changed in every place."""
    texts = {
        "conf/common.yaml": "am: {lr: 1}\nlm: {lr: 1}\n",
        "conf/ctc.yaml": "overrides:\n  am: {lr: 2}\n",
        "conf/plain.yaml": "lr: 1\nencoder: {dim: 1}\n",
        "conf/reports/ctc.yaml": "tables: []\n",
        "conf/presets/tiny.yaml": "am: {lr: 4}\noverrides:\n  ctc:\n    am: {lr: 5}\n",
        "egs/c/corpus.yaml": (
            "conf:\n  am: {lr: 3}\n  ma: {lr: 1}\n  presets: {tiny: {am: {lr: 6}}}\n"
        ),
        "mine/conf/am.yaml": "lr: 3\n",
        "mine/conf/ma.yaml": "lr: 3\n",
        "mine/conf/tiny/am.yaml": "lr: 6\n",
        "mine/conf.yaml": "am: {lr: 3}\npresets: {tiny: {am: {lr: 6}, ma: {lr: 7}}}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("own", "of_corpus", "of_preset"),
    [
        (C, f"{C}.am", f"{C}.presets.tiny.am"),
        ("mine/conf", "mine/conf/am.yaml", "mine/conf/tiny/am.yaml"),
        ("mine/conf.yaml", "mine/conf.yaml#am", "mine/conf.yaml#presets.tiny.am"),
    ],
)
def test_order(root: Path, own: str, of_corpus: str, of_preset: str) -> None:
    expected = ["conf/common.yaml#am", "conf/ctc.yaml#overrides.am", of_corpus]
    for preset in ("small", "tiny"):
        addresses = layers(root, "am", recipe="ctc", preset=preset, own=root / own)
        assert addresses == [f"{root}/{path}" for path in expected]
        tiny = "conf/presets/tiny.yaml#"
        expected += [f"{tiny}am", f"{tiny}overrides.ctc.am", of_preset]


def test_what_is_not_there_is_left_out(root: Path) -> None:
    addresses = layers(root, "lm", recipe="pate", preset="tiny", own=root / "none/conf")
    assert addresses == [defaults(root)["lm"]]
    assert layers(root, "nothing", recipe="ctc", preset="paper") == []


def test_files_without_sections(root: Path) -> None:
    assert layers(root, "plain") == [f"{root}/conf/plain.yaml"]
    report = layers(root, "reports/ctc", recipe="ctc", preset="tiny")
    assert report == [f"{root}/conf/reports/ctc.yaml"]
    assert list(defaults(root)) == ["am", "lm", "plain"]


def test_a_layout_is_the_recipes_own_or_a_shared_one(root: Path) -> None:
    (root / "conf/reports/pate.yaml").write_text("shared_by: [dpsgd, ctc]\n")
    found = {name: layout_of(root, name) for name in ("ctc", "pate", "dpsgd", "other")}
    assert found == {"ctc": "ctc", "pate": "pate", "dpsgd": "pate", "other": "other"}


@pytest.mark.parametrize(
    ("own", "found"),
    [
        (C, [f"{C}.ma"]),
        ("mine/conf", ["mine/conf/ma.yaml"]),
        ("mine/conf.yaml", ["mine/conf.yaml#presets.tiny.ma"]),
        ("nowhere/conf", []),
        ("egs/c/corpus.yaml#other", []),
    ],
)
def test_layers_that_nothing_reads(root: Path, own: str, found: list[str]) -> None:
    assert unknown(root, root / own, "tiny", set()) == [f"{root}/{path}" for path in found]
    assert unknown(root, root / own, "tiny", {"ma"}) == []


def test_a_section_stands_in_one_file(root: Path) -> None:
    (root / "conf/other.yaml").write_text("lm: {lr: 2}\n")
    with pytest.raises(ConfigError, match="each section once"):
        defaults(root)


def test_a_preset_has_options_of_recipes(root: Path) -> None:
    with (root / "conf/presets/tiny.yaml").open("a") as file:
        file.write("recipe_options: {ctc: {avg: 2, noises: [0.5]}}\n")
    assert preset_options(root, "ctc", "tiny") == {"avg": 2, "noises": [0.5]}
    assert preset_options(root, "pate", "tiny") == preset_options(root, "ctc", "small") == {}
