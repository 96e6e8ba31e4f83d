"""The verbs of PATE's votes from the command line, on a tiny pool and teachers of random
weights.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.fileio import read_json, write_json, write_text
from privasr_k2.pate.student_data import read_labels
from privasr_k2.pate.votes import read_votes, write_votes
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.pate.gnmax import confident_gnmax_epsilon, gnmax_epsilon
from privasr_k2.privacy.pate.lnmax import lnmax_epsilon
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.spending import guarantees
from tests.support.conf import section
from tests.support.small_pate import made_votes, pool, save_teachers, write_lists, write_shards_file
from tests.support.verbs import call, refused

pytest.importorskip("lhotse")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pool(tmp_path)
    write_lists(tmp_path / "nbest")
    save_teachers(tmp_path / "teachers", "rnnt", 4)
    write_shards_file(tmp_path / "shards", 4)
    return tmp_path


def cast(folder: Path, *more: object, job: int = 1, lists: bool = True) -> None:
    nbest = ("--in-public-nbest", folder / "nbest") if lists else ()
    call(
        f"cast_votes --in-private-teachers {folder}/teachers --in-shards {folder}/shards"
        f" --in-feats {folder}/feats --in-lang {folder}/lang",
        *nbest,
        f"--out-votes {folder}/votes/{job}.safetensors --config {section('votes')}",
        f"--set job={job}",
        *more,
    )


def aggregate(
    folder: Path, name: str, *more: object, release: bool = True, flags: tuple = ()
) -> None:
    given = (
        f"--in-private-votes {folder}/votes --in-lang {folder}/lang"
        f" --in-public-nbest {folder}/nbest"
    )
    if release:
        flags = (f"--out-privacy {folder}/{name}.json --ledger {folder}/ledger.json", *flags)
    settings = f"--out-dir {folder}/{name} --config {section('pate')} --set data=tiny/train"
    call(f"aggregate_votes {given}", *flags, settings, "delta=1e-3", *more)


def deal(folder: Path, teachers: int, out: str, *more: str, roster: str = "roster") -> None:
    """make_shards by the roster of the pool's 6 speakers, or of its 12 utterances."""
    write_text(folder / "roster", "".join(f"s{n}\n" for n in range(6)))
    write_text(folder / "utt2spk", "".join(f"train-{n} s{n % 6}\n" for n in range(12)))
    given = (
        f"--in-private-feats {folder}/feats --in-public-dev {folder}/feats"
        f" --in-public-roster {folder}/{roster} --out-dir {folder}/{out}"
    ).split()
    call(
        "make_shards", *given, "--config", section("shards"), "--set", f"teachers={teachers}", *more
    )


def train_and_vote(folder: Path, of: str) -> None:
    """Heads of all shards, and what they vote on the pool, which keeps all speakers."""
    call(
        f"train_heads --in-shards {folder}/shards --in-model {folder}/public"
        f" --in-lang {folder}/lang --out-dir {folder}/teachers --device cpu",
        f"--config {section('heads')}",
        *("--set", "steps=3", "batch=2", "heads_at_once=1"),
    )
    cast(folder, f"of={of}")


@pytest.mark.parametrize("mechanism", ["gnmax", "confident_gnmax", "gaussian_posteriors"])
def test_nobody_sees_by_the_outputs_that_a_speaker_has_no_data(
    tmp_path: Path, mechanism: str
) -> None:
    """Six teachers of six speakers: without one's data the run ended with an empty shard."""
    from privasr_k2.data.manifests import load_cuts, save_cuts

    shapes = []
    of = "posteriors" if mechanism == "gaussian_posteriors" else "votes"
    for speaker in ("nobody", "s3"):
        folder = tmp_path / speaker
        feats, _ = pool(folder)
        write_lists(folder / "nbest")
        save_teachers(folder / "models", "ctc", 1)
        (folder / "models" / "1").rename(folder / "public")
        cuts = list(load_cuts(feats, "train"))
        save_cuts([c for c in cuts if c.supervisions[0].speaker != speaker], feats, "train")
        deal(folder, 6, "shards")
        train_and_vote(folder, of)
        votes = read_votes(folder / "votes")
        assert votes.change is Change.GIVEN and votes.people.most_units == 1
        settings = (f"mechanism={mechanism}", "max_answers=5", "threshold=4", "epsilon=30")
        aggregate(folder, "labels", *settings)
        about = read_json(folder / "labels" / "labels.json")
        assert about["units_in_a_shard"] == 1 and about["sensitivity"] == {"l1": 1, "l2": 1.0}
        [entry] = Ledger(folder / "ledger.json").entries()
        assert entry.spending.person_units == 1 and entry.people is not None
        private = ("release", "votes_answered", "utterances_answered", "as_published")
        fixed = {name: value for name, value in about.items() if name not in private}
        shapes.append((fixed, entry.spending, (folder / "shards" / "shards.json").read_text()))
        totals = [int(row.sum()) for row in np.split(votes.counts, np.cumsum(votes.sizes)[:-1])]
        if of == "votes":
            assert totals == [6 if speaker == "nobody" else 5] * 11
    assert shapes[0] == shapes[1]


def test_a_person_of_many_utterances_has_an_epsilon_of_their_own(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "shards" / "shards.json").unlink()
    deal(folder, 4, "shards4", "unit=utterance", roster="utt2spk")
    (folder / "shards4" / "shards.json").rename(folder / "shards" / "shards.json")
    cast(folder)
    caplog.set_level("INFO")
    aggregate(folder, "labels", "max_answers=5")
    [entry] = Ledger(folder / "ledger.json").entries()
    assert entry.spending.unit == "utterance" and entry.spending.person_units == 2
    [guarantee] = guarantees([entry.spending])
    assert 8 < 1.5 * guarantee.epsilon.value < guarantee.person.value < float("inf")
    with refused("for each person"):
        aggregate(folder, "other", "max_answers=5", flags=("--max-epsilon", "10"))


def test_from_shards_to_labels(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deal(folder, 3, "dealt")
    assert read_json(folder / "dealt" / "shards.json")["teachers"] == 3
    for job in (1, 2):
        cast(folder, "num_jobs=2", job=job)
    caplog.set_level("INFO")
    # As 075ac45 entered it: it is read below, not spent again.
    with monkeypatch.context() as earlier:
        earlier.setattr("privasr_k2.privacy.release.SCHEME", "")
        aggregate(folder, "labels", "max_answers=5")
    assert "plan: at most 5 votes on 5 of 11 utterances" in caplog.text
    assert "as published, NO GUARANTEE" in caplog.text and "for each speaker of 12" in caplog.text
    labels = read_labels(folder / "labels" / "labels.jsonl")
    assert len(labels) == 5 and "train-11" not in labels
    about = read_json(folder / "labels" / "labels.json")
    assert about["votes_answered"] == 5 and 7.9 < about["epsilon"]["value"] <= 8
    [entry] = Ledger(folder / "labels.json").entries()
    assert entry.spending.unit == "speaker" and entry.spending.units == 12
    before = (folder / "labels" / "labels.jsonl").read_text()
    aggregate(folder, "labels", "max_answers=5")
    assert (folder / "labels" / "labels.jsonl").read_text() == before
    assert len(Ledger(folder / "ledger.json").entries()) == 1
    aggregate(folder, "clean", "epsilon=.inf", release=False)
    assert len(read_labels(folder / "clean" / "labels.jsonl")) == 11
    assert "NO GUARANTEE; what is made of these labels" in caplog.text
    assert len(Ledger(folder / "ledger.json").entries()) == 1
    report = folder / "agreement.json"
    call(f"vote_costs --in-private-votes {folder}/votes --out-agreement {report}")
    assert read_json(report)["queries"] == 11 and read_json(report)["for_release"] is False


@pytest.mark.parametrize("mechanism", ["gnmax", "lnmax", "confident_gnmax"])
def test_costs_of_these_votes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    votes, _ = made_votes([[90, 10, 0], [100, 0], [52, 48, 0], [99, 1, 0]])
    votes = replace(votes, vote="frame", digests=(), tokens=("<blk>", "▁a", "▁b"))
    write_votes(folder / "votes" / "1.safetensors", votes)
    settings = [f"mechanism={mechanism}", "noise=8", "epsilon=1000", "threshold=60"]
    if mechanism == "confident_gnmax":  # which does not answer frames
        monkeypatch.setattr("privasr_k2.pate.aggregate.FRAME", "none of these")
        monkeypatch.setattr("privasr_k2.pate.aggregate.UTTERANCE", "none of these")
    aggregate(folder, "labels", *settings)
    costs = folder / "costs.json"
    given = (
        f"--in-private-votes {folder}/votes --in-labels {folder}/labels --out-costs {costs}".split()
    )
    call("vote_costs", *given)
    found, about = read_json(costs), read_json(folder / "labels" / "labels.json")
    assert found["for_release"] is False and found["delta"] == about["epsilon"]["delta"]
    assert found["epsilon_for_any_votes"] == about["epsilon"]["value"]
    # Empty classes are added to the second query, which changes nothing here.
    counts = np.array([[90, 10, 0], [100, 0, 0], [52, 48, 0], [99, 1, 0]])
    wanted = {
        "gnmax": lambda: gnmax_epsilon(counts, sigma=8, discrete=True, delta=1e-3),
        "lnmax": lambda: lnmax_epsilon(counts, scale=8, discrete=True, delta=1e-3),
        "confident_gnmax": lambda: confident_gnmax_epsilon(
            counts, sigma=8, answers=4, threshold=60, threshold_sigma=12, discrete=True, delta=1e-3
        ),
    }[mechanism]()
    assert found["epsilon"] == pytest.approx(wanted.epsilon)
    assert found["epsilon"] <= found["epsilon_for_any_votes"] * 1.05


def test_costs_of_other_votes_are_refused(folder: Path) -> None:
    cast(folder)
    aggregate(folder, "labels", "max_answers=5")
    aggregate(folder, "clean", "epsilon=.inf", release=False)
    votes, _ = made_votes([[9, 1]])
    write_votes(folder / "other" / "1.safetensors", votes)
    for flags, text in (
        ((folder / "other", folder / "labels"), "those that were answered"),
        ((folder / "votes", folder / "clean"), "labels with a claim"),
    ):
        with refused(text):
            call(
                f"vote_costs --in-private-votes {flags[0]} --in-labels {flags[1]}"
                f" --out-costs {folder}/c.json"
            )


def vote_tokens(folder: Path, name: str, *settings: str, public: str | None = None) -> None:
    """Thirty answers at most, about three utterances."""
    flags = [
        f"--in-private-teachers {folder}/teachers --in-shards {folder}/shards"
        f" --in-feats {folder}/feats --out-dir {folder}/{name} --out-privacy {folder}/{name}.json"
        f" --ledger {folder}/ledger.json --config {section('pate')} {section('vote_tokens')}"
    ]
    asked = "--set data=tiny/train noise=0.3 epsilon=1e5 delta=1e-3 utterances=3"
    if public is not None:
        flags += ["--in-public-model", folder / public]
    else:
        asked += " margin=0 max_answers=30"
    call("vote_tokens", *flags, asked, *settings)


def test_posteriors_and_tokens(folder: Path) -> None:
    cast(folder, "of=posteriors", "weights=[0.4,0.2,0.2,0.2]")
    aggregate(folder, "labels", "mechanism=gaussian_posteriors", "noise=0.3", "epsilon=1e4")
    assert len(read_labels(folder / "labels" / "labels.jsonl")) == 11
    vote_tokens(folder, "tokens")
    about = read_json(folder / "tokens" / "labels.json")
    assert about["vote"] == "token"
    assert about["utterances_asked"] == 3
    assert about["votes_answered"] <= 30
    assert len(Ledger(folder / "ledger.json").entries()) == 2
    shutil.copytree(folder / "teachers/1", folder / "public")
    vote_tokens(folder, "sure", "public_threshold=0.4", "top_k=3", public="public")
    assert read_json(folder / "sure" / "labels.json")["votes_answered"] < about["votes_answered"]
    assert len(Ledger(folder / "ledger.json").entries()) == 3
    planned = [
        f"--in-shards {folder}/shards --in-feats {folder}/feats --in-public-model {folder}/public"
        f" --out-plan {folder}/plan.json --config {section('pate')} {section('vote_tokens')}"
        " --set epsilon=8 utterances=3"
    ]
    call("vote_tokens", *planned)  # reads no teacher, spends nothing
    plan = read_json(folder / "plan.json")
    assert plan["votes"] > 0 and plan["noise"] > 0 and plan["epsilon"] <= 8
    assert len(Ledger(folder / "ledger.json").entries()) == 3
    with refused("--out-plan alone"):
        call("vote_tokens", *planned, f"--out-dir {folder}/both")


def test_the_plan_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(
        f"privacy_plan --kind queries --out-plan {tmp_path}/plan.json"
        f" --config {section('vote_plan')} --set classes=500"
    )
    assert "13 votes" in capsys.readouterr().out
    assert read_json(tmp_path / "plan.json")["plans"][0]["votes"] == 13
    persons = {f"s{n}": 1 for n in range(15)}
    shards = {"format": "privasr_k2 shards 2", "seed": 1, "teachers": 15, "unit": "speaker"}
    roster = {name: n + 1 for n, name in enumerate(persons)}
    write_json(tmp_path / "shards.json", {**shards, "roster": roster, "persons": persons})
    call(
        f"privacy_plan --kind queries --in-shards {tmp_path}/shards.json"
        f" --config {section('vote_plan')} --set classes=500"
    )
    assert "26 votes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (("epsilon=0",), "epsilon must be above 0"),
        (
            ("mechanism=confident_gnmax", "threshold=5", "noise=100"),
            "at most 4, the number of teachers",
        ),
        (("noise=0.1",), "that it buys"),
        (("mechanism=gaussian_posteriors",), "one of gnmax"),
        (("data=''",), "a corpus and its part"),
        (("delta=0.5",), "1/units"),
    ],
)
def test_what_cannot_be_released_is_refused(folder: Path, more: tuple, text: str) -> None:
    cast(folder)
    with refused(text):
        aggregate(folder, "labels", *more)
    assert not (folder / "labels").exists() and not (folder / "ledger.json").exists()


def test_the_budget_of_the_ledger_holds(folder: Path) -> None:
    cast(folder)
    with refused("--max-epsilon"):
        aggregate(folder, "labels", "max_answers=5", flags=("--max-epsilon", 5))
    for name, more, release in (("a", ("epsilon=.inf",), True), ("b", (), False)):
        with refused("out-privacy"):
            aggregate(folder, name, *more, release=release)


def test_what_cannot_be_voted_on_is_refused_before_anything_is_read(folder: Path) -> None:
    with refused("--in-public-nbest"):
        cast(folder, lists=False)
    with refused("sum to 1"):
        cast(folder, "of=posteriors", "weights=[0.5,0.4]")
    with refused("outputs of CTC"):
        cast(folder, "vote=frame")
    # A list that a teacher proposed.
    write_text(folder / ".stages" / "lock", "")
    for number, (command, output) in enumerate(
        (
            ("make_shards --in-private-feats feats --out-dir shards", "shards"),
            ("train_am --in-feats shards/shard_1 --out-dir teachers/1", "teachers/1"),
            ("decode --in-model teachers/1 --out-nbest nbest/1.jsonl", "nbest/1.jsonl"),
        ),
        start=1,
    ):
        stamp = {"number": number, "title": "", "fingerprint": "f", "outputs": {output: "0"}}
        write_json(folder / f".stages/{number}.json", {**stamp, "command": command.split()})
    with refused("a public model, or lists of one"):
        cast(folder)
    with refused("a public model, or lists of one"):
        vote_tokens(folder, "tokens", "public_threshold=0.6", public="teachers/1")
    for setting in ("public_threshold=0.6", "margin=1"):
        with refused("--in-public-model"):
            vote_tokens(folder, "tokens", setting)
    feats = ("--in-private-feats", folder / "feats", "--in-public-dev", folder / "feats")
    conf = ("--config", section("shards"), "--set", "teachers=7")
    with refused("7 units or more"):
        deal(folder, 7, "dealt")
    with refused("--in-public-roster"):
        call("make_shards", *feats, "--out-dir", folder / "dealt", *conf)
    assert not (folder / "votes").exists() and not (folder / "dealt").exists()
