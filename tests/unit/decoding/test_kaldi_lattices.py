"""Kaldi's lattices as ours: words, scores, lists, and kaldifst's own N-best search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2 import config as configs
from privasr_k2.decoding.kaldi_archives import write_kaldi_lattices
from privasr_k2.decoding.kaldi_lattices import (
    KaldiLatticeConfig,
    WordTable,
    imported_lattices,
    imported_lists,
    read_all,
)
from privasr_k2.decoding.lattices import Lattice
from privasr_k2.errors import DataError
from privasr_k2.scoring.nbest_formats import Reference, write_ctm
from privasr_k2.scoring.nbest_lists import read_nbest, write_nbest
from tests.support.conf import section
from tests.support.kaldi_lattices import TEXT, as_kaldifst, plain_bytes, write_gz
from tests.support.word_lattices import paths, random_lattice

SYMBOLS = ("<eps>", *(f"w{n}" for n in range(1, 9)), "#0")
PLACE = Path("words.txt")


def settings(**values: Any) -> KaldiLatticeConfig:
    given = [f"{name}={value}" for name, value in {"acoustic_scale": 1.0, **values}.items()]
    return configs.load(KaldiLatticeConfig, [section("kaldi_lattices")], given)


def imported(path: Path, config: KaldiLatticeConfig, symbols: tuple = SYMBOLS) -> list[Lattice]:
    table = WordTable.of(PLACE, symbols, config)
    return list(imported_lattices(read_all([path], table), table, None, config))


def test_our_lattices_come_back(tmp_path: Path) -> None:
    made = random_lattice(3, num_words=9)
    write_kaldi_lattices(tmp_path / "lat.gz", [made])
    [found] = imported(tmp_path / "lat.gz", settings(beam=1000.0))
    sequences = {}
    for lattice in (made, found):
        sequences[id(lattice)] = {
            path.words: [float(scores[list(path.arcs)].sum()) for scores in
                         (lattice.am_scores, lattice.lm_scores)]
            for path in paths(lattice)
        }  # fmt: skip
    wanted, told = sequences[id(made)], sequences[id(found)]
    assert wanted.keys() == told.keys() and len(wanted) > 50
    for words, scores in wanted.items():
        assert told[words] == pytest.approx(scores, rel=1e-5)
    assert (found.seconds == 0).all()  # there were no transition ids


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_lists_are_those_of_kaldifst(seed: int, tmp_path: Path) -> None:
    """Two searches in two libraries: the same best sequences with the same costs."""
    kaldifst = pytest.importorskip("kaldifst")
    made, scale = random_lattice(seed, num_words=9), 0.25
    config = settings(acoustic_scale=scale, num_paths=20)
    table = WordTable.of(PLACE, SYMBOLS, config)
    path = write_gz(tmp_path / "lat.gz", plain_bytes(made))
    [told] = imported_lists(read_all([path], table), table, None, config)
    wanted = []
    for one in kaldifst.lattice_to_nbest(as_kaldifst(made), acoustic_scale=scale, n=20):
        _, _, words, cost = kaldifst.get_linear_symbol_sequence(one)
        wanted.append((" ".join(SYMBOLS[word] for word in words), cost.value1, cost.value2))
    assert [hyp.words for hyp in told.hyps] == [words for words, _, _ in wanted]
    for hyp, (_, graph, acoustic) in zip(told.hyps, wanted):
        assert hyp.lm_scores["graph"] == pytest.approx(-graph, rel=1e-5)
        assert hyp.am_score == pytest.approx(-acoustic, rel=1e-5)  # scaled by both


def test_times_words_and_scales(tmp_path: Path) -> None:
    """Arcs without words are paths, too; ids count frames; some symbols are no words."""
    path = write_gz(tmp_path / "lat.gz", TEXT.encode())
    [one] = imported(path, settings(), ("<eps>", "A", "B"))
    assert [[one.words[n] for n in said.arcs] for said in sorted(paths(one))] == [[1, 2, 0], [2, 0]]
    # "a b": frames 3, 4, 6; "b" has the way without a word before it.
    assert one.seconds[-1] == pytest.approx(6 * 0.03)
    [best, worse] = sorted(paths(one))
    assert one.lm_scores[list(best.arcs)].sum() == -2.5
    assert one.am_scores[list(worse.arcs)].sum() == -10.0

    scaled = settings(acoustic_scale=0.5, lm_scale=2.0, text_case="lower", silent_words="[B]")
    table = WordTable.of(PLACE, ("<eps>", "A", "B"), scaled)
    assert scaled.reference(Reference("dev", "s1", "A B")).text == "a"
    assert table.words == ("<eps>", "a") and table.numbers.tolist() == [0, 1, 0]
    [lists] = imported_lists(read_all([path], table), table, None, scaled)
    hyps = [(hyp.words, hyp.am_score, hyp.lm_scores) for hyp in lists.hyps]
    assert hyps == [("a", -3.0, {"graph": -5.0}), ("", -5.0, {"graph": -8.0})]


def test_references(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_gz(tmp_path / "lat.gz", TEXT.encode())
    config = settings()
    table = WordTable.of(PLACE, ("<eps>", "a", "b"), config)
    references = {name: Reference("dev", "s1", "a b") for name in ("u0", "u1")}
    for make in (imported_lattices, imported_lists):
        told = list(make(read_all([path], table), table, references, config))
        assert [(one.id, one.part, one.speaker, one.ref) for one in told] == [
            (name, "dev", "s1", "a b") for name in ("u1", "u0")
        ]
    assert "nothing for 1 of 2 utterances" in caplog.text
    assert told[1].no_path
    del references["u1"]
    with pytest.raises(DataError, match=r"an utterance with a reference, found u1"):
        list(imported_lists(read_all([path], table), table, references, config))


def test_what_is_refused(tmp_path: Path) -> None:
    path, config = write_gz(tmp_path / "lat.gz", TEXT.encode()), settings()
    with pytest.raises(DataError, match=r"words of words.txt, which has 2, found the word 2"):
        imported(path, config, ("<eps>", "a"))
    with pytest.raises(DataError, match=r"which has 2, found the word 1"):
        imported(path, config, ("<eps>", "", "b"))
    table = WordTable.of(PLACE, ("<eps>", "a", "b"), config)
    with pytest.raises(DataError, match="u1 again"):
        list(read_all([path, path], table))
    cycle = TEXT.replace("2\t1,0,9_9", "2\t1\t1\t1,1,\n2\t1,0,9_9")
    write_gz(path, cycle.encode())
    with pytest.raises(DataError, match=r"\(u1\): expected a lattice, found a cycle"):
        imported(path, config, ("<eps>", "a", "b"))


def test_no_path(tmp_path: Path) -> None:
    """Without a final state, or without arcs that lead there."""
    for text in ("u1 \n\n", "u1 \n0 1 1 1,1,\n\n", "u1 \n0 1 1 1,1,\n2\n\n"):
        path, config = write_gz(tmp_path / "lat.gz", text.encode()), settings()
        [one] = imported(path, config)
        assert one.num_states == 0
        table = WordTable.of(PLACE, SYMBOLS, config)
        [lists] = imported_lists(read_all([path], table), table, None, config)
        assert lists.no_path and lists.hyps == ()
    assert np.isfinite(config.beam)


def test_lists_have_no_times(tmp_path: Path) -> None:
    """Words of Kaldi's lattices are not aligned: a CTM of them is refused, with the way out."""
    path = write_gz(tmp_path / "lat.gz", TEXT.encode())
    config = settings()
    table = WordTable.of(PLACE, ("<eps>", "a", "b"), config)
    write_nbest(
        tmp_path / "nbest/1.jsonl", imported_lists(read_all([path], table), table, None, config)
    )
    lists = read_nbest(tmp_path / "nbest")
    assert [hyp.times for one in lists.lists for hyp in one.hyps] == [None, None]
    with pytest.raises(DataError, match="found none for u1") as caught:
        write_ctm(lists, tmp_path / "a.ctm")
    assert "lattice-to-ctm-conf" in caught.value.way_out
    assert not (tmp_path / "a.ctm").exists()
