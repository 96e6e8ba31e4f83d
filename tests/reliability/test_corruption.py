"""A flipped byte in each kind of output: found by ``--verify true``; without it, an error or no
harm.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from privasr_k2.recipe.fingerprint import HashCache
from tests.support.private_tools import entries, private_recipe, sums
from tests.support.recipe_tools import EXP, contents, run_recipe
from tests.support.stage_tools import Tree

pytestmark = [pytest.mark.reliability, pytest.mark.k2, pytest.mark.recipe]

#: The first stage that reads an output, for every file of it that this stage opens.
READ_BY = {
    "data/manifests/cuts_dev.jsonl.gz": 1,
    "data/manifests/corpus.json": 9,
    "data/feats_fbank/cuts_dev.jsonl.gz": 6,
    "data/feats_fbank/feats_dev_sp1.0_0000.lca": 6,
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
    found: dict[str, str] = {}
    for path in work.glob("**/.stages/**/*.json"):
        found |= (
            json.loads(path.read_text()).get("outputs", {}) if path.name != "hashes.json" else {}
        )
    return found


def kinds(path: Path) -> list[Path]:
    """One file of each kind that an output holds: names without digits tell kinds apart."""
    files = (
        [path]
        if path.is_file()
        else sorted(p for p in path.rglob("*") if p.is_file() and p.stat().st_size)
    )
    by_kind = {
        "".join(c for c in file.name if not c.isdigit())[:9] + file.suffix: file for file in files
    }
    return list(by_kind.values())


def test_every_kind_of_output_is_hashed(copied: Path) -> None:
    """Whichever file of an output is touched: its hash is another, once it is taken again."""
    rng = random.Random(1)
    named = outputs(copied)
    assert len(named) >= 12 and sum(len(kinds(copied / output)) for output in named) > 40
    for output, digest in named.items():
        for file in kinds(copied / output):
            whole, stat = file.read_bytes(), file.stat()
            assert HashCache(copied / "none", copied).digest(output) == digest
            flip(file, rng)
            assert HashCache(copied / "none", copied).digest(output) != digest, file
            file.write_bytes(whole)
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_verify_finds_it_in_every_kind_of_output(copied: Path) -> None:
    rng = random.Random(3)
    for output in outputs(copied):
        files = kinds(copied / output)
        if not files:  # a folder without plots
            continue
        file = files[0]
        whole, stat = file.read_bytes(), file.stat()
        flip(file, rng)
        done = run_recipe(
            "mini",
            "ctc",
            "--preset",
            "tiny",
            "--work-dir",
            copied,
            "--dry-run",
            "true",
            "--verify",
            "true",
        )
        assert f"{output} was changed after it was written" in done.stdout, (file, done.stdout)
        file.write_bytes(whole)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_flip_that_changes_the_time_of_the_file_needs_no_verify(copied: Path) -> None:
    rng = random.Random(4)
    named = f"{EXP}/weights.json"
    flip(copied / named, rng, silently=False)
    done = run_recipe("mini", "ctc", "--preset", "tiny", "--work-dir", copied, "--dry-run", "true")
    assert f"{named} was changed after it was written" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", READ_BY)
def test_who_reads_it_unseen_has_a_clear_error_or_none(name: str, copied: Path) -> None:
    """Whoever reads a flipped byte that nobody has looked for: no traceback, and earlier outputs
    stay.
    """
    rng = random.Random(name)
    flip(copied / name, rng)
    before = contents(copied)
    stage = str(READ_BY[name])
    done = run_recipe(
        "mini", "ctc", "--preset", "tiny", "--work-dir", copied, "--force", "true", "--stage", stage,
        "--stop-stage", stage,
    )  # fmt: skip
    assert "Traceback" not in done.stdout, done.stdout
    assert done.returncode in (0, 2), done.stdout
    if done.returncode == 2:
        assert "way out" in done.stdout, done.stdout
        assert contents(copied) == before


PRIVATE = (
    "data/d.txt",
    "data/lang.txt",
    "exp/sums/3.json",
    "exp/privacy.json",
    "exp/mean.txt",
    "exp/mixed.txt",
)


def private(folder: Path) -> Tree:
    """A private recipe that has run, long enough ago for its hashes to be remembered."""
    tree = private_recipe(folder)
    tree.run()
    for path in (
        path for top in ("data", "exp") for path in (tree.path / top).rglob("*") if path.is_file()
    ):
        stat = path.stat()
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - 10**10))
    tree.run()
    return tree


def test_flips_in_what_a_release_has_left(tmp_path: Path) -> None:
    """All are found; a release that is made again for it is entered again, so that nothing gets
    cheaper.
    """
    tree = private(tmp_path / "tree")
    rng, first = random.Random(5), sums(tree)
    for number, name in enumerate(PRIVATE):
        whole, stat = (tree.path / name).read_bytes(), (tree.path / name).stat()
        flip(tree.path / name, rng)
        assert "was changed" not in tree.run("--dry-run", "true"), name
        found = tree.run("--dry-run", "true", "--verify", "true")
        assert "was changed after it was written" in found, (number, name)
        (tree.path / name).write_bytes(whole)
        os.utime(tree.path / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
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
