"""The table of DP-SGD of Whisper's decoder in docs/results.md is that of the committed results."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.measures import interval_text, text_of
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "egs/speechocean762/results_dpsgd.jsonl"
OWN = ROOT / "egs/speechocean762/results_encoder.jsonl"
SYSTEMS = {
    "public: as downloaded, our search": "whisper/imported",
    "public: trained on LibriSpeech": "whisper/public",
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


def own() -> float:
    """Whisper's own search on the same test utterances, of recipe encoder's table."""
    return float(figure(read_rows(OWN), "whisper", "wer").value)


def wer(rows: list[Row], system: str) -> float:
    return float(figure(rows, f"whisper/{system}", "wer").value)


def test_shares_of_the_gap() -> None:
    """What the text says: with a guarantee, of the way from the best public to not private."""
    rows = read_rows(RESULTS)
    public = min(own(), wer(rows, "imported"), wer(rows, "public"))
    epsilons = ("1", "4", "8", "inf")
    shares = [
        100 * (public - wer(rows, f"dpsgd_{e}")) / (public - wer(rows, "nonprivate"))
        for e in epsilons
    ]
    text = "{:.0f}, {:.0f} and {:.0f} % of the gap, without noise {:.0f} %".format(*shares)
    assert text in words_of_page()


def test_what_the_public_rows_have_for_mistakes() -> None:
    rows = read_rows(RESULTS)
    counts = [
        figure(rows, f"whisper/{name}", "insertions").value
        for name in ("imported", "public", "dpsgd_8", "nonprivate")
    ]
    text = "{:.0f} insertions as downloaded, {:.0f} trained on LibriSpeech, {:.0f} at epsilon 8"
    assert f"{text.format(*counts)}, {counts[-1]:.0f} not private" in words_of_page()


def words_of_page() -> str:
    return " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
