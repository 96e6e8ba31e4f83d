"""The files of a corpus: text and lists by content, audio by size and time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privasr_k2.recipe import corpus_files
from privasr_k2.recipe.corpus_files import MEDIA, METADATA, Listing, recorded
from privasr_k2.recipe.fingerprint import HashCache


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    write(folder / "train/text", "a HELLO\n")
    write(folder / "train/wav/a.WAV", "sound")
    write(folder / "cuts.jsonl.gz", "not really")
    return folder


def write(path: Path, text: str, age: float = 100.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = path.stat().st_mtime_ns - int(age * 1e9)
    os.utime(path, ns=(then, then))


def look(corpus: Path, *, verify: bool = False) -> Listing:
    """As a run does, with what earlier runs remember."""
    work = corpus.parent / "work"
    work.mkdir(exist_ok=True)
    cache = HashCache(work / "hashes.json", work, verify=verify)
    found = cache.listing("../corpus")
    cache.save()
    return found


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", ["train/text", "cuts.jsonl.gz", "train/segments"])
def test_an_edited_new_or_lost_list_is_seen(corpus: Path, name: str, verify: bool) -> None:
    before = look(corpus)
    assert look(corpus, verify=verify) == before
    write(corpus / name, "a JELLO\n", age=50)
    after = look(corpus, verify=verify)
    assert after.metadata != before.metadata and after.media == before.media
    (corpus / name).unlink()
    assert look(corpus, verify=verify).metadata != after.metadata


def test_a_list_that_was_only_touched_is_the_same(corpus: Path) -> None:
    before = look(corpus)
    os.utime(corpus / "train/text")
    assert look(corpus) == before


def test_a_change_of_a_list_with_time_and_size_kept_needs_verify(corpus: Path) -> None:
    before, stat = look(corpus), (corpus / "train/text").stat()
    (corpus / "train/text").write_text("a JELLO\n")
    os.utime(corpus / "train/text", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert look(corpus) == before != look(corpus, verify=True)


def test_audio_counts_by_size_and_time_and_is_never_read(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = look(corpus)
    os.utime(corpus / "train/wav/a.WAV")
    touched = look(corpus)
    assert touched.media != before.media and touched.metadata == before.metadata
    write(corpus / "train/wav/b.flac", "")
    assert look(corpus).media not in (before.media, touched.media)
    # Even with --verify true, and of a file that may not be read.
    monkeypatch.setattr(corpus_files, "MOST_FILES", 0)
    monkeypatch.setattr(HashCache, "_file_digest", None)
    look(corpus, verify=True)


def test_what_does_not_count(corpus: Path) -> None:
    before = look(corpus)
    write(corpus / ".cache/x.txt", "x")
    assert look(corpus) == before
    work = corpus / "work"  # a work folder inside the corpus
    write(work / "log.txt", "x")
    cache = HashCache(work / "hashes.json", work)
    assert cache.listing("..") == before


def test_links_that_never_end_or_lead_nowhere(corpus: Path) -> None:
    before = look(corpus)
    (corpus / "train/up").symlink_to(corpus)
    assert look(corpus) == before
    (corpus / "train/lost").symlink_to(corpus / "nothing")
    assert look(corpus).metadata != before.metadata


def test_what_an_earlier_version_did_not_record_is_no_change() -> None:
    old, now = [["a", "1"]], [["a", "1"], [f"c{METADATA}", "2"], [f"c{MEDIA}", "3"], ["b", "4"]]
    assert recorded(old, now) == [["a", "1"], ["b", "4"]]
    assert recorded(now, now) == now
