"""Sections of YAML files read as files of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from privasr_k2 import sections
from privasr_k2.errors import ConfigError
from privasr_k2.recipe.fingerprint import _yaml_digest

PARTS = {
    "plain": "lr: 0.1  # fast\nencoder:\n  # of it\n  dims: [1,\n    2]\n",
    "blocks": "text: |\n  one\n    two\nfolded: >-\n  three\n\n  four\nlast: 'it''s'\n",
    "reused": "a: &x {y: 1}\nb: *x\nunicode: é\n",
    "deep": "one:\n  two: {}\n  three: null\n",
    "empty": "",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a section for each of the parts, one of them within another section."""
    path = tmp_path / "all.yaml"
    text = "# all\n"
    for name, part in PARTS.items():
        text += f"# {name}\n{name}:\n" + "".join(f"  {line}\n" for line in part.splitlines()) + "\n"
    text += "flow: {lr: 0.1, dims: [1,\n  2]}  # one\nouter:\n  inner:\n    lr: 3\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PARTS)
def test_a_section_has_the_values_and_hash_of_a_file(file: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "own.yaml").write_text(PARTS[name], encoding="utf-8")
    assert yaml.safe_load(sections.read(f"{file}#{name}")) == yaml.safe_load(PARTS[name])
    assert _yaml_digest(f"{file}#{name}", "x") == _yaml_digest(str(tmp_path / "own.yaml"), "y")


def test_flow_and_nested_sections(file: Path) -> None:
    assert yaml.safe_load(sections.read(f"{file}#flow")) == {"lr": 0.1, "dims": [1, 2]}
    assert sections.read(f"{file}#outer.inner") == "lr: 3\n"
    assert sections.names(f"{file}#outer") == ["inner"]
    assert sections.names(f"{file}#plain") == []
    assert sections.names(file) == [*PARTS, "flow", "outer"]
    assert not sections.exists(f"{file}#outer.other") and not sections.exists(f"{file}#plain.lr.x")


def test_another_section_changes_no_hash(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("a:\n  lr: 1\nb:\n  lr: 2\n")
    before = [_yaml_digest(f"{file}#{name}", "1") for name in "ab"]
    file.write_text("a:\n  lr: 3\n# a comment\nb:\n  lr: 2  # and another\n")
    after = [_yaml_digest(f"{file}#{name}", "2") for name in "ab"]
    assert before[0] != after[0] and before[1] == after[1]


def test_hashes_of_earlier_files(tmp_path: Path) -> None:
    """The hash that stamps hold of egs/mini/conf/split_text.yaml, which said this alone."""
    (tmp_path / "x.yaml").write_text("conf:\n  split_text:\n    tolerance: 2.5\n")
    digest = "40e50facb368881455a8ca2ca34dba4e2c98ea2dc5198c8a3dba590483c64211"
    assert _yaml_digest(f"{tmp_path}/x.yaml#conf.split_text", "x") == digest


@pytest.mark.parametrize(
    ("text", "address", "message"),
    [
        ("a: {x: 1}\n", "#b", "a section b"),
        ("a: {x: 1}\na: {y: 1}\n", "#a", "each section once"),
        ("a: [1\n", "#a", "YAML"),
    ],
)
def test_errors(tmp_path: Path, text: str, address: str, message: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        sections.read(f"{tmp_path}/x.yaml{address}")


def test_only_yaml_files_have_sections() -> None:
    assert sections.split("exp/a#b/x") == ("exp/a#b/x", "")
    assert sections.split("a#b/x.yaml#s.t") == ("a#b/x.yaml", "s.t")
