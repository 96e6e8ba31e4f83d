from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.bin import report_classlm
from privasr_k2.errors import ConfigError, DataError, PrivacyError
from privasr_k2.fileio import write_json, write_jsonl, write_text
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.ledger import Entry, Ledger
from privasr_k2.privacy.spending import Spending
from privasr_k2.scoring.classlm_findings import HOLDS, NO_LOSS, NOT, UNSURE, Measure, findings
from privasr_k2.scoring.classlm_published import FIGURES
from privasr_k2.scoring.classlm_results import System
from tests.unit.scoring.classlm_folders import TREATMENT, write_perplexity, write_system, write_texts

#: system -> lost last words, lost names of 60 each, perplexity; 300 words.
MADE = {
    "sanitized/M1": (36, 30, 121.0),
    "sanitized/M2": (27, 12, 103.0),
    "original/M1": (12, 6, 82.0),
    "original/M2": (24, 6, 74.0),
    "adapt_12/M1_eq1": (20, 12, 109.0),
    "adapt_12/M1_eq2": (36, 31, 122.0),
    "adapt_12/M2_eq1": (26, 12, 94.0),
    "direct_12/M1": (48, 12, 108.0),
    "mixed/M1_M2": (18, 0, 95.0),
    "mixed/M1_M2_exact": (15, 0, 92.0),
    "mixed/M1_M2_M4": (3, 0, 86.0),
}
SET = ("--set", "command=./run.sh toy classlm", "acoustic_model=CTC", "tagger=spacy")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Make all inputs, and the report of them."""
    monkeypatch.chdir(tmp_path)
    exp = Path("exp")
    write_texts(Path("data/text"))
    write_perplexity(exp, {name: ppl for name, (*_, ppl) in MADE.items()})
    about = {"name": "toy", "synthetic": True, "scored_units": {}, "entities": "spacy"}
    write_json(Path("data/manifests/corpus.json"), about)

    def call(*more: str, speech: bool = True) -> str:
        scores = [str(write_system(exp, name, *made[:2])) for name, made in MADE.items()] if speech else []
        words = (
            *("--in-texts", "data/text", "--in-perplexity", "exp/perplexity_test.json"),
            *("--in-scores", *scores, "--in-manifests", "data/manifests", "--out-report", "exp/RESULTS.md"),
            *(more or SET),
        )
        monkeypatch.setattr(sys, "argv", ["report_classlm.py", *words])
        report_classlm.main()
        return Path("exp/RESULTS.md").read_text()

    return call


def _section(text: str, title: str) -> str:
    [found] = [part for part in re.split(r"^## ", text, flags=re.M) if part.startswith(title)]
    return found


def _cells(text: str) -> list[tuple[str, ...]]:
    """The rows of the tables in a text."""
    lines = (line for line in text.splitlines() if line.startswith("|"))
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_the_tables_of_the_paper(run: Callable[..., str], capsys: Any) -> None:
    text = run()
    assert capsys.readouterr().out.strip() == text.strip()
    assert text.startswith("# Results: toy, language models from sanitized text\n\n**Synthetic speech.**")
    assert "```bash\n./run.sh toy classlm\n```" in text
    assert _section(text, "Table 1").splitlines()[:7] == [
        "Table 1: texts",
        "",
        "| part       | % of background | utterances | users | unique words | words | PER (different) |",
        "|:-----------|----------------:|-----------:|------:|-------------:|------:|----------------:|",
        "| background |               – |      1,200 |     6 |           99 | 6,000 |       1,070 (3) |",
        "| adapt_12   |           12.35 |      1,200 |     6 |           99 | 6,000 |       1,070 (3) |",
        "| dev        |               – |      1,200 |     6 |           99 | 6,000 |       1,070 (3) |",
    ]
    assert _section(text, "Table 2").split("\n\n")[1].splitlines() == [
        "| system          | WER % (sanitized) | PPL (sanitized) | WER % (original) | PPL (original) |",
        "|:----------------|------------------:|----------------:|-----------------:|---------------:|",
        "| M1 word n-gram  |             22.00 |          121.00 |             6.00 |          82.00 |",
        "| M2 class n-gram |             13.00 |          103.00 |            10.00 |          74.00 |",
    ]
    assert _section(text, "Table 3").split("\n\n")[1].splitlines() == [
        "| system                      | WER % (12 %) | PPL (12 %) |",
        "|:----------------------------|-------------:|-----------:|",
        "| M1 word n-gram, equation 1  |        10.67 |     109.00 |",
        "| M1 word n-gram, equation 2  |        22.33 |     122.00 |",
        "| M2 class n-gram, equation 1 |        12.67 |      94.00 |",
    ]
    assert "| M1 word n-gram |        20.00 |     108.00 |" in _section(text, "Table 4")
    mixed = _section(text, "Table 5")
    assert _cells(mixed.split("As published")[0])[2:] == [
        ("M1 + M2, one pass (root models mixed)", "6.00", "95.00"),
        ("M1 + M2, exactly, on its lists", "5.00", "92.00"),
        ("M1 + M2 + M4, exactly, on the lists of M1 + M2", "1.00", "86.00"),
    ]
    assert 'The rows that say "exactly" are eq. 3' in mixed
    assert ("M1 + M2 + M4", "29.4", "86") in _cells(mixed.split("As published")[1])
    assert 'rows that say "exactly"' not in _section(text, "Table 4")


def test_published_figures_stand_below_each_table(run: Callable[..., str]) -> None:
    text = run(speech=False)
    for number, cells in (
        (1, ("All", "5,991", "133,892", "13,079", "987,153")),
        (2, ("M2 class n-gram", "30.2", "103", "29.3", "74")),
        (3, ("M4 LSTM on the lists of M1", "30.1", "95", "29.9", "91", "29.8", "85")),
        (4, ("M1 word n-gram", "31.9", "116", "31.4", "107", "29.6", "90")),
        (5, ("M1 + M2 + M4", "29.4", "86")),
    ):
        found = _section(text, f"Table {number}")
        published = found.split(f"As published (turan2022, table {number}: AMI, headset microphones,")[1]
        assert cells in _cells(published)
    assert len(FIGURES) == 8 * 4 + 3


def test_what_it_shows(run: Callable[..., str]) -> None:
    said = _section(run(), "What it shows")
    for line in (
        "- Sanitizing hurts M1 most and M2 least, by WER: **holds**. M1 +266.7 % (6.00 to 22.00, p <0.001); "
        "M2 +30.0 % (10.00 to 13.00, p 0.",
        "- Sanitizing hurts M1 most and M2 least, by perplexity: **holds**. M1 +47.6 % (82.00 to 121.00); "
        "M2 +39.2 % (74.00 to 103.00). Nothing of it is tested.",
        "Tested is M1 against M2 alone, no other place in the order: M1's relative increase",
        "- Adapting to 12 % recovers part of what sanitizing costs, by WER: **holds** "
        "for M1_eq1 (22.00 to 10.67, p <0.001, 71 % of the loss); "
        "**not significant** for M2_eq1 (13.00 to 12.67, p 0.828, 11 % of the loss); "
        "**does not hold** for M1_eq2 (22.00 to 22.33, p 0.828).",
        "- Adapting to 12 % is better than training with the same text at once, by WER: **holds** for M1_eq1",
        "same text at once, by perplexity: **does not hold** for M1_eq1 (108.00 to 109.00), M1_eq2",
        "- M1 + M2 + M4 is best of all that see no more original text, by WER: **holds**: 1.00; next is "
        "mixed/M1_M2_exact (5.00 to 1.00, p <0.001).",
        "- Mixing probabilities exactly (eq. 3) is better than mixing root models, by WER: **not "
        "significant** for M1_M2_exact (6.00 to 5.00, p 0.",
        "- Mixing probabilities exactly (eq. 3) is better than mixing root models, by perplexity: **holds** "
        "for M1_M2_exact (95.00 to 92.00).",
        "- M2 recognizes more words of names than M1 of the same setting, recall in %: **holds** for "
        "sanitized/M2 (50.00 to 80.00, p 0.006); **does not hold** for original/M2 (90.00 to 90.00, "
        "p 1.000), adapt_12/M2_eq1 (80.00 to 80.00, p 1.000).",
    ):
        assert line in said


def test_all_systems_and_their_comparisons(run: Callable[..., str]) -> None:
    text = run()
    rows = _cells(_section(text, "All systems"))
    assert rows[0] == (
        *("system", "WER %", "95 % interval", "no path", "names, recall %", "names, 95 % interval"),
        *("names, precision %", "PPL", "PPL with OOV"),
    )
    assert rows[2][:2] == ("sanitized/M1", "22.00") and rows[2][6:] == ("100.00", "121.00", "122.00")
    assert [row[0] for row in rows[2:13]] == list(MADE)
    assert rows[12][-2:] == ("86.00", "87.00")
    compared = _section(text, "Comparisons")
    assert "| sanitized/M1      | original/M1       |         +16.00 |" in compared
    assert "| mixed/M1_M2_exact | mixed/M1_M2       |          -1.00 |" in compared
    many = sum(line.startswith("| ") for line in compared.split("Recall of")[0].splitlines()) - 1
    assert f"Holm's correction is over the {many} comparisons of the table." in text
    assert "Holm's correction is over the 3 comparisons of that table." in text


def test_how_to_read_it(run: Callable[..., str]) -> None:
    notes = _section(run(), "How to read it")
    for part in (
        f"- Perplexity: {TREATMENT}. Test has 300 words and 60 sentence ends; 2 words are OOV.",
        "The acoustic model is trained with CTC; that of the paper is an LF-MMI (chain) TDNN.",
        "were found automatically (spacy)",
        "Names in the references are automatic (spacy)",
        "adaptation text that sanitizing does not protect",
        "no epsilon covers it",
        "With so few speakers",
        "999 draws of 6 speakers",
        "trained with speech of 2 users of the adaptation text",
        "after a name that the class has given M1 knows none, after a name that was read as plain words M2",
        "those of M1 + M2 (one pass), as exact mixtures do",
        "that of an adapted class LM is of text with tags for names",
        "Perplexities are compared by their figures, without a test.",
    ):
        assert part in notes
    static = ("mixed/M1_M2", "mixed/M1_M2_exact")
    write_perplexity(Path("exp"), {name: ppl for name, (*_, ppl) in MADE.items() if name not in static})
    assert "after a name that the class has given" not in _section(run(speech=False), "How to read it")
    write_perplexity(Path("exp"), {name: ppl for name, (*_, ppl) in MADE.items()})
    other = _section(run("--set", "command=x", "acoustic_model=LF-MMI", "tagger=gold"), "How to read it")
    assert "trained with LF-MMI, as that of the paper" in other
    assert "sanitized are gold annotations" in other


def test_columns_stand_by_size_though_the_first_model_lacks_one(run: Callable[..., str]) -> None:
    write_perplexity(Path("exp"), {"adapt_9/M2_eq1": 1, "adapt_12/M1_eq1": 2, "adapt_15/M2_eq1": 3})
    found = _cells(_section(run(speech=False), "Table 3").split("As published")[0])
    assert found[0] == ("system", "PPL (9 %)", "PPL (12 %)", "PPL (15 %)")
    assert found[2:] == [
        ("M2 class n-gram, equation 1", "1.00", "–", "3.00"),
        ("M1 word n-gram, equation 1", "–", "2.00", "–"),
    ]


def test_without_speech_there_are_perplexities_only(run: Callable[..., str]) -> None:
    text = run(speech=False)
    assert "**No speech.**" in text and "Synthetic" not in text
    assert "by WER" not in text and "## Comparisons" not in text and "MAPSSWE" not in text
    assert _section(text, "Table 2").split("\n\n")[1].splitlines()[2] == (
        "| M1 word n-gram  |          121.00 |          82.00 |"
    )
    assert "by perplexity: **holds** for M1_eq1 (121.00 to 109.00, 31 % of the loss), M2_eq1" in text


def _entry(release: str, keep: float) -> Entry:
    event = events.randomized_response(1 - keep, 1000)
    spending = Spending(
        data="toy/train", released="sanitized text: names are replaced word by word", unit="utterance",
        units=None,
        relation=Relation.REPLACE_ONE, event=event, sampling="all texts once", delta=1e-6,
        does_not_cover=("Names that were not found.",),
    )  # fmt: skip
    return Entry(release, "f", spending, "c", "t")


def test_privacy_and_entities_are_shown_with_what_is_not_covered(run: Callable[..., str]) -> None:
    Ledger(Path("a.json")).append(_entry("a" * 32, 0.1))
    entities = {
        "note": "For the owner of the text only.",
        "classes": {"PER": {"mentions": 1234, "words": 2000, "off_list_words": 77, "changed_words": 99}},
        "gold": {
            "PER": {"gold_spans": 8, "agreed_spans": 55, "gold_words": 10, "residual_percent": 12.5,
                    "residual_words": 3, "span_recall_percent": None, "span_precision_percent": 62.5}
        },
        "privacy": {
            "keep": 0.1, "consistency": "mention", "epsilon_per_word": {"PER": 4.71951},
            "utterances_per_user": None, "epsilon_per_mention": 9.43902, "epsilon_per_utterance": 28.31705,
            "epsilon_per_utterance_at_delta_1e-06": "25.6",
        },
    }  # fmt: skip
    write_json(Path("entities.json"), entities)
    text = run("--in-privacy", "a.json", "a.json", "--in-entities", "entities.json", *SET, speech=False)
    found = _section(text, "Names, and what sanitizing is worth")
    tables = _cells(found)
    assert tables[0] == ("class", "mentions", "words") and tables[2] == ("PER", "1,234", "2,000")
    assert tables[3] == (
        *("class", "gold names", "recall %", "precision %", "gold words", "residual words", "residual %"),
    )
    assert tables[5] == ("PER", "8", "–", "62.50", "10", "3", "12.50")
    # What is for the owner alone is in entities.md.
    assert not re.search("off list|changed|owner|77|99|55", found)
    assert "taken from the texts without noise" in found and "not private: names that were not found" in found
    row = next(line for line in found.splitlines() if "toy/train |" in line)
    # ln(1 + 1000 * 0.1 / 0.9) = 4.7195, rounded up; the same release twice counts once.
    assert " 4.72 |" in row and "| utterance |" in row.replace("  ", "") and " 1e-06 |" in row
    assert row.rstrip(" |").endswith(" 1")
    assert "- mechanism, toy/train: sanitized text: names are replaced word by word\n" in found
    assert "- not covered, toy/train: Names that were not found.\n" in found
    assert found.endswith(
        "- keep: 0.1\n- consistency: mention\n- utterances per user: no limit\n"
        "- epsilon per word, by class: PER 4.72\n"
        "- epsilon per mention: 9.44\n- epsilon per utterance: 28.4\n"
        "- epsilon per utterance at delta 1e-06: 25.6\n\n"
    )


def test_where_names_of_test_are_found(run: Callable[..., str]) -> None:
    for part, lines in (
        ("background", ["ann met rex", "eve"]),
        ("test", ["ann's met bob", "eve met zoe"]),
    ):
        spans = [[[0, 1, "PER"], [2, 3, "MISC"]], [[0, 1, "PER"]]]
        records = [
            {
                "id": f"{part}{n}",
                "user": "u",
                "text": text,
                "entities": spans[n if part == "background" else 0],
            }
            for n, text in enumerate(lines)
        ]
        write_jsonl(Path(f"data/text/{part}.jsonl.gz"), records)
    write_text(Path("lists/per.txt"), "Ann\nBob\nJim\n")
    write_text(Path("lists/misc.txt"), "Zoe\nTim\n")
    text = run("--in-public-lists", "lists", *SET, speech=False)
    assert _cells(_section(text, "Names, and"))[2:] == [
        ("MISC", "2", "100.00", "50.00", "0.00"),
        ("PER", "2", "50.00", "50.00", "100.00"),
        ("all", "4", "75.00", "50.00", "50.00"),
    ]
    assert (
        "- Of the 4 words of test's names 75.00 % are on the public lists, which sanitized text draws from, "
        "and 50.00 % stand in names of the background"
    ) in _section(text, "What it shows")
    assert "public lists" not in run(speech=False)


def test_choices_are_shown(run: Callable[..., str]) -> None:
    write_json(Path("exp/adapt_12/M1_eq1.json"), {"equation": 1, "beta": 0.5, "tried": []})
    text = run("--in-choices", "exp/adapt_12/M1_eq1.json", *SET, speech=False)
    assert "## Chosen on dev\n\nFast marginal adaptation:\n\n| system          | equation |" in text


def test_bad_inputs_are_named(run: Callable[..., str]) -> None:
    with pytest.raises(PrivacyError, match=r"none\.json: expected the ledger of a release"):
        run("--in-privacy", "none.json", *SET)
    write_json(Path("entities.json"), [])
    with pytest.raises(DataError, match=r"entities\.json: expected what report_entities writes"):
        run("--in-entities", "entities.json", *SET)
    with pytest.raises(ConfigError, match="tagger"):
        run("--set", "command=x", "acoustic_model=CTC", "tagger=''")
    with pytest.raises(ConfigError, match="acoustic_model"):
        run("--set", "command=x", "tagger=spacy")
    write_perplexity(Path("exp"), {"sanitized/M1": 2.0})
    with pytest.raises(DataError, match="every system of --in-scores, found none of adapt_12/M1_eq1, "):
        run()
    write_json(Path("data/text/about.json"), {"sizes": {}, "parts": {}})
    write_perplexity(Path("exp"), {"sanitized/M1": 2.0})
    with pytest.raises(DataError, match="--in-texts"):
        run(speech=False)


def _said(values: dict[str, float], p_values: dict[tuple[str, str], float] | None) -> list[str]:
    systems = {name: System(*name.split("/")) for name in values}
    tested = p_values and {frozenset(systems[name] for name in pair): p for pair, p in p_values.items()}
    measure = Measure("WER", {systems[name]: value for name, value in values.items()}, tested)
    return findings([measure], None, {}, {})


@pytest.mark.parametrize(
    ("own", "p_value", "verdict"),
    [(9.0, 0.01, HOLDS), (9.0, 0.05, UNSURE), (9.0, None, UNSURE), (10.0, 1.0, NOT), (11.0, 0.01, NOT)],
)
def test_the_mixture_is_best_only_if_significantly(own: float, p_value: float, verdict: str) -> None:
    values = {"mixed/M1_M2_M4": own, "sanitized/M2": 10.0, "original/M1": 1.0}
    said = _said(values, {("mixed/M1_M2_M4", "sanitized/M2"): p_value})[-1]
    assert said.startswith("M1 + M2 + M4 is best") and f"**{verdict}**" in said
    assert "original" not in said.split("**")[2]


def test_an_order_that_is_not_tested_is_not_significant() -> None:
    values = {"sanitized/M1": 20.0, "sanitized/M2": 11.0, "original/M1": 10.0, "original/M2": 10.0}
    pairs = {("sanitized/M1", "original/M1"): 0.001, ("sanitized/M2", "original/M2"): 0.4}
    assert f"**{UNSURE}**" in _said(values, pairs)[0]
    assert f"**{HOLDS}**" in _said(values, None)[0]
    assert f"**{NOT}**" in _said({**values, "sanitized/M2": 21.0}, pairs)[0]
    assert f"**{NOT}**" in _said({**values, "sanitized/M1": 9.0, "sanitized/M2": 8.0}, pairs)[0]
    assert f"**{NOT}**" in _said({**values, "sanitized/M4": 30.0, "original/M4": 10.0}, None)[0]


def _verdict(title: str, values: dict[str, float], p_values: dict[tuple[str, str], float] | None) -> str:
    [line] = [line for line in _said(values, p_values) if line.startswith(title)]
    return line.partition(": ")[2]


def test_where_nothing_was_lost_nothing_is_recovered() -> None:
    adapted = {"sanitized/M4": 6.6, "adapt_12/M4": 6.44}
    for original in (7.44, 6.6):
        found = _verdict("Adapting to 12 % recovers", {**adapted, "original/M4": original}, None)
        assert found == f"**{NO_LOSS}** for M4 (6.60 to 6.44, original text {original:.2f})."
    found = _verdict("Adapting to 12 % recovers", {**adapted, "original/M4": 6.2}, None)
    assert found == f"**{HOLDS}** for M4 (6.60 to 6.44, 40 % of the loss)."
    assert _verdict("Adapting to 12 % recovers", adapted, None) == "not measured."


def test_a_loss_that_is_not_significant_is_not_recovered_significantly() -> None:
    values = {"sanitized/M4": 6.6, "adapt_12/M4": 6.44, "original/M4": 6.2}
    recovered, lost = ("adapt_12/M4", "sanitized/M4"), ("sanitized/M4", "original/M4")
    for p_lost, verdict in ((0.3, UNSURE), (0.01, HOLDS)):
        found = _verdict("Adapting to 12 % recovers", values, {recovered: 0.01, lost: p_lost})
        assert found.startswith(f"**{verdict}** for M4 (6.60 to 6.44, p 0.010, 40 % of the loss")
        assert ("which is not significant: 6.20 to 6.60, p 0.300" in found) == (verdict == UNSURE)


def test_what_was_not_measured_is_said_to_be_so() -> None:
    said = _said({"sanitized/M1": 20.0}, None)
    assert len(said) == 5 and all(line.endswith("not measured.") for line in said)
