"""Public inputs that are none: what is behind them, by the stamps of stages and by the persons."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.privacy.people import People
from privasr_k2.privacy.public_inputs import checked
from privasr_k2.privacy.spending import Spending, guarantees
from tests.support.made_spending import COUNTS
from tests.support.made_stamps import privacy, stamp, work_folder

ROLES = {"train": "ab", "dev": "c", "test": "d", "adapt": "e"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with a speaker or two in each role, and the names in the text of each role."""
    work = work_folder(tmp_path / "work")
    monkeypatch.chdir(work)
    for role, speakers in ROLES.items():
        cuts = [{"id": s, "supervisions": [{"speaker": s, "text": "x"}]} for s in speakers]
        for folder in ("data/m", "data/feats"):
            write_jsonl(work / folder / f"cuts_{role}.jsonl.gz", cuts)
    stamp(work, 0, "prepare_corpus --raw-corpus corpus --out-dir data/m")
    stamp(work, 1, "compute_features --in-manifests data/m --out-dir data/feats")
    return work


def after(private: str, public: str, *, flag: str = "text", override: bool = False, people=None,
          settings: Sequence[str] = ()) -> Spending:  # fmt: skip
    """Spending of a release of ``private`` that takes ``public`` as public."""
    inputs = {f"in_private_{flag}": [Path(private)], "in_public_lists": Path(public)}
    given = {"set": settings, "public_from_private": "true" if override else "false"}
    return checked(Namespace(**inputs, **given), COUNTS, people)


def test_lists_of_the_private_text_are_refused_and_those_of_other_people_are_not(work):
    for role in ROLES:
        stamp(
            work, 2, f"make_name_lists --in-tagged data/m/cuts_{role}.jsonl.gz --out-lists l/{role}"
        )
    with pytest.raises(PrivacyError) as refused:
        after("data/m/cuts_train.jsonl.gz", "l/train")
    error = refused.value
    assert error.place == "--in-public-lists l/train" and "cuts_train" in error.found
    assert "stage 2 (make_name_lists)" in error.found and "--public-from-private" in error.way_out
    assert after("data/m/cuts_train.jsonl.gz", "l/test") == COUNTS


def test_with_the_override_epsilon_is_infinite_and_says_why(work):
    stamp(work, 2, "make_name_lists --in-tagged data/m/cuts_train.jsonl.gz --out-lists lists")
    spending = after("data/m/cuts_train.jsonl.gz", "lists", override=True)
    [guarantee] = guarantees([spending])
    assert math.isinf(guarantee.epsilon.value) and math.isinf(guarantee.person.value)
    assert "--in-public-lists lists" in spending.does_not_cover[0]
    assert after("data/m/cuts_train.jsonl.gz", "data/m/none", override=True) == COUNTS


def test_files_from_elsewhere_are_public_as_declared(work, tmp_path):
    write_text(tmp_path / "lists" / "per.txt", "ann\n")
    assert after("data/m/cuts_train.jsonl.gz", str(tmp_path / "lists")) == COUNTS
    write_jsonl(tmp_path / "text.jsonl", [{"id": "1", "user": "a", "text": "x"}])
    with pytest.raises(PrivacyError, match="1 of the 2 protected people"):
        after("data/m/cuts_train.jsonl.gz", str(tmp_path / "text.jsonl"))


def test_people_count_whatever_the_way(work):
    """Other files of the same speakers: features, text beside, another work folder."""
    stamp(work, 2, "train_am --in-feats data/feats --out-dir exp/am")
    with pytest.raises(PrivacyError, match=r"2 of the 2 .*stage 2 \(train_am\)"):
        after("data/m/cuts_train.jsonl.gz", "exp/am")
    assert after("data/m/cuts_test.jsonl.gz", "exp/am") == COUNTS
    other = work_folder(work.parent / "other")
    stamp(other, 2, f"train_am --in-feats {work}/data/feats --out-dir exp/am")
    with pytest.raises(PrivacyError, match="2 of the 2"):
        after("data/m/cuts_train.jsonl.gz", str(other / "exp/am"))


def test_the_users_files_of_each_role_are_read_for_that_role(work, tmp_path):
    """A model of train tells nothing of the people of another file that stage 0 has read."""
    files = {role: tmp_path / f"{role}.jsonl.gz" for role in ROLES}
    for role, path in files.items():
        cuts = [{"id": s, "supervisions": [{"speaker": s}]} for s in ROLES[role]]
        write_jsonl(path, cuts)
    given = " ".join(f"--raw-{role} {path}" for role, path in files.items())
    stamp(work, 0, f"prepare_corpus {given} --out-dir data/m")
    stamp(work, 2, "train_lm --in-manifests data/m --out-dir exp/lm")
    assert after("data/m/cuts_adapt.jsonl.gz", "exp/lm") == COUNTS
    with pytest.raises(PrivacyError, match="the private input data/m"):
        after("data/m/cuts_train.jsonl.gz", "exp/lm")
    # Where the manifests do not name everybody, the files that they are made of decide.
    write_jsonl(work / "data/m/cuts_train.jsonl.gz", [{"id": "a", "supervisions": [{}]}])
    with pytest.raises(PrivacyError, match=r"adapt\.jsonl\.gz with 1 of the 1"):
        after("data/m/cuts_adapt.jsonl.gz", "exp/lm")


def test_links_are_followed(work, tmp_path):
    write_text(work / "data/tagged.jsonl", '{"id": "1", "text": "x"}\n')
    stamp(work, 2, "make_name_lists --in-tagged data/tagged.jsonl --out-lists lists")
    (work / "lists").mkdir()
    (tmp_path / "lists").symlink_to(work / "lists")
    (tmp_path / "text.jsonl").symlink_to(work / "data/tagged.jsonl")
    for private in ("data/tagged.jsonl", str(tmp_path / "text.jsonl")):
        with pytest.raises(PrivacyError):
            after(private, str(tmp_path / "lists"))


def test_people_may_be_given(work):
    write_text(work / "votes", "1")
    stamp(work, 2, "train_lm --in-manifests data/m --out-dir exp/lm")
    assert after("votes", "exp/lm") == COUNTS
    people = People.of([("shard", "b")], source="shards")
    with pytest.raises(PrivacyError, match="1 of the 1"):
        after("votes", "exp/lm", people=people)


def test_the_private_input_is_followed_to_its_people(work):
    """Votes name nobody: their teachers were trained on somebody."""
    stamp(work, 2, "make_shards --in-private-feats data/feats --out-dir data/shards")
    write_jsonl(work / "data/shards/shard_1/cuts_train.jsonl.gz", [{"id": "1", "speaker": "a"}])
    write_jsonl(work / "data/shards/shard_1/cuts_dev.jsonl.gz", [{"id": "2", "speaker": "c"}])
    stamp(work, 3, "train_am --in-feats data/shards/shard_1 --out-dir exp/teachers/1")
    stamp(work, 4, "cast_votes --in-private-teachers exp/teachers --in-feats data/pool --out-v v")
    stamp(work, 5, "train_am --in-feats data/feats --out-dir exp/all")
    write_jsonl(work / "data/public/cuts_train.jsonl.gz", [{"id": "3", "speaker": "p"}])
    write_jsonl(work / "data/public/cuts_dev.jsonl.gz", [{"id": "2", "speaker": "c"}])
    stamp(work, 5, "train_am --in-feats data/public --out-dir exp/public")
    assert after("v", "exp/public", flag="votes") == COUNTS  # dev is public
    for model, why in (("exp/all", "1 of the 1"), ("exp/teachers/1", "is made of")):
        with pytest.raises(PrivacyError, match=why):
            after("v", model, flag="votes")


def test_nothing_is_known_of_persons(work):
    """Then the files count: what both are made of is private."""
    for name in ("corpus.txt", "data/tagged.jsonl"):
        write_text(work / name, '{"id": "1", "text": "x"}\n')
    stamp(work, 2, "tag_entities --in-text corpus.txt --out-text data/tagged.jsonl")
    for source in ("data/tagged.jsonl", "corpus.txt"):
        stamp(work, 3, f"make_name_lists --in-tagged {source} --out-lists lists")
        with pytest.raises(PrivacyError, match=source):
            after("data/tagged.jsonl", "lists")
    stamp(work, 3, "make_name_lists --in-tagged other.jsonl --out-lists lists")
    assert after("data/tagged.jsonl", "lists") == COUNTS
    for name in ("data/tagged.jsonl", "other.jsonl"):
        stamp(work, 2, f"tag_entities --raw-conll a.conll --out-text {name}")
    with pytest.raises(PrivacyError, match=r"a\.conll"):
        after("data/tagged.jsonl", "lists")


def test_a_release_ends_the_way_and_an_unprotected_one_does_not(work):
    release = "sanitize_text --in-private-text data/m/cuts_train.jsonl.gz --out-privacy p.json"
    stamp(work, 2, f"{release} --out-dir text", "text")
    stamp(work, 3, "train_lm --in-text text --out-dir lm")
    for protected in (False, True):
        (work / "p.json").unlink(missing_ok=True)
        with pytest.raises(PrivacyError, match=r"sanitize_text\), then stage 3"):
            after("data/m/cuts_train.jsonl.gz", "lm")  # it is gone, or of text as it is
        privacy(work / "p.json", protected=protected)
    assert after("data/m/cuts_train.jsonl.gz", "lm") == COUNTS
    stamp(work, 2, f"{release} --in-public-lists data/m/cuts_train.jsonl.gz --out-dir text", "text")
    with pytest.raises(PrivacyError):  # what it took as public is followed
        after("data/m/cuts_train.jsonl.gz", "lm")


@pytest.mark.parametrize(
    ("command", "is_public"),
    [
        ("train_lm --in-manifests data/m", False),
        ("train_lm --in-manifests data/m --raw-text t --set text=auto", True),
        ("train_lm --in-manifests data/m --raw-text t --set text=beside", False),
        ("train_lm --in-manifests data/m --in-text other.txt", True),
        ("prepare_lang --in-manifests data/m", False),
        ("prepare_lang --in-manifests data/m --set corpus_words=false", True),
        ("prepare_lang --in-manifests data/m --set train_words=false --raw-lm-text t", True),
        ("prepare_lang --in-manifests data/m --set corpus_words=false units=bpe_9", False),
        ("prepare_lang --in-public-manifests data/m", False),
        ("decode --in-model am --in-feats data/feats --set role=dev", True),
        ("decode --in-model am --in-feats data/feats --set role=train", False),
        ("decode --in-model am --in-feats data/feats", False),
        ("an_own_verb --in-manifests data/m", False),
        ("an_own_verb --in-text data/m/cuts_dev.jsonl.gz", True),
        ("run_fmp --in-manifests data/m --in-nbest nbest", True),
    ],
)
def test_a_verb_reads_some_roles(work, command, is_public):
    """Whether something made by a command is public beside a release of role train."""
    stamp(work, 2, f"{command} --out-x exp/x", "exp/x")
    if is_public:
        assert after("data/m/cuts_train.jsonl.gz", "exp/x") == COUNTS
        return
    with pytest.raises(PrivacyError):
        after("data/m/cuts_train.jsonl.gz", "exp/x")


def test_roles_of_one_folder_are_apart(work):
    """As train_dpsgd reads them: train is private, dev is public."""
    args = {"in_private_feats": Path("data/feats"), "in_public_dev": Path("data/feats")}
    assert checked(Namespace(**args), COUNTS, None) == COUNTS
    args |= {"in_public_feats": Path("data/feats"), "set": ["role=test"]}
    assert checked(Namespace(**args), COUNTS, None) == COUNTS
    with pytest.raises(PrivacyError):
        checked(Namespace(**{**args, "set": ["role=train"]}), COUNTS, None)
    with pytest.raises(PrivacyError):  # of any flag
        checked(Namespace(**args, in_lang=Path("data/feats/cuts_train.jsonl.gz")), COUNTS, None)


def test_a_role_of_the_configuration(work):
    write_text(work / "decode.yaml", "role: dev\n")
    decode = "decode --in-model am --in-feats data/feats --out-nbest nbest"
    stamp(work, 2, decode, configs=["decode.yaml"])
    assert after("data/m/cuts_train.jsonl.gz", "nbest") == COUNTS
