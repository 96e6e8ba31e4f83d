"""Error rates and MAPSSWE against NIST's own programs, sclite and sc_stats (Debian: sctk)."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.randomness import stream
from privasr_k2.scoring.align import Pair, align
from privasr_k2.scoring.counts import ErrorCounts, count_pairs, total
from privasr_k2.scoring.matched_pairs import MatchedPairs, mapsswe, segment_errors

# Debian keeps the programs out of PATH, behind a command of its own.
_FOLDER = "/usr/lib/sctk/bin"
_PATH = os.pathsep.join([os.environ.get("PATH", ""), _FOLDER])
SCLITE, SC_STATS = (shutil.which(name, path=_PATH) for name in ("sclite", "sc_stats"))
pytestmark = pytest.mark.skipif(
    not (SCLITE and SC_STATS), reason="sclite and sc_stats are not installed (apt-get install sctk)"
)

Alignments = dict[str, tuple[Pair, ...]]
VOCABULARY = np.array([f"w{i}" for i in range(25)])


def _texts(seed: int, rates: tuple[float, ...], count: int = 250) -> list[dict[str, list[str]]]:
    """References, and hypotheses of each system with that rate of errors; ids name speakers."""
    rng = stream(seed, "sctk")
    texts: list[dict[str, list[str]]] = [{} for _ in range(1 + len(rates))]
    for i in range(count):
        name = f"s{i % 7}_u{i:04d}"
        ref = rng.choice(VOCABULARY, size=rng.integers(1, 20)).tolist()
        texts[0][name] = ref
        for system, rate in enumerate(rates, start=1):
            hyp: list[str] = []
            for word in ref:
                draw = rng.random() / rate
                # A system of its own, or the same mistake as others would make.
                wrong = str(rng.choice(VOCABULARY)) if rng.random() < 0.5 else f"{word}x"
                hyp += [] if draw < 0.3 else [wrong] if draw < 0.7 else [word]
                hyp += [str(rng.choice(VOCABULARY))] if 0.7 < draw < 1 else []
            texts[system][name] = hyp
    return texts


def _write_trn(path: Path, texts: Mapping[str, list[str]]) -> Path:
    path.write_text("".join(f"{' '.join(words)} ({name})\n" for name, words in texts.items()))
    return path


def _run(folder: Path, *command: object, text: str | None = None) -> str:
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=folder, input=text, capture_output=True, text=True, check=True
    ).stdout


def _sclite(folder: Path, texts: list[dict[str, list[str]]]) -> str:
    """The SGML of sclite's alignments of each system with the reference."""
    ref = _write_trn(folder / "ref.trn", texts[0])
    systems = []
    for number, hyp in enumerate(texts[1:]):
        systems += ["-h", _write_trn(folder / f"{number}.trn", hyp), "trn", f"sys{number}"]
    return _run(
        folder, SCLITE, "-s", "-r", ref, "trn", *systems, "-i", "rm", "-o", "sgml", "stdout"
    )


def _read_sgml(text: str) -> list[Alignments]:
    systems: list[Alignments] = []
    name = ""
    for line in text.splitlines():
        if line.startswith("<SYSTEM"):
            systems.append({})
        elif found := re.match(r'<PATH id="\((\w+)\)"', line):
            name = found[1]
            systems[-1][name] = ()
        elif re.match("[CSID],", line):
            cells = [entry.split(",")[1:] for entry in line.split(":")]
            pairs = ((word.strip('"') or None for word in cell) for cell in cells)
            systems[-1][name] = tuple((ref, hyp) for ref, hyp in pairs)
    return systems


def _write_sgml(systems: list[Alignments]) -> str:
    """Alignments as sclite writes them: what sc_stats reads."""
    lines = []
    for number, alignments in enumerate(systems):
        lines.append(
            f'<SYSTEM title="sys{number}" ref_fname="r" hyp_fname="h{number}" creation_date="now" '
            'format="2.4" frag_corr="FALSE" opt_del="FALSE" weight_ali="FALSE" weight_filename="">'
        )
        speakers = sorted({name.split("_")[0] for name in alignments})
        for speaker in speakers:
            lines.append(f'<SPEAKER id="{speaker}">')
            for name in (n for n in alignments if n.split("_")[0] == speaker):
                pairs = alignments[name]
                lines.append(f'<PATH id="({name})" word_cnt="{len(pairs)}" sequence="0">')
                lines.append(":".join(map(_sgml_pair, pairs)))
                lines.append("</PATH>")
            lines.append("</SPEAKER>")
        lines.append("</SYSTEM>")
    return "".join(f"{line}\n" for line in lines)


def _sgml_pair(pair: Pair) -> str:
    ref, hyp = pair
    kind = "I" if ref is None else "D" if hyp is None else "C" if ref == hyp else "S"
    return ",".join([kind, *("" if word is None else f'"{word}"' for word in pair)])


def _sc_stats(folder: Path, sgml: str) -> tuple[int, int, int, float, str]:
    """Segments, errors of both systems in them, z, and p as printed."""
    _run(folder, SC_STATS, "-p", "-t", "mapsswe", "-v", "-n", "long", text=sgml)
    long = (folder / "long.stats.mapsswe").read_text(errors="replace")
    _run(folder, SC_STATS, "-p", "-t", "mapsswe", "-u", "-n", "short", text=sgml)
    short = (folder / "short.stats.unified").read_text(errors="replace")
    segments = re.search(r"# segs: (\d+)", long)
    totals = re.search(r"^Totals +\d+ +(\d+) +(\d+)$", long, re.MULTILINE)
    z = re.search(r"Z Stat: +(-?[\d.]+)", long)
    p = re.search(r"\|\| +sys0 +\|[^|]*\| +\S+ +(<?[\d.]+) ", short)
    assert segments and totals and z and p
    return int(segments[1]), int(totals[1]), int(totals[2]), float(z[1]), p[1]


def _ours(alignments: list[Alignments]) -> MatchedPairs:
    first, second = alignments
    segments = [s for name in first for s in segment_errors(first[name], second[name])]
    return mapsswe(np.array(segments, dtype=np.int64).reshape(-1, 2))


def _agree(ours: MatchedPairs, theirs: tuple[int, int, int, float, str]) -> None:
    assert (ours.segments, ours.errors_a, ours.errors_b) == theirs[:3]
    assert ours.z is not None and ours.p_value is not None
    assert ours.z == pytest.approx(theirs[3], abs=0.00051)
    # sc_stats looks z up in a table of four digits at steps of 0.01, and prints three decimals.
    looked_up = math.erfc(math.floor(abs(ours.z) * 100) / 100 / math.sqrt(2))
    assert ours.p_value <= looked_up < ours.p_value + 0.0081
    if theirs[4].startswith("<"):
        assert looked_up < float(theirs[4][1:])
    else:
        assert looked_up == pytest.approx(float(theirs[4]), abs=0.00061)


CASES = [(0.2, 0.25), (0.3, 0.3), (0.02, 0.05), (0.6, 0.5), (0.12, 0.1)]


@pytest.mark.parametrize("rates", CASES)
def test_sc_stats_on_our_alignments(tmp_path: Path, rates: tuple[float, float]) -> None:
    ref, *hyps = _texts(1, rates)
    aligned = [{name: align(ref[name], hyp[name]) for name in ref} for hyp in hyps]
    _agree(_ours(aligned), _sc_stats(tmp_path, _write_sgml(aligned)))


@pytest.mark.parametrize("rates", CASES)
def test_sc_stats_on_the_alignments_of_sclite(tmp_path: Path, rates: tuple[float, float]) -> None:
    sgml = _sclite(tmp_path, _texts(2, rates))
    _agree(_ours(_read_sgml(sgml)), _sc_stats(tmp_path, sgml))


@pytest.mark.parametrize(
    ("ref", "first", "second"),
    [
        ("a b c d", "x b c y", "a b c d"),  # two right words part
        ("a b c d", "x b y d", "a b c d"),  # one does not
        ("a b c d", "x b q c y", "a b c d"),  # nor do two with an insertion between
        ("a b c d", "x b c y", "a z c d"),  # nor where the other system is wrong
        ("a b c d", "q a b c d q", "a b c d"),  # insertions at the ends
        ("a b", "q a b", "a b q"),
        ("a b", "a b", "a b q"),  # an insertion at the end of the second system alone
        ("a", "q a q", "a"),
        ("a b c", "", "a b"),
    ],
)
def test_where_segments_end(tmp_path: Path, ref: str, first: str, second: str) -> None:
    # Beside the utterance in question others, so that differences vary.
    other = ["k", "l", "m", "n"]
    fill = [
        ("s1_u1", "x l m n", "k l m n"),
        ("s1_u2", "k l m n", "x y m n"),
        ("s1_u3", "x l m n", "k l m n"),
    ]
    systems: list[Alignments] = [{}, {}]
    for system, index in ((0, 1), (1, 2)):
        systems[system] = {row[0]: align(other, row[index].split()) for row in fill}
        systems[system]["s2_u9"] = align(ref.split(), (first, second)[system].split())
    _agree(_ours(systems), _sc_stats(tmp_path, _write_sgml(systems)))


def test_without_variance_sc_stats_has_0_and_we_have_nothing(tmp_path: Path) -> None:
    ref = ["a", "b", "c", "d"]
    systems: list[Alignments] = [
        {f"s1_u{i}": align(ref, hyp.split()) for i in range(4)} for hyp in ("x b c d", "a b c d")
    ]
    assert _sc_stats(tmp_path, _write_sgml(systems)) == (4, 4, 0, 0.0, "1.000")
    ours = _ours(systems)
    assert (ours.segments, ours.errors_a, ours.errors_b, ours.z) == (4, 4, 0, None)


def _weighted(c: ErrorCounts) -> int:
    return 4 * c.substitutions + 3 * (c.insertions + c.deletions)


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_sclite_counts_the_same_errors_but_for_its_weights(tmp_path: Path, rate: float) -> None:
    texts = _texts(3, (rate, rate))
    ref, hyp, _ = texts
    theirs = _read_sgml(_sclite(tmp_path, texts))[0]
    assert theirs.keys() == ref.keys()
    ours = {name: count_pairs(align(ref[name], hyp[name])) for name in ref}
    for name, pairs in theirs.items():
        counts = count_pairs(pairs)
        assert [r for r, _ in pairs if r is not None] == ref[name]
        # We have the fewest errors, sclite the least sum of weights.
        assert ours[name].errors <= counts.errors
        assert _weighted(counts) <= _weighted(ours[name])
    a, b = total(ours.values()), total(count_pairs(pairs) for pairs in theirs.values())
    assert a.ref_words == b.ref_words
    assert a.insertions - a.deletions == b.insertions - b.deletions
    assert b.rate == pytest.approx(a.rate, abs=0.002)


def test_the_error_rate_that_sclite_prints_is_that_of_its_alignment(tmp_path: Path) -> None:
    texts = _texts(4, (0.2,))
    counts = total(count_pairs(pairs) for pairs in _read_sgml(_sclite(tmp_path, texts))[0].values())
    options = "-s -r ref.trn trn -h 0.trn trn -i rm -o rsum stdout"
    printed = _run(tmp_path, SCLITE, *options.split())
    found = re.search(r"\| Sum +\|([ \d]+)\|([ \d]+)\|", printed)
    assert found
    _, words = map(int, found[1].split())
    right, substituted, deleted, inserted, errors, _ = map(int, found[2].split())
    assert (words, errors) == (counts.ref_words, counts.errors)
    assert ErrorCounts(right, substituted, inserted, deleted) == counts
