"""The verbs of PATE's votes from the command line, on a tiny pool and teachers of random
weights.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.fileio import read_json, write_json, write_text
from privasr_k2.pate.student_data import read_labels
from privasr_k2.pate.votes import write_votes
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.pate.gnmax import confident_gnmax_epsilon, gnmax_epsilon
from privasr_k2.privacy.pate.lnmax import lnmax_epsilon
from tests.support.conf import section
from tests.support.small_pate import made_votes, pool, save_teachers, write_lists, write_shards_file
from tests.support.verbs import call

pytest.importorskip("lhotse")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pool(tmp_path)
    write_lists(tmp_path / "nbest")
    save_teachers(tmp_path / "teachers", "rnnt", 4)
    write_shards_file(tmp_path / "shards", 4)
    return tmp_path


def cast(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *more: object, job: int = 1, lists: bool = True
) -> None:
    given = (
        "--in-private-teachers",
        folder / "teachers",
        "--in-shards",
        folder / "shards",
        "--in-feats",
        folder / "feats",
    )
    nbest = ("--in-public-nbest", folder / "nbest") if lists else ()
    out = (
        "--in-lang",
        folder / "lang",
        *nbest,
        "--out-votes",
        folder / "votes" / f"{job}.safetensors",
    )
    call(
        monkeypatch,
        "cast_votes",
        *given,
        *out,
        "--config",
        section("votes"),
        "--set",
        f"job={job}",
        *more,
    )


def aggregate(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    name: str,
    *more: object,
    release: bool = True,
    flags: tuple = (),
) -> None:
    given = (
        "--in-private-votes",
        folder / "votes",
        "--in-lang",
        folder / "lang",
        "--in-public-nbest",
        folder / "nbest",
    )
    privacy = (
        ("--out-privacy", folder / f"{name}.json", "--ledger", folder / "ledger.json")
        if release
        else ()
    )
    out = ("--out-dir", folder / name, *privacy, *flags, "--config", section("pate"))
    call(
        monkeypatch,
        "aggregate_votes",
        *given,
        *out,
        "--set",
        "data=tiny/train",
        "delta=1e-3",
        *more,
    )


def test_from_shards_to_labels(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given = (
        "--in-private-feats",
        folder / "feats",
        "--in-public-dev",
        folder / "feats",
        "--out-dir",
        folder / "dealt",
    )
    call(monkeypatch, "make_shards", *given, "--config", section("shards"), "--set", "teachers=3")
    assert read_json(folder / "dealt" / "shards.json")["teachers"] == 3
    for job in (1, 2):
        cast(monkeypatch, folder, "num_jobs=2", job=job)
    caplog.set_level("INFO")
    with (
        monkeypatch.context() as earlier
    ):  # as 075ac45 entered it: it is read below, not spent again
        earlier.setattr("privasr_k2.privacy.release.SCHEME", "")
        aggregate(monkeypatch, folder, "labels", "max_answers=5")
    assert "plan: at most 5 votes on 5 of 11 utterances" in caplog.text
    assert "as published, NO GUARANTEE" in caplog.text and "for each speaker of 12" in caplog.text
    labels = read_labels(folder / "labels" / "labels.jsonl")
    assert len(labels) == 5 and "train-11" not in labels
    about = read_json(folder / "labels" / "labels.json")
    assert about["votes_answered"] == 5 and 7.9 < about["epsilon"]["value"] <= 8
    [entry] = Ledger(folder / "labels.json").entries()
    assert entry.spending.unit == "speaker" and entry.spending.units == 12
    before = (folder / "labels" / "labels.jsonl").read_text()
    aggregate(monkeypatch, folder, "labels", "max_answers=5")
    assert (folder / "labels" / "labels.jsonl").read_text() == before
    assert len(Ledger(folder / "ledger.json").entries()) == 1
    aggregate(monkeypatch, folder, "clean", "epsilon=.inf", release=False)
    assert len(read_labels(folder / "clean" / "labels.jsonl")) == 11
    assert "NO GUARANTEE; what is made of these labels" in caplog.text
    assert len(Ledger(folder / "ledger.json").entries()) == 1
    report = folder / "agreement.json"
    call(
        monkeypatch, "vote_costs", "--in-private-votes", folder / "votes", "--out-agreement", report
    )
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
    aggregate(monkeypatch, folder, "labels", *settings)
    costs = folder / "costs.json"
    given = (
        "--in-private-votes",
        folder / "votes",
        "--in-labels",
        folder / "labels",
        "--out-costs",
        costs,
    )
    call(monkeypatch, "vote_costs", *given)
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


def test_costs_of_other_votes_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cast(monkeypatch, folder)
    aggregate(monkeypatch, folder, "labels", "max_answers=5")
    aggregate(monkeypatch, folder, "clean", "epsilon=.inf", release=False)
    votes, _ = made_votes([[9, 1]])
    write_votes(folder / "other" / "1.safetensors", votes)
    for flags, text in (
        ((folder / "other", folder / "labels"), "those that were answered"),
        ((folder / "votes", folder / "clean"), "labels with a claim"),
    ):
        given = (
            "--in-private-votes",
            flags[0],
            "--in-labels",
            flags[1],
            "--out-costs",
            folder / "c.json",
        )
        with pytest.raises(SystemExit, match="2"):
            call(monkeypatch, "vote_costs", *given)
        assert text in capsys.readouterr().err


def vote_tokens(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    name: str,
    *settings: str,
    public: str | None = None,
) -> None:
    """Thirty answers at most, about three utterances."""
    flags = {
        "private-teachers": folder / "teachers",
        "shards": folder / "shards",
        "feats": folder / "feats",
    }
    if public is not None:
        flags["public-model"] = folder / public
    given = [part for flag, path in flags.items() for part in (f"--in-{flag}", path)]
    out = ("--out-dir", folder / name, "--out-privacy", folder / f"{name}.json")
    conf = (
        "--config",
        section("pate"),
        section("vote_tokens"),
        "--set",
        "data=tiny/train",
        "noise=0.3",
    )
    asked = ("epsilon=1e5", "delta=1e-3", "utterances=3", "max_answers=30")
    ledger = ("--ledger", folder / "ledger.json")
    call(monkeypatch, "vote_tokens", *given, *out, *ledger, *conf, *asked, *settings)


def test_posteriors_and_tokens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cast(monkeypatch, folder, "of=posteriors", "weights=[0.4,0.2,0.2,0.2]")
    aggregate(
        monkeypatch, folder, "labels", "mechanism=gaussian_posteriors", "noise=0.3", "epsilon=1e4"
    )
    assert len(read_labels(folder / "labels" / "labels.jsonl")) == 11
    vote_tokens(monkeypatch, folder, "tokens")
    about = read_json(folder / "tokens" / "labels.json")
    assert (
        about["vote"] == "token"
        and about["utterances_asked"] == 3
        and about["votes_answered"] <= 30
    )
    assert len(Ledger(folder / "ledger.json").entries()) == 2
    vote_tokens(monkeypatch, folder, "sure", "public_threshold=0.4", "top_k=3", public="teachers/1")
    assert read_json(folder / "sure" / "labels.json")["votes_answered"] < about["votes_answered"]
    assert len(Ledger(folder / "ledger.json").entries()) == 3


def test_the_plan_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = (
        "--out-plan",
        tmp_path / "plan.json",
        "--config",
        section("vote_plan"),
        "--set",
        "classes=500",
    )
    call(monkeypatch, "privacy_plan", "--kind", "queries", *out)
    assert (
        "13 votes" in capsys.readouterr().out
        and read_json(tmp_path / "plan.json")["plans"][0]["votes"] == 13
    )


def refused(
    capsys: pytest.CaptureFixture[str], text: str, error: pytest.ExceptionInfo[SystemExit]
) -> None:
    assert error.value.code == 2
    assert text in capsys.readouterr().err


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
def test_what_cannot_be_released_is_refused(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple,
    text: str,
) -> None:
    cast(monkeypatch, folder)
    with pytest.raises(SystemExit) as error:
        aggregate(monkeypatch, folder, "labels", *more)
    refused(capsys, text, error)
    assert not (folder / "labels").exists() and not (folder / "ledger.json").exists()


def test_the_budget_of_the_ledger_holds(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cast(monkeypatch, folder)
    with pytest.raises(SystemExit) as error:
        aggregate(monkeypatch, folder, "labels", "max_answers=5", flags=("--max-epsilon", 5))
    refused(capsys, "--max-epsilon", error)
    for name, more, release in (("a", ("epsilon=.inf",), True), ("b", (), False)):
        with pytest.raises(SystemExit) as error:
            aggregate(monkeypatch, folder, name, *more, release=release)
        refused(capsys, "out-privacy", error)


def test_what_cannot_be_voted_on_is_refused_before_anything_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        cast(monkeypatch, folder, lists=False)
    refused(capsys, "--in-public-nbest", error)
    with pytest.raises(SystemExit) as error:
        cast(monkeypatch, folder, "of=posteriors", "weights=[0.5,0.4]")
    refused(capsys, "sum to 1", error)
    with pytest.raises(SystemExit) as error:
        cast(monkeypatch, folder, "vote=frame")
    refused(capsys, "outputs of CTC", error)
    # A list that a teacher proposed.
    write_text(folder / ".stages" / "lock", "")
    for number, command, output in (
        (1, ["make_shards", "--in-private-feats", "feats", "--out-dir", "shards"], "shards"),
        (2, ["train_am", "--in-feats", "shards/shard_1", "--out-dir", "teachers/1"], "teachers/1"),
        (
            3,
            ["decode", "--in-model", "teachers/1", "--out-nbest", "nbest/1.jsonl"],
            "nbest/1.jsonl",
        ),
    ):
        stamp = {
            "number": number,
            "title": "",
            "fingerprint": "f",
            "command": command,
            "outputs": {output: "0"},
        }
        write_json(folder / ".stages" / f"{number}.json", stamp)
    with pytest.raises(SystemExit) as error:
        cast(monkeypatch, folder)
    refused(capsys, "a public model, or lists of one", error)
    with pytest.raises(SystemExit) as error:
        vote_tokens(monkeypatch, folder, "tokens", "public_threshold=0.6", public="teachers/1")
    refused(capsys, "a public model, or lists of one", error)
    with pytest.raises(SystemExit) as error:
        vote_tokens(monkeypatch, folder, "tokens", "public_threshold=0.6")
    refused(capsys, "--in-public-model", error)
    feats = ("--in-private-feats", folder / "feats", "--in-public-dev", folder / "feats")
    conf = ("--config", section("shards"), "--set", "teachers=7")
    with pytest.raises(SystemExit) as error:
        call(monkeypatch, "make_shards", *feats, "--out-dir", folder / "dealt", *conf)
    refused(capsys, "7 units or more", error)
    assert not (folder / "votes").exists() and not (folder / "dealt").exists()
