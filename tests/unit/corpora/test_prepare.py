"""What bin.prepare_corpus makes of good corpora, and what it says of bad ones."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from lhotse import CutSet
from lhotse.utils import fastcopy

from privasr_k2.corpora import data_dir
from privasr_k2.corpora.base import Corpus, CorpusInput, load_corpus
from privasr_k2.corpora.librispeech import CORPUS
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_lines
from tests.support import trees

IDS = [f"{speaker}-{n}" for speaker in "abc" for n in "01"]


def given(raw: Path | None, out: Path, **options: str) -> CorpusInput:
    return CorpusInput(raw, out, options, (), num_jobs=1)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return trees.librispeech(tmp_path / "raw")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "data" / "manifests"


def test_what_is_written(raw: Path, out: Path) -> None:
    before = trees.listing(raw)
    text = trees.lines(raw.parent / "more.txt", "A B-C", "", "D")
    lexicon = trees.lines(
        raw.parent / "lexicon.txt", "DOG D AO G", "<unk> SPN", "DOG(2) D AA G", "DOG D AO G"
    )
    about = prepare(CORPUS, given(raw, out), lm_text=[text], lexicon=lexicon)
    assert trees.listing(raw) == before
    assert json.loads((out / "corpus.json").read_text()) == about
    expected = {"utterances": 8, "hours": 0.0028, "speakers": 4, "parts": {"test_other": 8}}
    assert about["roles"]["test"] == {**expected, "text_only": False}
    assert (out / "lexicon.txt").read_text() == "dog D AO G\ndog D AA G\n"
    assert about["lm_text"] == {"sentences": 2, "words": 4}
    cut = next(iter(load_cuts(out, "test")))
    assert cut.supervisions[0].text == "it's a dog"
    assert cut.custom == {"part": "test_other"}
    assert cut.load_audio().shape == (1, cut.num_samples)


@pytest.mark.parametrize(
    ("case", "text", "entry"),
    [("", "it's a dog", "dog"), ("lower", "it's a dog", "dog"), ("upper", "IT'S A DOG", "DOG"),
     ("keep", "IT'S A DOG", "Dog")],
)  # fmt: skip
def test_the_case_of_all_text(raw: Path, out: Path, case: str, text: str, entry: str) -> None:
    lexicon = trees.lines(raw.parent / "lexicon.txt", "Dog D AO G")
    lm_text = trees.lines(raw.parent / "more.txt", "Cafe\u0301 42")
    options = {"text_case": case} if case else {}
    given_ = given(raw, out, **options, not_scored="Yes")
    about = prepare(CORPUS, given_, lm_text=[lm_text], lexicon=lexicon)
    assert about["text_case"] == {"": "lower", "keep": "keep"}.get(case, case)
    assert next(iter(load_cuts(out, "test"))).supervisions[0].text == text
    assert (out / "lexicon.txt").read_text() == f"{entry} D AO G\n"
    change = {"upper": str.upper, "keep": str}.get(case, str.lower)
    assert about["scored_units"] == {change("Yes"): ""}
    [line] = (line for _, line in read_lines(out / "lm_text.txt.gz"))
    assert line == f"{change('Café')} 42"  # composed: NFC
    with pytest.raises(ConfigError, match="text_case=title"):
        prepare(CORPUS, given(raw, out, text_case="title"))


def test_own_cuts_need_no_part_and_a_corpus_no_name(raw: Path, out: Path) -> None:
    def read(given: CorpusInput) -> dict[str, CutSet]:
        cuts = CORPUS.read(given).items()
        return {role: of_role.map(lambda cut: fastcopy(cut, custom=None)) for role, of_role in cuts}

    about = prepare(Corpus(name="", read=read), given(raw, out))
    assert about["name"] == "raw"
    for role, of_role in about["roles"].items():
        assert of_role["parts"] == {role: of_role["utterances"]}


def test_the_same_bytes_twice_and_for_any_number_of_jobs(raw: Path, out: Path) -> None:
    prepare(CORPUS, given(raw, out))
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    prepare(CORPUS, CorpusInput(raw, out, {}, (), num_jobs=3))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first


def damage(raw: Path, kind: str) -> None:
    folder = raw / "train-clean-100" / "1" / "9"
    audio, transcript = folder / "1-9-0000.flac", folder / "1-9.trans.txt"
    if kind == "truncated":
        audio.write_bytes(audio.read_bytes()[:10000])
    elif kind == "missing":
        audio.unlink()
    elif kind == "rate":
        trees.noise(audio, rate=8000)
    elif kind == "empty text":
        trees.lines(transcript, "1-9-0000", "1-9-0001 YES")
    elif kind == "not UTF-8":
        transcript.write_bytes(b"1-9-0000 IT'S\n1-9-0001 CAF\xc9\n")
    elif kind == "duplicate":
        trees.lines(transcript, "1-9-0000 A", "1-9-0001 B", "1-9-0001 C")
    elif kind == "dense":
        trees.lines(transcript, f"1-9-0000 {'WORD ' * 40}", "1-9-0001 YES")
    elif kind == "speaker":
        other = raw / "test-other" / "1" / "7"
        trees.noise(other / "1-7-0000.flac")
        trees.lines(other / "1-7.trans.txt", "1-7-0000 A")
    elif kind == "no transcript":
        trees.lines(transcript, "1-9-0000 A")


@pytest.mark.parametrize(
    ("kind", "place", "found"),
    [
        ("truncated", "1-9-0000.flac", "truncated"),
        ("missing", "1-9-0000.flac", "no such file"),
        ("rate", "1-9-0000.flac", "expected audio of 16000 Hz, found 8000 Hz"),
        ("empty text", "1-9.trans.txt:1", "found '1-9-0000'"),
        ("not UTF-8", "1-9.trans.txt:2", "byte 0xc9"),
        ("duplicate", "1-9.trans.txt:3", "'1-9-0001' again, after"),
        ("dense", "1-9.trans.txt:1", "199 characters"),
        ("speaker", "speaker 1", "a speaker in one role only"),
        ("no transcript", "1-9-0001.flac", "its transcript"),
    ],
)
def test_bad_input_is_named_and_earlier_output_stays(
    raw: Path, out: Path, kind: str, place: str, found: str
) -> None:
    prepare(CORPUS, given(raw, out))
    earlier = trees.listing(out)
    damage(raw, kind)
    with pytest.raises(DataError) as error:
        prepare(CORPUS, given(raw, out, dev_seed="1"))
    assert place in str(error.value)
    assert found in str(error.value)
    assert "way out: " in str(error.value)
    assert trees.listing(out) == earlier
    assert {path.name for path in out.parent.iterdir()} <= {"manifests", "problems.tsv"}


def test_all_problems_at_once(raw: Path, out: Path) -> None:
    for kind in ("dense", "speaker", "rate"):
        damage(raw, kind)
    with pytest.raises(DataError) as error:
        prepare(CORPUS, given(raw, out))
    assert error.value.found.startswith("3:")
    assert all(word in str(error.value) for word in ("8000 Hz", "199 characters", "speaker 1"))


def test_all_problems_stand_in_a_file_and_are_counted_by_kind(raw: Path, out: Path) -> None:
    trees.librispeech(raw, speakers=15)
    paths = sorted(raw.rglob("*.flac"))
    for path in paths:
        path.unlink()
    listed = out.with_name("problems.tsv")
    with pytest.raises(DataError, match=f"60: all stand in {listed}\n") as error:
        prepare(CORPUS, given(raw, out))
    assert str(error.value).count("no such file") == 3 and "... and 57 more" in str(error.value)
    assert "60 x missing audio: correct the paths" in str(error.value)
    header, *rows = [line.split("\t") for line in listed.read_text().splitlines()]
    assert header == ["kind", "place", "expected", "found"]
    assert sorted(row[1] for row in rows) == list(map(str, paths))
    assert {(row[0], row[3]) for row in rows} == {("missing audio", "no such file")}


def test_the_file_of_problems_goes_with_them(raw: Path, out: Path) -> None:
    out.parent.mkdir(exist_ok=True)
    listed = out.with_name("problems.tsv")
    listed.write_text("of an earlier attempt\n")
    prepare(CORPUS, given(raw, out))
    assert not listed.exists()


def test_missing_corpus(tmp_path: Path, out: Path) -> None:
    with pytest.raises(DataError, match="the folder of the corpus"):
        prepare(CORPUS, given(tmp_path / "nowhere", out))
    with pytest.raises(DataError, match="--corpus-dir"):
        prepare(CORPUS, given(None, out))
    assert not out.exists()


def test_output_inside_the_corpus_is_refused(raw: Path) -> None:
    with pytest.raises(ConfigError, match="nothing is ever written"):
        prepare(CORPUS, given(raw, raw / "data" / "manifests"))


def test_unknown_options_are_refused(raw: Path, out: Path) -> None:
    with pytest.raises(ConfigError, match="dev_fracton"):
        prepare(CORPUS, given(raw, out, dev_fracton="0.1", allow_pipes="false"))
    with pytest.raises(ConfigError, match="a number"):
        prepare(CORPUS, given(raw, out, dev_fraction="much"))


def test_empty_text_can_be_left_out(
    tmp_path: Path, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for role, speakers in (("train", "abc"), ("test", "d")):
        trees.kaldi(tmp_path / "raw", role, speakers)
    trees.lines(tmp_path / "raw" / "train" / "text", "a-0", *(f"{s} Yes" for s in IDS[1:]))
    with pytest.raises(DataError, match=r"text:1: expected words, found empty text of a-0"):
        prepare(data_dir.CORPUS, given(tmp_path / "raw", out))
    with caplog.at_level(logging.WARNING):
        prepare(data_dir.CORPUS, given(tmp_path / "raw", out, drop_empty="true"))
    assert "1 utterances without words" in caplog.text


def test_words_that_are_not_scored_are_units_without_a_scored_unit(raw: Path, out: Path) -> None:
    assert prepare(CORPUS, given(raw, out))["scored_units"] == {}
    about = prepare(CORPUS, given(raw, out, not_scored="UM,it's"))
    assert about["scored_units"] == {"um": "", "it's": ""}
    assert about["unit"] == "word"


@pytest.mark.parametrize(
    ("words", "way_out"), [("uh,mm-hmm", "write mm,hmm"), ("uh,", "leave it out")]
)
def test_what_is_not_one_word_cannot_be_left_out(
    raw: Path, out: Path, words: str, way_out: str
) -> None:
    with pytest.raises(ConfigError, match=way_out):
        prepare(CORPUS, given(raw, out, not_scored=words))
    assert not out.exists()


def test_other_counts_than_the_official_ones_warn(
    raw: Path, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(CORPUS, given(raw, out))
    assert "test_other has 8 utterances of the 2939" in caplog.text


@pytest.mark.parametrize("prob", ["1.0", "0.25", ".5", "1.5e-05"])
def test_probabilities_of_a_lexicon_are_no_tokens(raw: Path, out: Path, prob: str) -> None:
    lexicon = trees.lines(raw.parent / "lexiconp.txt", "DOG D AO G", f"A {prob} AH")
    with pytest.raises(DataError, match=r"lexiconp.txt:2: expected the tokens of A, found the pro"):
        prepare(CORPUS, given(raw, out), lexicon=lexicon)


def test_a_line_of_a_lexicon_without_tokens(raw: Path, out: Path) -> None:
    lexicon = trees.lines(raw.parent / "lexicon.txt", "A AH", "B")
    with pytest.raises(DataError, match=r"lexicon.txt:2: expected a word and its tokens"):
        prepare(CORPUS, given(raw, out), lexicon=lexicon)


def test_own_audio_moves_with_the_tree(tmp_path: Path) -> None:
    def read(source: CorpusInput) -> dict:
        custom, cuts = {"entities": [[1, 2, "PER"]]}, {}
        for role in ("train", "test"):
            audio = trees.noise(source.out_dir / "audio" / f"{role}.flac")
            utterance = Utterance(role, "Hello you", role, "x", audio, custom=custom)
            cuts[role] = make_cuts([utterance])
        return cuts

    prepare(Corpus("own", read), given(None, tmp_path / "a" / "data" / "manifests"))
    (tmp_path / "a").rename(tmp_path / "b")
    cut = load_cuts(tmp_path / "b" / "data" / "manifests", "train")[0]
    assert cut.load_audio().shape == (1, 16000)
    assert cut.supervisions[0].custom == {"entities": [[1, 2, "PER"]], "cased": "Hello you"}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "no CORPUS"),
        ("CORPUS = 3", "a int"),
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("(", "SyntaxError"),
    ],
)
def test_a_definition_that_defines_nothing(tmp_path: Path, content: str, found: str) -> None:
    path = trees.lines(tmp_path / "mine.py", content)
    with pytest.raises(DataError, match=found):
        load_corpus(path)
    with pytest.raises(DataError, match=r"other\.py"):
        load_corpus(tmp_path / "other.py")
