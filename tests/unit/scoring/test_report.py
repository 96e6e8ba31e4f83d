from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.corpus_info import UNKNOWN, CorpusInfo
from privasr_k2.scoring.entities import ALL, EntityCounts, EntityScore
from privasr_k2.scoring.hypotheses import Utterance, Weights
from privasr_k2.scoring.report import (
    ReportOptions,
    compare_scores,
    entity_rows,
    p_text,
    read_chosen,
    report,
    result_row,
    table,
    versions,
)
from privasr_k2.scoring.results import Score, ScoreOptions, read_score, score_part, score_utterances

POINT = Weights(0.5, 0.0)
OPTIONS = ScoreOptions(role="test", num_replicates=5000, confidence=0.95, seed=1)
PLAIN = ReportOptions(command="")


def _write(folder: Path, hyps: list[str | None], ref: str = "a b c d", role: str = "test") -> Score:
    utterances = [
        Utterance(
            f"u{i}",
            "test_x",
            f"s{i % 3}",
            tuple(ref.split()),
            h is None,
            {} if h is None else {POINT: tuple(h.split())},
        )
        for i, h in enumerate(hyps)
    ]
    scored = score_utterances(utterances, POINT, {})
    refs = [u.ref for u in utterances]
    part = score_part("test_x", scored, OPTIONS, raw_refs=refs, vocabulary={"a", "b", "c"})
    score = Score(folder, folder.parent.name, role, POINT, OPTIONS, {"test_x": part})
    write_json(folder / "wer.json", score.to_dict())
    write_jsonl(folder / "utterances.jsonl", [u.to_dict() for u in scored])
    return read_score(folder)


def test_a_row_says_what_was_counted(tmp_path: Path) -> None:
    score = _write(tmp_path / "ctc" / "score_test", ["a b c d", "a x c d e", None])
    assert result_row(score, "test_x") == {
        "system": "ctc",
        "part": "test_x",
        "utterances": "3",
        "words": "12",
        "WER %": "50.00",
        "95 % interval": "0.00 to 100.00",
        "ins": "1",
        "del": "4",
        "sub": "1",
        "speakers (lowest to highest WER %)": "3 (0.0 to 100.0)",
        "no path": "1",
        "OOV %": "25.00",
    }


def test_all_lines_of_a_table_are_equally_wide_and_text_is_left_aligned() -> None:
    lines = table([{"part": "dev", "n": "1"}, {"part": "a|b", "n": "1,000", "epsilon": "8"}]).splitlines()
    assert lines == [
        "| part |     n | epsilon |",
        "|:-----|------:|--------:|",
        "| dev  |     1 |       – |",
        "| a\\|b | 1,000 |       8 |",
    ]


def test_the_report_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    scores = [_write(tmp_path / "ctc" / "score_test", ["a b c d", "a x c d", None])]
    options = ReportOptions(command="./run.sh mini ctc")
    corpus = CorpusInfo("mini", True, {})
    text = report(scores, [], [], corpus, options)
    assert text == report(scores, [], [], corpus, options)
    assert text.startswith("# Results: mini, ctc\n")
    assert "**Synthetic speech.** The corpus `mini`" in text
    assert "```bash\n./run.sh mini ctc\n```" in text
    assert "- ctc, test_x: no path was found, and nothing recognized, in `u2`." in text
    assert f"Versions: {versions()}." in text
    assert str(tmp_path) not in text


def test_real_speech_without_a_command_says_neither(tmp_path: Path) -> None:
    scores = [_write(tmp_path / "ctc" / "score_test", ["a b c d", "a x c d"])]
    text = report(scores, [], [], CorpusInfo("an4", False, {}), PLAIN)
    assert text.startswith("# Results: an4, ctc\n\n| system")
    assert "ynthetic" not in text
    assert "Made by" not in text


def test_one_speaker_has_no_interval_and_the_report_says_why(tmp_path: Path) -> None:
    text = report([_write(tmp_path / "ctc" / "score_test", ["a b c d"])], [], [], UNKNOWN, PLAIN)
    assert "ctc, test_x: no interval over speakers: one speaker only." in text
    assert "too narrow" not in text


def test_few_speakers_bring_a_warning(tmp_path: Path) -> None:
    text = report([_write(tmp_path / "ctc" / "score_test", ["a b c d"] * 3)], [], [], UNKNOWN, PLAIN)
    assert "- test_x: with 3 speakers the interval is too narrow as a rule." in text


def test_a_baseline_adds_a_p_value(tmp_path: Path) -> None:
    ours = _write(tmp_path / "new" / "score_test", ["a b c d"] * 20 + ["x b c d"] * 2)
    theirs = _write(tmp_path / "old" / "score_test", ["x b c d"] * 20 + ["a b c d"] * 2)
    dev = _write(tmp_path / "new" / "score_dev", ["a b c d"], role="dev")
    text = report([dev, ours], [], [theirs], UNKNOWN, PLAIN)
    assert "p against old" in text
    # 20 segments with d = -1 and 2 with d = 1: far from chance.
    rows = [line for line in text.splitlines() if line.startswith("| new ")]
    assert [row.rstrip(" |").split()[-1] for row in rows] == ["–", "<0.001"]
    assert "new against old, test_x: 2 and 20 errors in 22 segments" in text
    assert "rough" in text


def test_p_values_of_several_systems_allow_for_their_number(tmp_path: Path) -> None:
    good, fair = ["x b c d"] + ["a b c d"] * 59, ["x b c d"] * 5 + ["a b c d"] * 55
    theirs = _write(tmp_path / "old" / "score_test", ["a b c d"] * 53 + ["x b c d"] * 7)
    ours = [_write(tmp_path / name / "score_test", hyps) for name, hyps in (("good", good), ("fair", fair))]
    alone = [compare_scores(one, theirs, "test_x").p_value for one in ours]
    assert alone[0] is not None and alone[1] is not None and alone[0] < alone[1] / 2
    text = report(ours, [], [theirs], UNKNOWN, PLAIN)
    assert "corrected by Holm for the 2 comparisons of this table" in text
    cells = [
        line.rstrip(" |").split()[-1] for line in text.splitlines() if line[:7] in ("| good ", "| fair ")
    ]
    assert cells == [p_text(2 * alone[0]), p_text(alone[1])] != [p_text(p) for p in alone]


def test_weights_of_several_lms_are_shown(tmp_path: Path) -> None:
    content = {
        "role": "dev",
        "lms": ["ngram", "lstm", "other"],
        "lambdas": [0.3, 0.7, 0.0],
        "interpolation": "log_linear",
        "lm_weight": 1.2,
        "insertion_penalty": 0.0,
        "errors": 3,
        "ref_words": 40,
        "edges": [],
    }
    chosen = read_chosen(tmp_path / "all" / "rescoring.json", content)
    text = report([_write(tmp_path / "all" / "score_test", ["a"])], [chosen], [], UNKNOWN, PLAIN)
    assert "| all    | dev       | 0.3 ngram + 0.7 lstm (log-linear) |       1.2 |" in text
    assert " 7.50 |" in text
    assert "dev: weights were chosen here" not in text
    of_dev = _write(tmp_path / "oracle" / "score_dev", ["a"], role="dev")
    text = report([of_dev], [chosen], [], UNKNOWN, PLAIN)
    assert "- dev: weights were chosen here" in text and "- oracle: " in text


def test_a_baseline_on_other_references_is_refused(tmp_path: Path) -> None:
    ours = _write(tmp_path / "new" / "score_test", ["a b c d"])
    theirs = _write(tmp_path / "old" / "score_test", ["a b c d"], ref="a b c e")
    with pytest.raises(DataError, match="score both systems on the same data"):
        report([ours], [], [theirs], UNKNOWN, PLAIN)


def test_chosen_weights_are_shown_with_the_edge_of_their_grid(tmp_path: Path) -> None:
    content = {
        "lm_weight": 0.5,
        "insertion_penalty": -1.0,
        "role": "dev",
        "wer_percent": 12.345,
        "edges": ["lm_weight"],
    }
    chosen = read_chosen(tmp_path / "ctc" / "weights.json", content)
    text = report([_write(tmp_path / "ctc" / "score_test", ["a"])], [chosen], [], UNKNOWN, PLAIN)
    (row,) = [line for line in text.splitlines() if "12.3" in line]
    assert [cell.strip() for cell in row.strip("|").split("|")][:4] == ["ctc", "dev", "0.5", "-1.0"]
    assert "lm weight" in row
    with pytest.raises(DataError, match="choose on dev again"):
        read_chosen(tmp_path / "weights.json", {"role": "dev"})


def test_entities_have_a_table_of_their_own_where_there_are_any(tmp_path: Path) -> None:
    score = _write(tmp_path / "ctc" / "score_test", ["a b c d"])
    plain = report([score], [], [], UNKNOWN, PLAIN)
    assert "ntities" not in plain
    classes = {"LOC": EntityCounts(), "PER": EntityCounts(hits=3, ref_words=4, hyp_words=5)}
    part = replace(score.parts["test_x"], entities=EntityScore(7, classes))
    text = report([replace(score, parts={"test_x": part})], [], [], UNKNOWN, PLAIN)
    rows = [line for line in text.splitlines() if line.startswith("| ctc")][1:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells == [
        ["ctc", "test_x", "LOC", "0", "0", "0", "–", "–"],
        ["ctc", "test_x", "PER", "4", "3", "2", "75.00", "60.00"],
    ]
    assert "- Entities: recall is" in text


def test_the_recall_of_entities_has_an_interval_where_speakers_are_known(tmp_path: Path) -> None:
    score = _write(tmp_path / "ctc" / "score_test", ["a b c d"])
    counts = EntityCounts(hits=3, ref_words=4, hyp_words=5)
    classes = {"LOC": EntityCounts(), "PER": counts}
    intervals = {ALL: Interval(0.5, 1.0, 0.95), "LOC": None, "PER": Interval(0.25, 1.0, 0.95)}
    found = EntityScore(7, classes, {"s1": {ALL: counts, "PER": counts}}, intervals)
    part = replace(score.parts["test_x"], entities=found)
    rows = entity_rows(replace(score, parts={"test_x": part}), "test_x")
    assert [row["class"] for row in rows] == ["LOC", "PER", "all"]
    assert [row["95 % interval"] for row in rows] == ["–", "25.00 to 100.00", "50.00 to 100.00"]


def test_phones_have_a_per(tmp_path: Path) -> None:
    score = replace(_write(tmp_path / "ctc" / "score_test", ["a b c d"]), unit="phone")
    text = report([score], [], [], UNKNOWN, PLAIN)
    assert "| PER % |" in text
    assert "- PER is insertions, deletions and substitutions by 100 reference phones" in text
    assert "WER" not in text


def test_the_legend_tells_renamed_units_from_those_left_out(tmp_path: Path) -> None:
    score = _write(tmp_path / "ctc" / "score_test", ["a b c d"])
    corpus = CorpusInfo("ami", False, {"um": "", "uh": "", "okay": "ok", "ok": "ok"})
    text = report([score], [], [], corpus, PLAIN)
    assert "- 2 recognized units are scored as 1.\n" in text
    assert "- Not scored, in references and hypotheses: uh, um.\n" in text


def test_nothing_to_report_is_an_error() -> None:
    with pytest.raises(DataError, match="name at least one"):
        report([], [], [], UNKNOWN, PLAIN)


def test_a_command_with_quotes_and_colons_arrives_as_it_is() -> None:
    command = "./run.sh data:../an4 ctc --epsilon '1 10' --corpus-dir a=b"
    assert config.load(ReportOptions, [], [f"command={command}"]) == ReportOptions(command=command)
