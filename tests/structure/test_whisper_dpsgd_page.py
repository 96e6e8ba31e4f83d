"""The table of DP-SGD of Whisper's decoder in docs/results.md is that of the committed results."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.measures import interval_text, text_of
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "egs/speechocean762/results_dpsgd.jsonl"
SYSTEMS = {
    "public only": "whisper/public",
    "epsilon 1": "whisper/dpsgd_1",
    "epsilon 4": "whisper/dpsgd_4",
    "epsilon 8": "whisper/dpsgd_8",
    "clipped, without noise": "whisper/dpsgd_inf",
    "not private, the whole decoder": "whisper/nonprivate",
}
GROUPS = (("age_group", "adult"), ("age_group", "child"), ("gender", "f"), ("gender", "m"))


def figure(rows: list[Row], system: str, metric: str, group: str = "", item: str = "") -> Row:
    wanted = (system, metric, group, item, "")
    [found] = [
        r for r in rows if (r.system, r.metric, r.group, r.item, r.against) == wanted
        and r.part == "test"
    ]  # fmt: skip
    return found


def table(rows: list[Row]) -> str:
    lines = [["system", "test WER %", "95 % interval", "adults", "children", "women", "men",
              "epsilon", "audit finds"]]  # fmt: skip
    lines.append(["---", *("---:" for _ in lines[0][1:])])
    for label, system in SYSTEMS.items():
        wer = figure(rows, system, "wer")
        cells = [text_of("wer", wer.value), interval_text("wer", wer.low, wer.high)]
        cells += [text_of("wer", figure(rows, system, "wer", *g).value) for g in GROUPS]
        bounds = [r for r in rows if (r.system, r.metric) == (system, "audit_lower")]
        cells.append(text_of("epsilon", wer.epsilon) if bounds else "–")
        cells.append(text_of("audit_lower", bounds[0].value) if bounds else "–")
        lines.append([label, *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_table_is_that_of_the_results() -> None:
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert table(read_rows(RESULTS)) in page


def test_shares_of_the_gap() -> None:
    """What the text says: with a guarantee, of the way from public to not private."""
    rows = read_rows(RESULTS)
    public, best = (figure(rows, f"whisper/{n}", "wer").value for n in ("public", "nonprivate"))
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    shares = [
        (public - figure(rows, f"whisper/dpsgd_{n}", "wer").value) / (public - best)
        for n in ("1", "4", "8")
    ]
    text = "{:.0f}, {:.0f} and {:.0f} %".format(*(100 * share for share in shares))
    assert text in page


def test_insertions() -> None:
    rows = read_rows(RESULTS)
    systems = ("public", "dpsgd_8", "nonprivate")
    counts = [figure(rows, f"whisper/{name}", "insertions").value for name in systems]
    text = "{:.0f} insertions, epsilon 8 has {:.0f}, not private {:.0f}".format(*counts)
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    assert text in page
