"""Records beside outputs: nobody without the key of the work folder can test a guess with them."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.recipe import fingerprint, plan, stamps
from privasr_k2.recipe.fingerprint import HashCache, _hash_file
from privasr_k2.recipe.history import stamps_below
from privasr_k2.recipe.seal import KEY, PLAIN, Seal, make_seal
from privasr_k2.recipe.wiring import Wiring
from tests.support.released import plain_digests

WORDS = ["0", "t", "./v", "--in-feats", "data", "--in-text", "data/t", "--out-x", "exp/am"]


@dataclasses.dataclass
class Work:
    """A work folder with one stage, which reads a folder and writes one."""

    path: Path

    def __post_init__(self) -> None:
        for name in ("data/f", "data/t", "exp/am/w"):
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"private: {name}")
            os.utime(file, (1e9, 1e9))  # old enough to be remembered
        (self.path / ".stages").mkdir()
        [self.stage] = plan.parse([WORDS], str(self.path))
        self.task = self.stage.tasks[0]
        self.where = stamps.places(self.stage, self.task, self.path)

    def cache(self, seal: Seal) -> HashCache:
        return HashCache(self.path / ".stages/hashes.json", self.path, seal=seal)

    def now(self, cache: HashCache) -> fingerprint.Fingerprint:
        wiring = Wiring([self.stage], self.path)
        return fingerprint.fingerprint(self.task, wiring, cache, {})

    def end(self, seal: Seal) -> None:
        """The stage has run, with an attempt that is still there."""
        cache = self.cache(seal)
        now = self.now(cache)
        stamps.begin(self.where, now, launcher="local", forced=True)
        (self.path / "exp/am").mkdir(exist_ok=True)
        (self.path / "exp/am/w").write_text("made")
        os.utime(self.path / "exp/am/w", (1e9, 1e9))
        stamps.end(self.where, self.stage, self.task, now, cache, 1.5)
        cache.save()

    def state(self, seal: Seal) -> stamps.State:
        cache = self.cache(seal)
        return stamps.state(self.where, self.task, self.now(cache), cache)

    def found(self) -> list[bytes]:
        """Plain digests of the inputs and outputs that some record holds."""
        digests = [*plain_digests([p for p in self.path.glob("[de]*/**/*") if p.is_file()])]
        plain = HashCache(Path(os.devnull), self.path)
        digests += [str(plain.digest(name)).encode() for name in ("data", "exp/am")]
        now = self.now(plain)
        digests += [now.digest.encode()]
        files = [p for p in self.path.rglob("*") if p.is_file() and ".stages" in p.parts]
        texts = [path.read_bytes() for path in files]
        return [digest for digest in digests if any(digest in text for text in texts)]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_no_record_holds_a_plain_digest(work: Work) -> None:
    seal = make_seal(work.path)
    work.end(seal)
    assert work.state(seal).fresh and not work.found()
    assert stat.S_IMODE((work.path / ".stages/key").stat().st_mode) == 0o600
    assert len(stamps_below(work.path)) == 1


def test_records_of_earlier_versions_are_up_to_date_and_are_keyed_without_a_look_at_files(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.end(PLAIN)
    before = work.where.stamp.read_bytes()
    attempt = read_json(work.where.attempt)
    assert len(work.found()) >= 5
    read = []
    monkeypatch.setattr(fingerprint, "_hash_file", lambda p: read.append(p) or _hash_file(p))
    seal = make_seal(work.path)
    assert work.state(seal).fresh and not work.cache(seal).is_of_seal
    assert work.where.stamp.read_bytes() == before  # as in a dry run
    now = work.now(work.cache(seal))
    assert stamps.read_record(work.where.attempt, seal) == {**attempt, **{
        name: now.record[name] for name in ("fingerprint", KEY)}}  # fmt: skip
    stamps.seal_records(work.path, seal)
    cache = work.cache(seal)
    cache.save()
    assert work.state(seal).fresh and work.cache(seal).is_of_seal and not read
    assert not work.found()
    sealed = work.where.stamp.read_bytes()
    stamps.seal_records(work.path, seal)  # once is enough
    assert work.where.stamp.read_bytes() == sealed


def test_side_by_side_all_have_one_key(work: Work) -> None:
    with ThreadPoolExecutor(8) as pool:
        seals = [*pool.map(make_seal, [work.path] * 32)]
    assert set(seals) == {Seal.of(work.path)} and len(seals[0].key) == 32
    assert [path.name for path in (work.path / ".stages").iterdir()] == [KEY]


def test_a_key_that_is_gone_or_another_stops_before_anything_is_lost(work: Work) -> None:
    seal = make_seal(work.path)
    work.end(seal)
    (work.path / ".stages/key").unlink()
    with pytest.raises(DataError, match="restore it"):
        make_seal(work.path)
    (work.path / ".stages/hashes.json").unlink()
    other = make_seal(work.path)
    [reason] = work.state(other).reasons
    assert "another key" in reason and "another key" in work.state(PLAIN).reasons[0]
    with pytest.raises(DataError, match="of another key"):
        stamps.begin(work.where, work.now(work.cache(other)), launcher="local", forced=False)
    assert (work.path / "exp/am/w").read_text() == "made"
    (work.path / ".stages/key").write_bytes(b"short")
    with pytest.raises(DataError, match="5 bytes"):
        make_seal(work.path)


def test_a_damaged_cache_of_hashes_is_computed_again(work: Work) -> None:
    seal = make_seal(work.path)
    work.end(seal)
    file = work.path / ".stages/hashes.json"
    known = json.loads(file.read_text())
    known["files"] = {name: [*entry[:3], "no digest"] for name, entry in known["files"].items()}
    file.write_text(json.dumps(known))
    assert work.state(seal).fresh


def test_a_stamp_of_a_release_has_no_times(work: Work) -> None:
    [stage] = plan.parse([[*WORDS, "--out-privacy", "exp/p.json"]], str(work.path))
    work.stage, work.task = stage, stage.tasks[0]
    (work.path / "exp/p.json").write_text("{}")
    cache = work.cache(PLAIN)
    stamps.end(work.where, stage, work.task, work.now(cache), cache, 1.5)
    assert not {"seconds", "ended"} & read_json(work.where.stamp).keys()
