"""Rules for the files themselves: size, shell style, help, and what must not stand in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from privasr_k2.recipe.renames import VERBS
from tests.support.shell_files import ROOT, repository_files, shell_files

CODE = [name for name in repository_files() if name.suffix in {".py", ".sh"}]
CONF = [name for name in repository_files() if name.parts[0] == "conf" and name.suffix == ".yaml"]
TEXT = {"", ".py", ".sh", ".md", ".yaml", ".toml", ".txt", ".in", ".run"}

#: In the library: what the design rules out, with the reason that the failure shows.
RULED_OUT = {
    r"\btorch\.load\(": "nothing is unpickled: safetensors",
    r"^\s*(import|from) pickle\b": "nothing is pickled: safetensors, JSON, YAML",
    r"\b(np\.random\.|torch\.manual_|random\.)seed\(": "no global seeds: randomness.stream",
    r"except Exception\b|except:": "name the exceptions",
    r"\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError": "finish it, or leave it out",
}


def text_of(name: Path) -> str:
    """A repository file's text, with replacement characters."""
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def test_there_are_files() -> None:
    assert Path("path.sh") in shell_files()
    assert Path(".ci/run") in shell_files()
    assert Path("privasr_k2/errors.py") in CODE


@pytest.mark.parametrize("name", CODE, ids=str)
def test_at_most_400_lines(name: Path) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("pattern", RULED_OUT)
def test_ruled_out_in_the_library(pattern: str) -> None:
    places = []
    for name in (name for name in CODE if name.parts[0] == "privasr_k2"):
        above = ""
        for number, line in enumerate(text_of(name).splitlines(), start=1):
            # Inside fork_rng a seed is not global: torch puts its generator back afterwards.
            if re.search(pattern, line) and "fork_rng(" not in above:
                places.append(f"{name}:{number}")
            above = line
    assert places == [], RULED_OUT[pattern]


def test_the_library_names_no_verb_of_earlier_versions() -> None:
    """A way out that names one helps nobody. Sections and functions may still be called so."""
    library = [n for n in CODE if n.parts[0] == "privasr_k2" and n.name != "renames.py"]
    kept = {"score"} | set(re.findall(r"^(\w+):", "".join(map(text_of, CONF)), re.MULTILINE))
    kept |= set(re.findall(r"^def (\w+)\(", "".join(map(text_of, library)), re.MULTILINE))
    old = re.compile(rf"(?<!\w)({'|'.join(sorted(VERBS.keys() - kept))})(?!\w)")
    assert [f"{n}: {found[1]}" for n in library for found in old.finditer(text_of(n))] == []


def test_no_path_of_the_machine_it_was_written_on() -> None:
    here = re.compile(rf"(?<![\w.*$}}]){re.escape(str(ROOT))}/|/(home|Users|root)/\w")
    texts = (n for n in repository_files() if n.suffix in TEXT and n.name != "test_files.py")
    assert [str(name) for name in texts if here.search(text_of(name))] == []


def test_k2_page_is_named_in_two_places_only() -> None:
    texts = [name for name in repository_files() if name.suffix in TEXT]
    named = {str(name) for name in texts if "k2-fsa.github.io/k2/" in text_of(name)}
    places = {"docs/install.md", "requirements/k2-torch2.txt"}
    assert named - {"tests/structure/test_files.py"} == places


def test_shellcheck() -> None:
    beside = Path(sys.executable).with_name("shellcheck")
    shellcheck = str(beside) if beside.exists() else shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    command = [shellcheck, "-x", *map(str, shell_files())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def header(path: Path) -> list[str]:
    """The comment at a shell file's beginning, without marks, which its ``--help`` prints."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("#"), lines)
    kept = [line for line in comment if not line.startswith("# shellcheck ")]
    return [line.removeprefix("#").removeprefix(" ") for line in kept]


@pytest.mark.parametrize(
    "name",
    [
        *("benchmarks/run.sh", "local/install_env.sh", "local/lock.sh"),
        *("tests/run.sh", "tests/smoke.sh"),
    ],
)
def test_help_is_the_header_comment(name: str) -> None:
    command = ["bash", str(ROOT / name), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().splitlines() == header(ROOT / name)
