"""AMI from manual annotations in their official layout and from tables of turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.corpora.ami import CORPUS, read, split_turn
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support import trees
from tests.support.conf import section

NITE = 'xmlns:nite="http://nite.sourceforge.net/"'
MEETINGS = {"ES2002a": "FEE005", "ES2003a": "MEO015", "ES2011a": "FEE041", "ES2004a": "MEO069"}


def given(raw: Path, **options: str) -> CorpusInput:
    layers = (section("ami"), section("ami", "tiny"))
    return CorpusInput(raw, raw.parent / "data" / "manifests", options, layers, num_jobs=1)


def annotations(root: Path, *, audio: bool) -> Path:
    trees.lines(
        root / "corpusResources" / "meetings.xml",
        f"<meetings {NITE}>",
        *(
            f'<meeting observation="{m}"><speaker nxt_agent="B" channel="1"'
            f' global_name="{s}"/></meeting>'
            for m, s in MEETINGS.items()
        ),
        "</meetings>",
    )
    trees.lines(
        root / "ontologies" / "ne-types.xml",
        f'<ne-type nite:id="ne_0" {NITE}><ne-type nite:id="ne_1" name="Person"/></ne-type>',
    )
    for meeting in MEETINGS:
        words = f"{meeting}.B.words.xml"
        trees.lines(
            root / "words" / words,
            f'<nite:root {NITE}><vocalsound nite:id="v0"/><w nite:id="w0">Hi</w>',
            '<w nite:id="w1" punc="true">,</w>',
            '<w nite:id="w2">Mary-Ann</w><disfmarker nite:id="d0"/><w nite:id="w3">O\'Brien</w>',
            '<w nite:id="w4" punc="true">.</w><vocalsound nite:id="v1"/></nite:root>',
        )
        trees.lines(
            root / "segments" / f"{meeting}.B.segments.xml",
            f'<nite:root {NITE}><segment nite:id="s0" transcriber_start="0.5"'
            ' transcriber_end="1.75">',
            f'<nite:child href="{words}#id(v0)..id(w4)"/></segment>',
            '<segment nite:id="s1" transcriber_start="1.75" transcriber_end="2.0">',
            f'<nite:child href="{words}#id(v1)"/></segment></nite:root>',
        )
        trees.lines(
            root / "namedEntities" / f"{meeting}.B.ne.xml",
            f'<nite:root {NITE}><named-entity nite:id="n0">',
            '<nite:pointer role="type" href="ne-types.xml#id(ne_1)"/>',
            f'<nite:child href="{words}#id(w2)..id(w3)"/></named-entity></nite:root>',
        )
        if audio:
            name = f"amicorpus/{meeting}/audio/{meeting}.Headset-1.wav"
            trees.noise(root / name, 2.0, file_format="WAV")
    return root


def table(root: Path) -> Path:
    rows = ["meeting\tsplit\tturn\trole\ttext"]
    for meeting in MEETINGS:
        text = "Okay . {vocalsound} Let's see the remote ."
        for turn in range(3):
            rows.append(f"{meeting}\tx\t{2 * turn}\tProject Manager\t{text}")
            rows.append(f"{meeting}\tx\t{2 * turn + 1}\tMarketing\t{{disfmarker}}")
    trees.gzipped(root / "turns.tsv.gz", *rows)
    return root


@pytest.mark.parametrize("audio", [True, False])
def test_manual_annotations(tmp_path: Path, audio: bool) -> None:
    raw = annotations(tmp_path / "raw", audio=audio)
    about = prepare(CORPUS, given(raw))
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
    assert cut.has_recording is audio
    assert about["roles"]["test"]["text_only"] is not audio
    if audio:
        assert (cut.start, cut.duration, cut.load_audio().shape) == (0.5, 1.25, (1, 20000))


def test_headsets_that_are_wanted_but_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Headset"):
        read(given(annotations(tmp_path / "raw", audio=False), speech="headset"))


def test_a_segment_of_words_that_are_not_there(tmp_path: Path) -> None:
    raw = annotations(tmp_path / "raw", audio=False)
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
