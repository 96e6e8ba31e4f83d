"""AMI from manual annotations in their official layout and from tables of turns."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from lhotse.recipes.ami import PARTITIONS

from privasr_k2.corpora.ami import CORPUS, DEV_GROUPS, TEST_GROUPS, read, split_turn
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support import trees
from tests.support.ami_trees import MEETINGS, annotations, headsets
from tests.support.conf import section


def given(raw: Path, **options: str) -> CorpusInput:
    layers = (section("ami"), section("ami", "tiny"))
    return CorpusInput(raw, raw.parent / "data" / "manifests", options, layers, num_jobs=1)


def table(root: Path) -> Path:
    rows = ["meeting\tsplit\tturn\trole\ttext"]
    for meeting in MEETINGS:
        text = "Okay . {vocalsound} Let's see the remote ."
        for turn in range(3):
            rows.append(f"{meeting}\tx\t{2 * turn}\tProject Manager\t{text}")
            rows.append(f"{meeting}\tx\t{2 * turn + 1}\tMarketing\t{{disfmarker}}")
    trees.gzipped(root / "turns.tsv.gz", *rows)
    return root


def test_manual_annotations(tmp_path: Path) -> None:
    about = prepare(CORPUS, given(annotations(tmp_path / "raw")))
    assert {r: (v["utterances"], v["speakers"]) for r, v in about["roles"].items()} == {
        role: (1, 1) for role in ("train", "adapt", "dev", "test")
    }
    assert not about["synthetic"]
    cut = load_cuts(tmp_path / "data" / "manifests", "test")[0]
    supervision = cut.supervisions[0]
    assert (cut.id, supervision.speaker) == ("ES2004a-B-0000", "MEO069")
    assert supervision.text == "hi mary ann o'brien"
    expected = {"cased": "Hi , Mary-Ann O'Brien .", "entities": [[1, 4, "PERSON"]]}
    assert supervision.custom == expected
    assert not cut.has_recording and about["roles"]["test"]["text_only"]


@pytest.mark.parametrize(
    ("manual", "named"),
    [("", ""), ("ami_public_manual_1.6.2", ""), ("ami_public_manual_1.6.2", "amicorpus")],
)
def test_headsets(
    tmp_path: Path, manual: str, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    raw = tmp_path / "raw"
    annotations(raw / manual)
    headsets(raw / "amicorpus")
    about = prepare(CORPUS, replace(given(raw), raw_dir=raw / named))
    assert {r: (v["utterances"], v["speakers"]) for r, v in about["roles"].items()} == {
        role: (1, 1) for role in ("train", "adapt", "dev", "test")
    }
    cut = load_cuts(tmp_path / "data" / "manifests", "test")[0]
    supervision = cut.supervisions[0]
    assert (cut.id, supervision.speaker) == ("ES2004a-1-0", "MEO069")
    assert supervision.text == "hi mary ann o'brien"
    expected = {"cased": "Hi Mary-Ann O'Brien", "entities": [[1, 4, "PERSON"]]}
    assert supervision.custom == expected
    assert cut.custom == {"part": "test"}
    assert (cut.start, cut.duration) == (0.5, 1.125)
    heard, _ = soundfile.read(raw / "amicorpus/ES2004a/audio/ES2004a.Headset-1.wav")
    np.testing.assert_allclose(cut.load_audio()[0], heard[8000:26000], atol=1e-6)
    assert not [r for r in caplog.records if "duration" in r.getMessage()]  # of marks


def test_the_partition_is_lhotses() -> None:
    for part, groups in (("dev", DEV_GROUPS), ("test", TEST_GROUPS)):
        assert {m.rstrip("abcd") for m in PARTITIONS["full-corpus-asr"][part]} == {*groups}


def test_headsets_that_are_wanted_but_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Headset"):
        read(given(annotations(tmp_path / "raw"), speech="headset"))


def test_a_part_of_the_headsets(tmp_path: Path) -> None:
    raw = annotations(tmp_path / "raw")
    audio = headsets(raw / "amicorpus")
    (audio / "ES2002a" / "audio" / "ES2002a.Headset-0.wav").unlink()
    (audio / "ES2003a" / "audio" / "ES2003a.Headset-0.wav").write_bytes(b"no audio")
    shutil.rmtree(audio / "ES2011a")
    trees.lines(raw / "words" / "notes.txt", "x")
    with pytest.raises(DataError) as caught:
        read(given(raw))
    for problem in (
        "ES2002a: expected headsets 0 to 1 in audio/, found 1",
        "ES2003a.Headset-0.wav: expected audio, found no readable audio",
        "expected headsets of a meeting of dev",
        "notes.txt: expected only MEETING.AGENT.words.xml",
    ):
        assert problem in str(caught.value)
    assert len(read(given(raw, speech="none"))["dev"]) == 1


def test_a_segment_of_words_that_are_not_there(tmp_path: Path) -> None:
    raw = annotations(tmp_path / "raw")
    path = raw / "segments" / "ES2004a.B.segments.xml"
    path.write_text(path.read_text().replace("id(w4)", "id(w9)"))
    with pytest.raises(DataError, match=r"ES2004a.B.segments.xml: expected words of .*found .*w9"):
        read(given(raw))
    path.write_text("<a>")
    with pytest.raises(DataError, match=r"segments.xml:\d: expected XML"):
        read(given(raw))


def test_table_of_turns(tmp_path: Path) -> None:
    raw = table(tmp_path / "raw")
    cuts = read(given(raw, speech="none"))
    expected = {"train": 3, "adapt": 3, "dev": 3, "test": 3}
    assert {role: len(of_role) for role, of_role in cuts.items()} == expected
    supervision = cuts["test"][0].supervisions[0]
    expected = ("Okay . Let's see the remote .", "ES2004_ProjectManager")
    assert (supervision.text, supervision.speaker) == expected
    assert cuts["test"][0].custom["text_only"]


def test_a_broken_row(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    trees.gzipped(
        raw / "turns.tsv.gz", "meeting\tsplit\tturn\trole\ttext", "ES2004a\ttest\t0\tMarketing"
    )
    with pytest.raises(DataError, match=r"turns.tsv.gz:2"):
        read(given(raw))


@pytest.mark.slow
def test_synthetic_speech(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    raw = table(tmp_path / "raw")
    about = prepare(CORPUS, given(raw, speech="synthetic", max_hours_train="0.001"))
    assert about["synthetic"]
    assert about["roles"]["train"]["utterances"] == 2
    cut = load_cuts(tmp_path / "data" / "manifests", "train")[0]
    assert cut.load_audio().shape == (1, cut.num_samples)
    assert cut.custom["synthetic"]
    whole = prepare(CORPUS, given(raw, speech="none"))  # language models read all of train
    assert whole["roles"]["train"]["utterances"] == about["lm_text"]["sentences"] > 2
    assert "lm_text" not in whole


def test_pieces_of_a_long_turn() -> None:
    tokens = [*["word"] * 20, ",", *["word"] * 100]
    pieces = split_turn(tokens)
    assert [token for piece in pieces for token in piece] == tokens
    assert len(pieces[0]) == 21
    assert all(len(" ".join(piece)) <= 225 for piece in pieces)
    assert split_turn([]) == []
    assert split_turn(["w" * 500]) == [["w" * 500]]


@pytest.mark.shared_data
def test_the_real_table(shared_data: Path, tmp_path: Path) -> None:
    layers = (section("ami"),)
    cuts = read(CorpusInput(shared_data / "ami", tmp_path, {"speech": "none"}, layers, num_jobs=1))
    words = {role: sum(len(c.supervisions[0].text) for c in of) for role, of in cuts.items()}
    assert 0.10 < words["adapt"] / (words["train"] + words["adapt"]) <= 0.15
    people = {role: {c.supervisions[0].speaker for c in of_role} for role, of_role in cuts.items()}
    assert len(set.union(*people.values())) == sum(map(len, people.values())) == 136
