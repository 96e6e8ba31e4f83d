"""The Markdown pages: links, files and options of commands exist; lines are short."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from privasr_k2 import sections
from privasr_k2.privacy import events
from privasr_k2.recipe import front, renames
from privasr_k2.recipe.corpus import find_corpus
from privasr_k2.recipe.declare import DataOptions, RunOptions
from privasr_k2.report.kinds import READERS
from tests.support.pages import commands
from tests.support.shell_files import ROOT

PAGES = [Path(name) for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted(path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md"))
RESULTS = sorted(path.relative_to(ROOT) for path in ROOT.glob("egs/*/RESULTS*.md"))
#: Commands here use the option names of the commit that made their results.
EARLIER = {Path("docs/results.md"), Path("CHANGELOG.md")}
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def text_of(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def long_lines(text: str) -> list[str]:
    """Lines above 100 columns outside tables and code.

    >>> x = "x" * 101
    >>> [len(long_lines(text)) for text in (x, f"|{x}", f"```\\n{x}\\n```")]
    [1, 0, 0]
    """
    prose = FENCED.sub("", text).splitlines()
    return [line for line in prose if len(line) > 100 and not line.startswith("|")]


def anchors(text: str) -> set[str]:
    """Of the headings of a page, as GitHub makes them.

    >>> anchors("## What it is, and why")
    {'what-it-is-and-why'}
    """
    heads = re.findall(r"^#+ +(.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", text_of(page))):
        if link.startswith(("https:", "http:")):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)
    return broken


def known_options(corpus: str, recipe: str) -> set[str] | None:
    """The options of a recipe on a corpus; None where it is a placeholder."""
    if not (ROOT / f"local/recipes/{recipe}.py").is_file():
        return None
    module = front.load_file(ROOT / f"local/recipes/{recipe}.py", ROOT)
    classes = (module.Options, DataOptions, RunOptions)
    names = {field.name for cls in classes for field in dataclasses.fields(cls)}
    is_ours = (ROOT / f"egs/{corpus}").is_dir()
    names |= set(find_corpus(corpus if is_ours else "data:.", ROOT, ROOT).own_options)
    return {f"--{name.replace('_', '-')}" for name in names | {"help"}}


def test_what_is_wrong_is_found() -> None:
    words = commands("run `./run.sh mini ctc --size tiny \\\n  --nj 2`  # or not")
    assert words == [["mini", "ctc", "--size", "tiny", "--nj", "2"]]
    known = known_options("mini", "ctc")
    assert known is not None
    assert [word for word in words[0] if word.startswith("--") and word not in known] == ["--size"]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_and_lines(page: Path) -> None:
    assert broken_links(page) == []
    assert long_lines(text_of(page)) == []


def test_the_site_has_every_page() -> None:
    """Of ``docs/``, in one place of its contents; and results link to figures that are there."""
    contents = "\n".join(FENCED.findall(text_of(Path("docs/index.md"))))
    listed = sorted(re.findall(r"^([a-z_0-9]+)$", contents, re.MULTILINE))
    assert listed == sorted(
        {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} | {"notebook"}
    )
    assert {page: links for page in RESULTS if (links := broken_links(page))} == {}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in EARLIER], ids=str)
def test_commands_and_files(page: Path) -> None:
    text = text_of(page)
    wrong = []
    for corpus, recipe, *words in commands(text):
        known = known_options(corpus, recipe)
        options = {word.split("=")[0] for word in words if re.fullmatch(r"--[a-z][\w=-]*", word)}
        wrong += [] if known is None else sorted(options - known)
    verbs = {"NAME", *(path.stem for path in (ROOT / "privasr_k2/bin").glob("*.py"))}
    wrong += set(re.findall(r"privasr verb (\w+)", text)) - verbs
    files = re.findall(r"\bconf/[a-z_/]+\.yaml(?:#\w[\w.]*\w)?", text)
    wrong += [file for file in files if not sections.exists(ROOT / file)]
    local = re.findall(r"`((?:local|privasr_k2|tests)/[\w/]+\.(?:py|sh))`", text)
    wrong += [file for file in local if not (ROOT / file).is_file()]
    assert wrong == []


def test_the_formats_name_every_event_and_kind_of_artifact() -> None:
    page = text_of(Path("docs/formats.md"))
    assert {name for name in events._FORMS if f"`{name}`" not in page} == set()
    [kinds] = re.findall(r"Kinds of artifacts are `([^`]+)`", page)
    assert {*kinds.replace("score_<role>", "score").split()} == {*READERS}


def test_the_changelog_has_every_earlier_name() -> None:
    rows = [line for line in text_of(Path("CHANGELOG.md")).splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    keys = {key.partition("=")[0] for keys in renames.KEYS.values() for key in keys}
    earlier = {f"--{name}" for name in front.RENAMED} | {*renames.VERBS} | keys
    assert earlier - named == set()
