"""A flipped byte in each kind of output: found by ``--verify true``, else an error or no harm."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.recipe.fingerprint import HashCache
from privasr_k2.recipe.seal import Seal
from tests.support.private_tools import entries, private_recipe, sums
from tests.support.recipe_tools import EXP, contents, run_recipe
from tests.support.stage_tools import Tree

pytestmark = [pytest.mark.reliability, pytest.mark.k2, pytest.mark.recipe]

#: The first stage that reads an output, for every file of it that this stage opens.
READ_BY = {
    "data/manifests/cuts_dev.jsonl.gz": 1,
    "data/manifests/corpus.json": 9,
    "data/feats_fbank/cuts_dev.jsonl.gz": 6,
    "data/feats_fbank/feats_dev_plain_0000.lca": 6,
    "data/feats_fbank/features.yaml": 6,
    "data/lang_phone/lexicon.txt": 4,
    "data/lang_phone/words.txt": 4,
    "data/lang_phone/tokens.txt": 4,
    "data/lang_phone/lang.yaml": 4,
    "data/lm/phone.arpa.gz": 4,
    "data/graph_phone/HLG.safetensors": 8,
    "data/graph_phone/graph.yaml": 8,
    "data/graph_phone/words.txt": 8,
    f"{EXP}/am/model.safetensors": 8,
    f"{EXP}/am/model.yaml": 8,
    f"{EXP}/am/tokens.txt": 8,
    f"{EXP}/decode_dev/1.jsonl": 7,
    f"{EXP}/weights.json": 9,
    f"{EXP}/decode_test/1.jsonl": 9,
    f"{EXP}/score_test/wer.json": 11,
}


def flip(path: Path, rng: random.Random, *, silently: bool = True) -> None:
    """Flip one bit; ``silently``: size and time of change stay."""
    content, stat = bytearray(path.read_bytes()), path.stat()
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    with path.open("r+b") as file:
        file.write(content)
    if silently:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def outputs(work: Path) -> dict[str, str]:
    """All outputs that stamps name, with their hashes."""
    hashes: dict[str, str] = {}
    for path in work.glob("**/.stages/**/*.json"):
        if path.name != "hashes.json":
            hashes |= json.loads(path.read_text()).get("outputs", {})
    return hashes


def kinds(path: Path) -> list[Path]:
    """One file of each kind that an output holds: names without digits tell kinds apart."""
    inside = sorted(p for p in path.rglob("*") if p.is_file() and p.stat().st_size)
    files = [path] if path.is_file() and path.stat().st_size else inside
    return list({re.sub(r"\d", "", file.name)[:9] + file.suffix: file for file in files}.values())


@contextmanager
def flipped(path: Path, rng: random.Random) -> Iterator[None]:
    """A bit of the file is another while the block lasts."""
    whole, stat = path.read_bytes(), path.stat()
    flip(path, rng)
    yield
    path.write_bytes(whole)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def run_tiny(work: Path, *words: str) -> Any:
    return run_recipe("mini", "ctc", "--preset", "tiny", "--work-dir", work, *words)


def test_every_kind_of_output_is_hashed(copied: Path) -> None:
    """Whichever file of an output is touched: its hash is another, once it is taken again."""
    rng = random.Random(1)
    named = outputs(copied)
    assert len(named) >= 12 and sum(len(kinds(copied / output)) for output in named) > 40
    seal = Seal.of(copied)
    for output, digest in named.items():
        for file in kinds(copied / output):
            assert HashCache(copied / "none", copied, seal=seal).digest(output) == digest
            with flipped(file, rng):
                assert HashCache(copied / "none", copied, seal=seal).digest(output) != digest, file


def test_verify_finds_it_in_every_kind_of_output(copied: Path) -> None:
    rng = random.Random(3)
    for output in outputs(copied):
        for file in kinds(copied / output)[:1]:  # none in a folder without plots
            with flipped(file, rng):
                done = run_tiny(copied, "--dry-run", "true", "--verify", "true")
            assert f"{output} was changed after it was written" in done.stdout, (file, done.stdout)


def test_a_flip_that_changes_the_time_of_the_file_needs_no_verify(copied: Path) -> None:
    rng = random.Random(4)
    named = f"{EXP}/weights.json"
    flip(copied / named, rng, silently=False)
    done = run_tiny(copied, "--dry-run", "true")
    assert f"{named} was changed after it was written" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", READ_BY)
def test_who_reads_it_unseen_has_a_clear_error_or_none(name: str, copied: Path) -> None:
    rng = random.Random(name)
    flip(copied / name, rng)
    before = contents(copied)
    stage = str(READ_BY[name])
    done = run_tiny(copied, "--force", "true", "--stage", stage, "--stop-stage", stage)
    assert "Traceback" not in done.stdout, done.stdout
    assert done.returncode in (0, 2), done.stdout
    if done.returncode == 2:
        assert "way out" in done.stdout, done.stdout
        assert contents(copied) == before


_OF_RELEASE = ("sums/3.json", "privacy.json", "mean.txt", "mixed.txt")
PRIVATE = ("data/d.txt", "data/lang.txt", *(f"exp/{name}" for name in _OF_RELEASE))


def private(folder: Path) -> Tree:
    """A private recipe that has run, long enough ago for its hashes to be remembered."""
    tree = private_recipe(folder)
    tree.run()
    paths = [path for top in ("data", "exp") for path in (tree.path / top).rglob("*")]
    for path in filter(Path.is_file, paths):
        stat = path.stat()
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - 10**10))
    tree.run()
    return tree


def test_flips_in_what_a_release_has_left(tmp_path: Path) -> None:
    """All are found; a release that is repeated for it is entered again."""
    tree = private(tmp_path / "tree")
    rng, first = random.Random(5), sums(tree)
    for number, name in enumerate(PRIVATE):
        with flipped(tree.path / name, rng):
            assert "was changed" not in tree.run("--dry-run", "true"), name
            text = tree.run("--dry-run", "true", "--verify", "true")
        assert "was changed after it was written" in text, (number, name)
    assert len(entries(tree)) == 1 and sums(tree) == first
    flip(tree.path / "exp/sums/3.json", rng)
    assert "--force true" in tree.run("--verify", "true", code=2)  # for a second release
    assert len(entries(tree)) == 1
    tree.run("--verify", "true", "--force", "true", "--stage", "2", "--stop-stage", "2")
    assert len(entries(tree)) == 2


@pytest.mark.parametrize("name", ["privacy/ledger.json", "privacy/ledger.json.keys/seal"])
def test_flips_in_the_ledger(name: str, tmp_path: Path) -> None:
    """Nothing is released on a ledger that cannot be trusted, and what was released stays."""
    tree = private(tmp_path / "tree")
    rng, first = random.Random(6), sums(tree)
    whole = (tree.path / name).read_bytes()
    for _ in range(4):
        flip(tree.path / name, rng)
        text = tree.run("--force", "true", "--stage", "2", code=2)
        assert "way out" in text
        assert sums(tree) == first
        (tree.path / name).write_bytes(whole)
    assert len(entries(tree)) == 1
