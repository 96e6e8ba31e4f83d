"""Every benchmark writes rows, is run by benchmarks/run.sh and explained; the table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.measuring import measured, mebibytes, of_verb
from benchmarks.name_splice import read_text
from benchmarks.products import Products
from benchmarks.rows import Row, append_rows, command_line, read_rows
from benchmarks.scaling import fit
from benchmarks.table import table
from tests.support.shell_files import ROOT

FOLDER = ROOT / "benchmarks"
RUN = FOLDER / "run.sh"
NO_PEER = {
    "__init__",
    "measuring",
    "name_graphs",
    "paper_cost",
    "products",
    "rows",
    "scaling",
    "table",
}
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NO_PEER)


def row(ours: float, peer: float, better: str = "less", what: str = "a sum") -> Row:
    """A row of made figures."""
    return Row(what, ours, peer, "s", "a loop", better, "python benchmarks/x.py")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """benchmarks/run.sh with this interpreter's environment."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, "PRIVASR_ENV": "current", **variables}
    command = ["bash", str(RUN), *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_benchmark_writes_rows_is_run_and_explained(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert "flags(__doc__" in text
    assert re.search(r"append_rows\(\s*args\.out_rows", text)
    assert re.search(rf"^    {name}\)", RUN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert f"`{name}`" in (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_run_has_settings_for_exactly_its_names() -> None:
    text = RUN.read_text(encoding="utf-8")
    names = re.search(r"^names='([^']*)'", text, flags=re.MULTILINE)
    assert names is not None
    cases = re.findall(r"^    (\w+)\)", text, flags=re.MULTILINE)
    assert sorted(names[1].split()) == sorted(cases)
    assert set(SCRIPTS) == {name.removesuffix("_mini") for name in cases}


def test_verbs_of_benchmarks_are_there() -> None:
    found = set()
    for path in FOLDER.glob("*.py"):
        found |= set(re.findall(r"\b(?:run|of_verb)\(\s*\"([a-z_]+)\"", path.read_text("utf-8")))
    assert {"decode", "export", "train_lm"} <= found
    assert not found - {path.stem for path in (ROOT / "privasr_k2/bin").glob("*.py")}


def test_a_text_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"books\.txt\.gz: no text; .*--in-text"):
        read_text(tmp_path / "books.txt.gz", 1, 1)


def test_ratio_is_how_many_times_as_good() -> None:
    assert row(2.0, 6.0).ratio == 3.0
    assert row(2.0, 6.0, "more").ratio == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "figures", [(0.0, 1.0), (1.0, float("nan")), (float("inf"), 1.0), (-1.0, 1.0)]
)
def test_a_figure_that_has_no_ratio_is_refused(figures: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        row(*figures)


def test_costs_are_fitted_by_a_line_that_starts_at_no_less_than_nothing() -> None:
    line = fit([1, 2, 4], [3.0, 5.0, 9.0])
    assert (line.fixed, line.rate, line.off) == (1.0, 2.0, 0.0) and line(10) == 21.0
    assert fit([1, 2, 4], [1.0, 4.0, 16.0]).fixed == 0.0
    assert fit([1, 2, 4], [1.0, 4.0, 16.0]).off > 0.3


def filled(mebibytes: int) -> int:
    """Fill so much memory, and leave it."""
    return len(np.ones(mebibytes << 20, dtype=np.uint8))


def filling(ready: int, more: int) -> partial[int]:
    """Work of a process that has filled some memory before."""
    filled(ready)
    return partial(filled, more)


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="no /proc/self/clear_refs"
)
def test_memory_is_what_the_work_adds_in_a_process_of_its_own() -> None:
    here = np.ones(300 << 20, dtype=np.uint8)
    taken = measured(filling, 0, 64)
    assert 60 < taken.grown < 90
    assert taken.peak < mebibytes() - 100, "the memory of the parent counts"
    assert 60 < measured(filling, 128, 64).grown < 90
    assert len(here)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc/self/status")
def test_a_verb_tells_what_it_took() -> None:
    taken = of_verb("prepare_corpus", "--help")
    assert taken.seconds > 0 and taken.processor > 0 and 5 < taken.peak < 2000


def test_a_verb_that_fails_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit, match="--nonsense"):
        of_verb("prepare_corpus", "--nonsense", "1")


def test_better_is_less_or_more() -> None:
    with pytest.raises(ValueError, match="less or more"):
        row(1.0, 1.0, "faster")


def test_rows_are_appended_and_read(tmp_path: Path) -> None:
    path, rows = tmp_path / "new" / "rows.jsonl", [row(1.0, 2.0), row(3.0, 4.0, "more")]
    assert read_rows(path) == []
    append_rows(path, rows)
    append_rows(path, rows[:1])
    assert read_rows(path) == [*rows, rows[0]]
    append_rows(None, rows)


def test_the_command_has_no_place_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--out-rows", "/a/b", "--lists", "3", "--nbest", f"{ROOT}/egs/a b"]
    monkeypatch.setattr(sys, "argv", [str(FOLDER / "x.py"), *words])
    assert command_line() == "python benchmarks/x.py --lists 3 --nbest 'egs/a b'"


def test_the_table_marks_and_lists_where_the_peer_is_ahead() -> None:
    behind, ahead = row(2.0, 1.0, what="slow|er"), row(1.0, 2500.0, what="faster")
    page = table([behind, ahead], ["machine: M"], ["x: no data"], quick=False)
    assert "| slow\\|er | 2 s | 1 s | **0.5** | a loop | `python benchmarks/x.py` |" in page
    assert "| faster | 1 s | 2,500 s | 2,500 |" in page
    assert "- machine: M" in page and "- x: no data" in page and "No measurement" not in page
    last = page.rstrip().split("\n\n")[-1]
    assert "slow|er" in last and "faster" not in last


def test_the_table_says_what_it_is_not() -> None:
    page = table([row(1.0, 1.0)], [], [], quick=True)
    assert "No measurement" in page and page.endswith("The peer is ahead in no row.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "scoring nonsense"), "nonsense"),
        (("--quick", "yes"), "true or false"),
        (("--limit", "0"), "above 0"),
        (("--sizes", "1"), "an option"),
        (("--out",), "a value"),
    ],
)
def test_run_refuses(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and message in done.stderr


def test_what_is_missing_or_fails_stands_in_the_table(tmp_path: Path) -> None:
    for name in ("books/books.txt.gz", "ami/turns.tsv.gz"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("no gzip")
    done = run(
        *("--only", "first_pass lm_adaptation", "--quick", "true"),
        *("--work-dir", str(tmp_path), "--out", str(tmp_path / "t.md")),
        PRIVASR_SHARED_DATA=str(tmp_path),
    )
    assert done.returncode == 1, done.stderr
    page = (tmp_path / "t.md").read_text(encoding="utf-8")
    weights = f"{tmp_path}/exp/ctc_tdnn_phone/weights.json"
    assert f"- first_pass: no {weights}; ./run.sh mini ctc makes it" in page
    assert "- lm_adaptation, or a part of it: FAILED with 1" in page
    assert "[2/2] lm_adaptation" in done.stdout


def test_products_are_counted_by_their_factors() -> None:
    layer = torch.nn.Linear(3, 4)
    with Products() as products:
        for _ in range(2):
            layer(torch.ones(5, 3)).sum().backward()
    found = {(left[0], right[0]): n for (left, right), n in products.counts.items()}
    # Forward, and the gradient of the weights: the input wants none.
    assert found == {((5, 3), (3, 4)): 2, ((4, 5), (5, 3)): 2}
    assert products.seconds() > 0


def test_the_limit_of_a_federated_round_is_that_of_the_results() -> None:
    rows = [line.split(" | ") for line in (FOLDER / "RESULTS.md").read_text().splitlines()]
    of_round = [row for row in rows if "federated_round.py" in row[-1]]
    [loop] = [row for row in of_round if "plain loop" in row[4]]
    [limit] = [row for row in of_round if "a limit" in row[4]]
    products, most = float(limit[2].split()[0]), float(loop[2].split()[0])
    page = " ".join((ROOT / "docs/benchmarks.md").read_text().split())
    assert f"{loop[3]} times as fast as the loop" in page
    assert f"take {100 * products / float(limit[1].split()[0]):.0f} % of the round" in page
    assert f"it would be {most / products:.2f} times as fast" in page


def test_why_the_first_pass_is_behind_is_that_of_the_results() -> None:
    rows = [line.split(" | ") for line in (FOLDER / "RESULTS.md").read_text().splitlines()]
    searches = [row for row in rows if re.match(r"\| first pass, .*: search$", row[0])]
    [alone] = [row for row in rows if row[0].endswith("intersect_dense_pruned alone")]
    first, [same] = searches[0], [row for row in searches if row[2] == alone[2]]
    ours, whole, peer = (float(one.split()[0]) for one in (alone[1], same[1], alone[2]))
    page = " ".join((ROOT / "docs/benchmarks.md").read_text().split())
    assert f"and {float(first[1].split()[0]) / float(first[2].split()[0]):.2f} is measured" in page
    assert f"`intersect_dense_pruned` takes {100 * ours / whole:.0f} % of our search" in page
    assert f"It alone takes {ours / peer:.2f} times kaldi_decoder's whole search" in page
    assert ours / peer > 1.5


def test_words_of_sherpa_onnx_are_those_of_the_results() -> None:
    rows = [line.split(" | ") for line in (FOLDER / "RESULTS.md").read_text().splitlines()]
    [row] = [row for row in rows if "sherpa.py" in row[-1]]
    speech, same, count = re.findall(r"\d+", row[0])
    assert int(same) >= 0.995 * int(count) and int(count) > 500
    page = " ".join((ROOT / "docs/export.md").read_text().split())
    assert f"Of all {count} test utterances" in page and f"the same words in {same}." in page
    ours, theirs = (float(one.split()[0]) for one in row[1:3])
    wanted = f"ours takes {ours:.0f} s of processor time for {int(speech):,} s of speech"
    assert f"{wanted}, sherpa-onnx {theirs:.0f} s" in page
