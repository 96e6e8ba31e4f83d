"""train_student and report_pate from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.am.checkpoints import load_recognizer
from privasr_k2.data.manifests import load_cuts
from privasr_k2.fileio import read_json, write_json, write_jsonl
from privasr_k2.privacy.ledger import Ledger
from tests.support.conf import section
from tests.unit.am.end_to_end import spelled_lang
from tests.unit.am.small import write_corpus
from tests.unit.bin.test_language_verbs import call
from tests.unit.scoring.test_pate_attacks import bound, labels
from tests.unit.scoring.test_pate_report import ABOUT, HYPS, entry, row_of
from tests.unit.scoring.test_report import _write as write_score

SHORT = ["epochs=1", "avg=1", "encoder.tdnn.dim=8", "encoder.tdnn.dilations=[1]", "max_duration=9"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    feats, lang = write_corpus(tmp_path / "data", utterances=6)
    spelled_lang(lang)
    records = [
        {"id": cut.id, "hyps": [{"text": "CA", "weight": 0.75}, {"text": "cab", "weight": 0.25}]}
        for cut in list(load_cuts(feats, "train"))[:2]
    ]
    write_jsonl(tmp_path / "labels.jsonl", records)
    hyps = [{"rank": 1, "words": "AB", "am_score": -0.5, "lm_scores": {}}]
    lists = [
        {"id": cut.id, "part": "", "speaker": "s", "ref": "", "no_path": False, "hyps": hyps}
        for cut in load_cuts(feats, "train")
    ]
    write_jsonl(tmp_path / "nbest" / "1.jsonl", lists)
    return tmp_path


def flags(folder: Path) -> list[object]:
    feats, lang = folder / "data" / "feats", folder / "data" / "lang"
    given = ["--in-public-pool", feats, "--in-labels", folder / "labels.jsonl", "--in-public-feats", feats]
    out = ["--in-public-lang", lang, "--out-dir", folder / "out", "--device", "cpu", "--config"]
    files = [section("am_ctc"), section("am_ctc", "tiny"), section("student")]
    return [*given, *out, *files, "--set", *SHORT, "student.pool_role=train"]


def test_a_student(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = ["student.ways=[none,self_training]", "student.unanswered.least=1.0"]
    call(monkeypatch, "train_student", *flags(folder), *more, "--in-public-nbest", folder / "nbest")
    about = read_json(folder / "out" / "student.json")
    assert about["ways"]["self_training"]["utterances"] == {
        "pool": 6, "answered": 2, "answered_used": 2, "unanswered_used": 4, "labelled_used": 0,
    }  # fmt: skip
    assert load_recognizer(folder / "out").num_tokens == 5
    call(monkeypatch, "train_student", *flags(folder), "--in-public-init", folder / "out")
    assert read_json(folder / "out" / "student.json")["way"] == "none"


def test_guesses_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = flags(folder)
    at = given.index("--in-labels")
    more = [
        "student.ways=[self_training]",
        "student.unanswered.least=1.0",
        "--in-public-nbest",
        folder / "nbest",
    ]
    call(monkeypatch, "train_student", *given[:at], *given[at + 2 :], *more)
    found = read_json(folder / "out" / "student.json")["ways"]["self_training"]["utterances"]
    assert (found["answered"], found["unanswered_used"]) == (0, 6)


def test_a_student_that_cannot_be_trained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for more, message in (
        (["student.ways=[self_training]"], "--in-public-nbest"),
        (["student.labelled_role=train"], "utterances that are not in the pool"),
        (["student.ways=[some]"], "student.ways must be"),
        (["student.pool_role=pool"], "the cuts of the role 'pool'"),
    ):
        with pytest.raises(SystemExit) as caught:
            call(monkeypatch, "train_student", *flags(folder), *more)
        assert caught.value.code == 2 and message in capsys.readouterr().err
    (folder / "labels.jsonl").write_text(json.dumps({"id": "other", "hyps": []}) + "\n")
    with pytest.raises(SystemExit):
        call(monkeypatch, "train_student", *flags(folder))
    assert "different hypotheses" in capsys.readouterr().err and not (folder / "out").exists()


def test_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    private, public = tmp_path / "rnnt" / "gnmax_15_8", tmp_path / "rnnt" / "public"
    write_score(private / "score_test", list(HYPS["few"]))
    write_score(public / "score_test", list(HYPS["many"]))
    Ledger(private / "privacy.json").append(entry(2.0))
    write_json(private / "audit.json", labels(tied=bound(sound=1.5)))
    write_json(private / "labels" / "labels.json", ABOUT)
    given = ["--in-scores", private / "score_test", public / "score_test"]
    given += ["--in-privacy", private / "privacy.json", "--in-labels", private / "labels"]
    given += ["--in-audits", private / "audit.json"]
    (tmp_path / "lexicon.txt").write_text("a AH0\nb B IY1\nc S IY1\nd D IY1\nx EH1 K S\ny AO1\n")
    phones = ["--set", "phones=true", f"cmudict={tmp_path / 'lexicon.txt'}", "g2p=none"]
    for name in ("one", "two"):
        out = ["--out-report", tmp_path / name / "RESULTS.md", "--out-curves", tmp_path / name / "e.svg"]
        out += ["--out-teachers", tmp_path / name / "t.svg", "--config", section("pate_report")]
        call(monkeypatch, "report_pate", *given, *out, *phones)
    files = [[path.read_bytes() for path in sorted((tmp_path / name).iterdir())] for name in ("one", "two")]
    assert len(files[0]) == 3 and files[0] == files[1]
    text = (tmp_path / "one" / "RESULTS.md").read_text(encoding="utf-8")
    assert row_of(text, "## Audits", "RNN-T: GNMax")["at least"] == "1.5"
    # Two of twelve utterances have x for b: three phones for two, all of them wrong.
    assert row_of(text, "## RNN-T", "GNMax")["PER of the words %"] == f"{100 * 2 * 3 / (12 * 7):.2f}"
    assert "GNMax, 15 teachers, epsilon 8" in text and "Error rates against exact epsilon: `e.svg`" in text
