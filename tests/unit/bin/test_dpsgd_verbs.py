"""train_dpsgd from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import read_json
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.spending import guarantees
from tests.support.private_speech import FILES, made_data, saved_model
from tests.support.verbs import call, refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verbs")
    _, _, lang = made_data(folder)
    saved_model(folder / "init", lang)
    return folder


def flags(folder: Path, out: Path) -> list[object]:
    private = ["--in-private-feats", folder / "feats", "--in-public-dev", folder / "feats"]
    public = ["--in-lang", folder / "lang", "--in-init", folder / "init"]
    return [*private, *public, "--out-dir", out, "--device", "cpu", "--config", *FILES]


def spent(out: Path) -> list[object]:
    return ["--out-privacy", out.parent / "privacy.json", "--ledger", out.parent / "ledger.json"]


def test_with_a_claim(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    out = tmp_path / "am"
    claim = ["--set", "data=made/train", "epsilon=20", "delta=1e-3", "rate=1", "steps=3"]
    call("train_dpsgd", *flags(folder, out), *spent(out), *claim)
    [entry] = read_json(tmp_path / "privacy.json")["entries"]
    assert entry["spending"]["unit"] == "speaker" and entry["spending"]["units"] == 4
    assert entry["spending"]["person_units"] == 1
    assert "plan: noise" in caplog.text and "epsilon 20" in caplog.text
    assert (out / "model.safetensors").is_file() and (out / "model.yaml").is_file()
    assert read_json(out / "dpsgd.json")["claim"] is True


def test_an_utterance_of_a_person_who_said_more(folder: Path, tmp_path: Path) -> None:
    """A speaker of three utterances is charged for four of them: a group, as of users' devices."""
    out, ledger = tmp_path / "am", tmp_path / "ledger.json"
    claim = ["--set", "data=made/train", "unit=utterance", "noise=2", "delta=1e-3", "rate=0.5"]
    call("train_dpsgd", *flags(folder, out), *spent(out), *claim, "steps=2")
    [entry] = Ledger(ledger).entries()
    assert entry.spending.person_units == 4 and entry.people is not None
    [guarantee] = guarantees([entry.spending])
    assert 2 * guarantee.epsilon.value < guarantee.person.value < float("inf")
    again = [
        *flags(folder, tmp_path / "b"),
        "--ledger",
        ledger,
        "--out-privacy",
        tmp_path / "b.json",
    ]
    limit = f"{guarantee.person.value - 0.1:.2f}"
    with refused("for each person"):
        call("train_dpsgd", *again, "--max-epsilon", limit, *claim, "steps=2")


@pytest.mark.parametrize(
    ("claim", "more", "message"),
    [
        (["epsilon=1"], [], "--out-privacy and --ledger"),
        (["epsilon=0"], ["spent"], "epsilon must be above 0"),
        (["noise=1", "delta=0.3"], ["spent"], "1/units"),
        ([], ["spent"], "no --out-privacy without noise"),
        (["noise=1", "trained=[nothing]"], ["spent"], "nothing"),
        (["noise=1", "rate=1"], ["spent", "limit"], "--max-epsilon"),
    ],
)
def test_nothing_is_spent_on_bad_input(
    folder: Path, tmp_path: Path, claim: list[str], more: list[str], message: str
) -> None:
    out = tmp_path / "am"
    given = [*flags(folder, out), *(spent(out) if "spent" in more else [])]
    given += ["--max-epsilon", "0.01"] if "limit" in more else []
    with refused(message):
        call("train_dpsgd", *given, "--set", "data=made/train", "delta=1e-3", *claim)
    assert not (tmp_path / "privacy.json").exists() and not out.exists()
