"""Every section of conf/ names its verb and dataclass, which it fills; layers load upon it."""

from __future__ import annotations

import dataclasses
import importlib
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privasr_k2 import config, sections
from privasr_k2.errors import ConfigError
from privasr_k2.recipe.layers import OVERRIDES, PRESETS, RECIPE_OPTIONS, defaults

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
REPORTS = sorted(CONF.glob("reports/*.yaml"))
CORPORA = sorted(ROOT.glob("egs/*/corpus.yaml"))


def names(address: str | Path) -> list[str]:
    """The sections at an address; none where it does not exist."""
    return sections.names(address) if sections.exists(address) else []


def comment(name: str) -> str:
    """The comment above a section."""
    file, _ = sections.split(defaults(ROOT)[name])
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    end = start = lines.index(f"{name}:")
    while lines[start - 1].startswith("#"):
        start -= 1
    return "\n".join(lines[start:end])


def upon(name: str) -> str:
    """The section whose defaults a section needs; its own name where it has all of them."""
    match = re.search(r"^# Upon section (\w+)\.$", comment(name), re.MULTILINE)
    return match[1] if match else name


def resolve(name: str) -> type[Any]:
    """The dataclass that the comment above a section names, or that of the section below it."""
    both = f"{comment(name)}\n{comment(upon(name))}"
    match = re.search(r"^# Class: ([\w.]+)\.(\w+)$", both, re.MULTILINE)
    assert match, f"section {name} has no comment '# Class: MODULE.CLASS'"
    return getattr(importlib.import_module(match[1]), match[2])


def nested(cls: type[Any]) -> list[type[Any]]:
    """A dataclass and all that its fields hold."""
    classes = [cls]
    for hint in typing.get_type_hints(cls).values():
        for inner in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(inner) and isinstance(inner, type):
                classes += nested(inner)
    return classes


def above() -> Iterator[tuple[str, str]]:
    """The name and address of every layer that lies above defaults."""
    places = [sections.below(file, OVERRIDES) for file in sorted(CONF.glob("*.yaml"))]
    for file in sorted((CONF / PRESETS).glob("*.yaml")):
        own = [name for name in sections.names(file) if name not in (OVERRIDES, RECIPE_OPTIONS)]
        yield from ((name, sections.below(file, name)) for name in own)
        recipes = sections.below(file, OVERRIDES)
        places += [sections.below(recipes, recipe) for recipe in names(recipes)]
    for place in [sections.below(file, key) for file in CORPORA for key in ("conf", "public_conf")]:
        presets = sections.below(place, PRESETS)
        places += [place, *(sections.below(presets, preset) for preset in names(presets))]
    for place in places:
        yield from ((name, sections.below(place, name)) for name in names(place) if name != PRESETS)


BASES = sorted(defaults(ROOT))
WHOLE = [name for name in BASES if upon(name) == name]
ABOVE = sorted(above(), key=lambda pair: pair[1])


def label(address: str) -> str:
    """A test's name: an address in the repository."""
    return str(Path(address).relative_to(ROOT))


def test_few_files() -> None:
    assert len([*CONF.rglob("*.yaml"), *ROOT.glob("egs/*/conf/**/*.yaml")]) <= 30


@pytest.mark.parametrize(
    "file", [*CONF.glob("*.yaml"), *(CONF / PRESETS).glob("*.yaml")], ids=lambda p: p.stem
)
def test_files_hold_sections_alone(file: Path) -> None:
    assert sections.names(file)


def test_layers_above_are_found() -> None:
    addresses = {label(address) for _, address in ABOVE}
    assert addresses >= {
        "conf/classlm.yaml#overrides.lm_ngram",
        "conf/presets/tiny.yaml#am_ctc",
        "conf/presets/paper.yaml#overrides.fedlm.fedlm",
        "egs/mini/corpus.yaml#conf.am_ctc",
        "egs/mini/corpus.yaml#conf.presets.demo.mini",
        "egs/mini_pate/corpus.yaml#public_conf.presets.tiny.mini",
    }


@pytest.mark.parametrize("name", BASES)
def test_defaults_load(name: str) -> None:
    addresses = [Path(defaults(ROOT)[part]) for part in dict.fromkeys([upon(name), name])]
    if name == "report":
        addresses.append(REPORTS[0])
    config.load(resolve(name), addresses)


@pytest.mark.parametrize("file", REPORTS, ids=lambda path: path.stem)
def test_layouts_of_reports_load(file: Path) -> None:
    layout = config.load(resolve("report"), [Path(defaults(ROOT)["report"]), file])
    # Published figures stand in one file, by papers.
    assert (layout.published, layout.as_published) == ([], [])
    papers = sections.names(CONF / "published.yaml")
    assert layout.paper == "" or layout.paper in papers


@pytest.mark.parametrize("name", BASES)
def test_sections_name_their_verbs(name: str) -> None:
    named = re.findall(r"\b[Vv]erb (\w+)", comment(name).replace("\n# ", " "))
    assert named
    assert all((ROOT / f"privasr_k2/bin/{verb}.py").exists() for verb in named), named


@pytest.mark.parametrize(("name", "address"), ABOVE, ids=[label(address) for _, address in ABOVE])
def test_layers_load_upon_their_defaults(name: str, address: str) -> None:
    assert name in BASES, f"{label(address)} is a layer of no section of conf/"
    config.load(resolve(name), [*map(Path, dict.fromkeys([defaults(ROOT)[upon(name)], address]))])


@pytest.mark.parametrize("name", WHOLE)
def test_every_key_has_a_comment(name: str) -> None:
    lines = sections.read(defaults(ROOT)[name]).splitlines()
    pairs = [(a, b) for a, b in zip(["", *lines], lines, strict=False) if b[:1].isalpha()]
    bare = [line for above, line in pairs if "#" not in line and not above.startswith("#")]
    assert [line for line in bare if not line.endswith(":")] == []


@pytest.mark.parametrize("name", WHOLE)
def test_defaults_stand_in_yaml_only(name: str) -> None:
    for cls in nested(resolve(name)):
        assert cls.__dataclass_params__.frozen, f"{cls.__name__} is not frozen"
        defaults = [(f.default, f.default_factory) for f in dataclasses.fields(cls)]
        none = {(dataclasses.MISSING, dataclasses.MISSING)}
        assert {*defaults} <= none, f"defaults of {cls.__name__} belong in conf/"


@pytest.mark.parametrize("name", WHOLE)
def test_an_unknown_key_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown_key"):
        config.load(resolve(name), [Path(defaults(ROOT)[name])], ["unknown_key=1"])
