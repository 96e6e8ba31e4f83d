"""Private verbs refuse, as public, what is made of their private inputs; nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from privasr_k2.federated.clients import write_clients
from privasr_k2.fileio import read_json, write_jsonl, write_text
from privasr_k2.pate.votes import write_votes
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.spending import guarantees
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, write_nbest
from tests.support import fed_small, private_speech, small_pate
from tests.support.conf import section
from tests.support.made_stamps import stamp, work_folder
from tests.support.verbs import call, refused

OVERRIDE = "--public-from-private true"
MESSAGE = "an input of public data, or of what was released"


@dataclass(frozen=True)
class Verb:
    """A release below a folder: its flags, and the stage that makes ``public`` of ``private``."""

    words: str
    maker: str
    private: str
    public: str


def sanitize_text(folder: Path) -> Verb:
    entities = {"text": "ask ann", "entities": [[1, 2, "PER"]]}
    write_jsonl(folder / "text.jsonl", [{"id": str(n), **entities} for n in range(3)])
    write_text(folder / "lists" / "per.txt", "ann\neve\n")
    words = "sanitize_text --in-private-text text.jsonl --in-public-lists lists --out-dir out"
    words += f" --config {section('sanitize')} --set data=toy/train"
    return Verb(
        words, "make_name_lists --in-tagged PRIVATE --out-lists lists", "text.jsonl", "lists"
    )


def train_fedlm(folder: Path) -> Verb:
    write_clients(folder / "clients.jsonl.gz", fed_small.made_clients(14))
    fed_small.saved_model(folder / "init")
    words = "train_fedlm --in-private-clients clients.jsonl.gz --in-public-init init --out-dir out"
    words += f" --device cpu --config {section('fedlm')} --set rounds=3 cohort=5 data=toy/train"
    words += " select_round=last privacy.noise=1 privacy.clip=0.5 weights.by=uniform"
    maker = "finetune_lm --in-clients PRIVATE --in-init other --out-dir init"
    return Verb(words, maker, "clients.jsonl.gz", "init")


def release_fmp(folder: Path) -> Verb:
    pytest.importorskip("scipy")
    fed_small.saved_model(folder / "lm")
    said = fed_small.VOCABULARY.words[2]
    hyps = (Hypothesis(1, said, -1.0, {}),)
    write_nbest(folder / "nbest/1.jsonl", [NbestList("u", "test", "s", said, False, hyps)])
    turn = {"id": "u", "client": "s", "user": "s", "kind": "speaker", "ref_words": 1}
    write_jsonl(folder / "timeline.jsonl", [turn])
    words = "release_fmp --in-private-nbest nbest --in-private-timeline timeline.jsonl"
    words += f" --in-public-lm lm --out-release out --config {section('fmp_release')}"
    words += " --set data=toy/test unit=user epsilon=1 rounds=2"
    return Verb(words, "train_lm --in-text PRIVATE --out-dir lm", "timeline.jsonl", "lm")


def train_dpsgd(folder: Path) -> Verb:
    _, _, lang = private_speech.made_data(folder)
    private_speech.saved_model(folder / "init", lang)
    files = " ".join(map(str, private_speech.FILES))
    words = "train_dpsgd --in-private-feats feats --in-public-dev feats --in-lang lang"
    words += f" --in-public-init init --out-dir out --device cpu --config {files}"
    words += " --set data=made/train epsilon=20 delta=1e-3 rate=1 steps=3"
    return Verb(words, "train_am --in-feats PRIVATE --out-dir init", "feats", "init")


def aggregate_votes(folder: Path) -> Verb:
    small_pate.pool(folder)
    votes, _ = small_pate.made_votes([[3, 1, 0], [4, 0]])
    votes = replace(votes, vote="frame", digests=(), tokens=("<blk>", "▁a", "▁b"))
    write_votes(folder / "votes" / "1.safetensors", votes)
    words = "aggregate_votes --in-private-votes votes --in-lang lang"
    words += f" --out-dir out --config {section('pate')} --set data=tiny/train delta=1e-3"
    return Verb(words, "prepare_lang --in-further-text PRIVATE --out-dir lang", "votes", "lang")


def vote_tokens(folder: Path) -> Verb:
    small_pate.pool(folder)
    small_pate.save_teachers(folder / "teachers", "rnnt", 4)
    small_pate.write_shards_file(folder / "shards", 4)
    words = "vote_tokens --in-private-teachers teachers --in-shards shards --in-feats feats"
    words += f" --out-dir out --config {section('pate')} {section('vote_tokens')} --set"
    words += (
        " data=tiny/train noise=0.3 epsilon=1e5 delta=1e-3 utterances=3 max_answers=30 margin=0"
    )
    return Verb(words, "an_own_verb --in-model PRIVATE --out-dir feats", "teachers", "feats")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(work_folder(tmp_path / "work"))
    return tmp_path / "work"


def release(verb: Verb, *more: object) -> None:
    call(f"{verb.words} --out-privacy privacy.json --ledger private/ledger.json", *more)


@pytest.mark.parametrize(
    "of", [sanitize_text, train_fedlm, release_fmp, train_dpsgd, aggregate_votes, vote_tokens]
)
def test_what_is_made_of_the_private_input_is_refused(
    folder: Path, of: Callable[[Path], Verb]
) -> None:
    verb = of(folder)
    stamp(folder, 3, verb.maker.replace("PRIVATE", verb.private), verb.public)
    with refused(MESSAGE):
        release(verb)
    assert not (folder / "private").exists() and not (folder / "out").exists()


def test_lists_of_other_text_are_accepted_and_cost_what_they_did(folder: Path) -> None:
    verb = sanitize_text(folder)
    release(verb)  # no stage has made them
    stamp(folder, 3, verb.maker.replace("PRIVATE", "public.jsonl"), verb.public)
    release(verb)
    [entry] = Ledger(folder / "privacy.json").entries()
    [guarantee] = guarantees([entry.spending])
    assert 0 < guarantee.epsilon.value < math.inf
    assert "epsilon_per_mention" in read_json(folder / "out" / "about.json")


def test_a_roster_names_the_protected_people(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    verb = train_dpsgd(folder)
    write_text(folder / "sides/roster.txt", "".join(f"speaker{n}\n" for n in range(5)))
    caplog.set_level("INFO")
    stamp(folder, 2, "split_corpus --in-feats feats --out-dir sides", "sides")
    stamp(folder, 2, "compute_features --in-manifests data --out-dir feats", "feats")
    release(verb, "--in-public-roster", "sides/roster.txt")
    assert "--in-lang lang: no stage has written it" in caplog.text
    assert "--in-public-dev feats: no stage" not in caplog.text
    [entry] = Ledger(folder / "privacy.json").entries()
    assert entry.spending.units == 5 and entry.spending.person_units == 1
    assert guarantees([entry.spending])[0].epsilon.value <= 20


@pytest.mark.parametrize(
    ("of", "file"), [(sanitize_text, "about.json"), (vote_tokens, "labels.json")]
)
def test_the_override_makes_epsilon_infinite_and_no_limit_allows_it(
    folder: Path, of: Callable[[Path], Verb], file: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    verb = of(folder)
    stamp(folder, 3, verb.maker.replace("PRIVATE", verb.private), verb.public)
    with refused("--max-epsilon"):
        release(verb, OVERRIDE, "--max-epsilon", 1000)
    assert not (folder / "privacy.json").exists()
    release(verb, OVERRIDE)
    [entry] = Ledger(folder / "privacy.json").entries()
    assert math.isinf(guarantees([entry.spending])[0].epsilon.value)
    assert any(verb.public in sentence for sentence in entry.spending.does_not_cover)
    assert "epsilon infinite" in caplog.text
    claimed = [v for k, v in read_json(folder / "out" / file).items() if k.startswith("epsilon")]
    assert not any(claimed)
