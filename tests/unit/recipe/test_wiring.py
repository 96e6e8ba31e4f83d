"""The writers of files, of folders above and below, and of arrays."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.recipe import plan
from privasr_k2.recipe.wiring import Wiring, ancestors


def wiring(folder: Path, *declarations: str) -> Wiring:
    return Wiring(plan.parse([line.split() for line in declarations], str(folder)), folder)


def test_writers_of_a_path_of_what_holds_it_and_of_what_is_in_it(tmp_path: Path) -> None:
    wired = wiring(
        tmp_path,
        "0 a ./v --out-x data/a",
        "1 b JOB=1:3 ./v --in-a data/a/part --out-x exp/b/JOB",
        "2 c ./v --in-b exp/b --out-x exp/c",
        "3 d ./v --in-b exp/b/2 --out-x exp/d",
        "4 e ./v --in-b data/a --out-x exp/bb",
    )
    a, b, c, d, e = wired.stages
    assert wired.writers_of("data/a/part") == [a]
    assert wired.writers_of("exp/b") == [b]
    assert wired.writers_of("exp") == [b, c, d, e]
    assert wired.writers_of("exp/b/7") == []
    assert ancestors(wired, [d]) == [a, b, d]
    assert ancestors(wired, [e]) == [a, e]


def test_a_raw_path_that_a_stage_writes_is_an_input(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "lexicon").touch()
    wired = wiring(
        tmp_path,
        "0 make ./v --out-x data/corpus",
        "1 m ./v --raw-corpus data/corpus --raw-other corpus --raw-lexicon lexicon --out-x data/m",
    )
    assert wired.hashed_raws(wired.stages[1].tasks[0]) == ["data/corpus", "lexicon"]
    assert wired.needs(wired.stages[1]) == [("data/corpus", wired.stages[0])]


def test_a_corpus_that_is_not_there_is_answered_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give --corpus-dir DIR"):
        wiring(tmp_path, "0 a ./v --raw-corpus none --out-x data/manifests")
    with pytest.raises(DataError, match="give --corpus-dir DIR"):  # as recipes name it
        wiring(tmp_path, f"0 a ./v --raw-corpus {tmp_path}/none --out-x data/manifests")
    with pytest.raises(DataError, match="give --public-dir DIR"):
        wiring(tmp_path, "1 a ./v --raw-corpus none --out-x data/public/manifests")


def test_jobs_that_write_one_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="outputs of its own"):
        wiring(tmp_path, "0 a ./v --out-x data/a --out-y data/a")


def test_ten_thousand_jobs_are_checked_quickly(tmp_path: Path) -> None:
    array = "0 a JOB=1:10000 ./v --out-x data/a/JOB"
    wired = wiring(tmp_path, array, "1 b ./v --in-a data/a --out-b data/b")
    assert wired.writers_of("data/a/10000") == [wired.stages[0]]
