"""speechocean762: roles of whole speakers, and what is known of speakers and prompts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.speechocean762 import CORPUS, lexicon, read
from privasr_k2.data.manifests import check_cuts, load_cuts
from privasr_k2.errors import DataError
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.groups import read_groups
from tests.support import trees
from tests.support.conf import section

LAYERS = (section("speechocean762"),)
GROUPS = (("m", 6), ("f", 15), ("m", 19), ("f", 43))


def given(raw: Path, **options: str) -> CorpusInput:
    return CorpusInput(raw, raw.parent / "data" / "manifests", options, LAYERS, num_jobs=1)


def speakers(cuts) -> set[str]:
    return {cut.supervisions[0].speaker for cut in cuts}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Three speakers of each group in train and one in test, file names from the upper folder."""
    root = tmp_path / "speechocean762"
    for number, (part, each) in enumerate((("train", 3), ("test", 1))):
        names = [f"{number}{n:03d}" for n in range(each * len(GROUPS))]
        folder = trees.kaldi(root, part, names)
        groups = {name: GROUPS[n % len(GROUPS)] for n, name in enumerate(names)}
        trees.lines(folder / "spk2gender", *(f"{s} {gender}" for s, (gender, _) in groups.items()))
        trees.lines(folder / "spk2age", *(f"{s} {age}" for s, (_, age) in groups.items()))
        scp = (folder / "wav.scp").read_text().replace(" wav/", f" {part}/wav/")
        (folder / "wav.scp").write_text(scp)
        texts = [f"{s}-{n} {words}" for s in names for n, words in enumerate((f"I AM {s}", "YES"))]
        trees.lines(folder / "text", *texts)
    return root


def test_dev_is_whole_speakers_of_every_group(raw: Path) -> None:
    cuts = read(given(raw))
    check_cuts(cuts, sampling_rate=16000)
    assert {role: len(speakers(of_role)) for role, of_role in cuts.items()} == {
        "train": 8,
        "dev": 4,
        "test": 4,
    }
    said = [cut.supervisions[0] for cut in cuts["dev"]]
    groups = Counter((s.gender, s.custom["age"], s.custom["age_group"]) for s in said)
    assert groups == dict.fromkeys(
        [("m", 6, "child"), ("f", 15, "child"), ("m", 19, "adult"), ("f", 43, "adult")], 2
    )
    assert {cut.custom["part"] for cut in cuts["dev"]} == {"dev"}
    drawn = [read(given(raw, dev_fraction="0.4", seed=seed))["dev"] for seed in "001234"]
    assert speakers(drawn[0]) == speakers(drawn[1])
    assert len({frozenset(speakers(dev)) for dev in drawn}) > 1


def test_the_age_of_adults_is_a_setting(raw: Path) -> None:
    cuts = read(given(raw, adult_age="20"))["test"]
    groups = {cut.supervisions[0].custom["age"]: cut.supervisions[0].custom for cut in cuts}
    assert {age: of["age_group"] for age, of in groups.items()} == {
        6: "child",
        15: "child",
        19: "child",
        43: "adult",
    }


def test_prompts_that_train_has_too_are_marked(raw: Path) -> None:
    prepare(CORPUS, given(raw))
    manifests = raw.parent / "data" / "manifests"
    names = read_corpus_info(manifests).all_groups
    groups = [*read_groups(manifests, "test", names).values()]
    assert {tuple(of) for of in groups} == {("age_group", "gender", "prompt_in_train")}
    assert {(of["age_group"], of["gender"]) for of in groups} == {
        *(("child", "m"), ("child", "f"), ("adult", "m"), ("adult", "f"))
    }
    assert {of["prompt_in_train"] for of in groups} == {"true", "false"}
    assert "prompt_in_train" not in next(iter(read_groups(manifests, "train", names).values()))
    for role in ("dev", "test"):
        said = [cut.supervisions[0] for cut in load_cuts(manifests, role)]
        assert {(s.text == "yes", s.custom["prompt_in_train"]) for s in said} == {
            (True, True),
            (False, False),
        }
    said = [cut.supervisions[0] for cut in load_cuts(manifests, "train")]
    assert not any("prompt_in_train" in s.custom for s in said)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("spk2age", ["1000 old"], "spk2age:1: expected SPEAKER AGE"),
        ("spk2age", ["1000 6", "1001 15", "1003 43"], "expected speaker 1002"),
        ("spk2gender", ["1000 m", "1001 f", "1003 f"], "expected '1002' also in spk2gender"),
    ],
)
def test_what_is_not_known_of_speakers(
    raw: Path, name: str, content: list[str], message: str
) -> None:
    trees.lines(raw / "test" / name, *content)
    with pytest.raises(DataError, match=message):
        read(given(raw))


def test_missing_parts(raw: Path) -> None:
    (raw / "train" / "spk2gender").unlink()
    with pytest.raises(DataError, match="spk2gender: expected a file"):
        read(given(raw))
    with pytest.raises(DataError, match="the folders train and test, found no train"):
        read(given(raw / "test"))


def test_the_lexicon_of_the_release(raw: Path) -> None:
    assert lexicon(given(raw)) is None
    beside = trees.lines(raw / "lexicon.txt", "YES\tY EH1 S")
    assert lexicon(given(raw)) == beside
    official = trees.lines(raw / "resource" / "lexicon.txt", "YES\tY EH1 S")
    assert lexicon(given(raw)) == official


@pytest.mark.shared_data
def test_the_real_corpus(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "speechocean762"
    cuts = read(CorpusInput(raw, tmp_path, {}, LAYERS, num_jobs=2))
    assert len(cuts["train"]) + len(cuts["dev"]) == 2500
    assert (len(cuts["test"]), len(speakers(cuts["test"]))) == (1300, 65)
    assert len(speakers(cuts["dev"])) == 14
    assert len(speakers(cuts["train"]) | speakers(cuts["dev"])) == 125
    seen = Counter(cut.supervisions[0].custom["prompt_in_train"] for cut in cuts["test"])
    assert seen == {True: 6, False: 1294}
    assert cuts["test"][0].load_audio().shape == (1, cuts["test"][0].num_samples)
