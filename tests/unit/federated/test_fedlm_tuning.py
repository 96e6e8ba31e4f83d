"""Learning rates tried on clients of dev, and the kept round."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.federated import round_files
from privasr_k2.federated.clients import ClientText, Utterance
from privasr_k2.federated.fedlm_tuning import TunedConfig, divide, read_rates, sized, tune
from privasr_k2.federated.settings import FedLmConfig
from privasr_k2.federated.train import train_fedlm
from privasr_k2.fileio import read_json, write_json
from privasr_k2.training.distributed import Process, join
from privasr_k2.training.weights import load_tensors
from tests.support.conf import section
from tests.support.fed_small import (
    PRIVATE,
    VOCABULARY,
    made_clients,
    saved_model,
    settings,
    trainer,
)

DEV = [["w1", "w2"], ["w3", "w4", "w5"]]


def tuned(*overrides: str) -> TunedConfig:
    files = [section("fedlm"), section("fedlm_tune")]
    return config.load(TunedConfig, files, ["rounds=3", "cohort=5", *overrides])


def named(*names: str) -> list[ClientText]:
    return [
        ClientText(name, (Utterance(f"{name}-0", (name,), None, name),), "speaker")
        for name in names
    ]


def test_nobody_trains_who_is_scored() -> None:
    everyone = named(*(f"call{c}-{s}" for c in range(5) for s in range(3)))
    clients, sentences = divide(everyone, everyone, "client", seed=1)
    assert {c.name for c in clients} | {s for [s] in sentences} == {c.name for c in everyone}
    assert len(clients) == 8 and len(sentences) == 7
    clients, sentences = divide(everyone, everyone, "call", seed=1)
    names = ([c.name for c in clients], [name for [name] in sentences])
    calls = [{name.partition("-")[0] for name in of_side} for of_side in names]
    assert [len(one) for one in calls] == [3, 2] and not calls[0] & calls[1]
    # Who has no recognized words still is scored, and the other way round.
    assert divide(everyone[:-1], everyone, "call", seed=1)[1] == sentences
    with pytest.raises(DataError, match="text of two calls or more"):
        divide(named("a-1", "a-2"), named("a-1", "a-2"), "call", seed=1)


def test_cohorts_are_as_large_as_in_the_training() -> None:
    assert sized(tuned("client_fraction=0.05", "clients=182"), 31).client_fraction == pytest.approx(
        0.05 * 182 / 31
    )
    assert sized(tuned("client_fraction=0.05"), 31).client_fraction == pytest.approx(0.05)
    assert sized(tuned("client_fraction=0.5", "clients=182"), 31).client_fraction == 1
    assert sized(tuned("cohort=18"), 31).client_fraction == pytest.approx(18 / 31)
    assert sized(tuned("cohort=40", "sampling=ordered"), 31).cohort == 31
    assert sized(tuned("cohort=4", "sampling=ordered"), 31).cohort == 4


def test_the_rates_of_the_least_perplexity() -> None:
    asked = tuned("client_lrs=[1.0]", "server_lrs=[0.0001,0.05]", "eval_every=1", *PRIVATE)

    def make(chosen: FedLmConfig):  # type: ignore[no-untyped-def]
        return trainer(settings(), lr=chosen.client.lr)

    with join("cpu") as process:
        arguments = make, made_clients(8), DEV, VOCABULARY, asked, process
        first, again = tune(*arguments), tune(*arguments)
    assert first == again
    ppls = {one["server_lr"]: one["ppl"] for one in first["grid"]}
    assert first["server_lr"] == min(ppls, key=lambda lr: ppls[lr]) and len(set(ppls.values())) == 2


@pytest.mark.parametrize(
    "override", ["client_lrs=[]", "server_lrs=[0.0]", "by=speaker", "clients=0"]
)
def test_refused(override: str) -> None:
    with pytest.raises(ConfigError):
        tuned(override)


def test_other_files_are_no_rates(tmp_path: Path) -> None:
    write_json(tmp_path / "rates.json", {"client_lr": 1, "server_lr": 0.003, "grid": []})
    assert read_rates(tmp_path / "rates.json") == ["client.lr=1.0", "server.lr=0.003"]
    for wrong in ({"client_lr": 1}, {"client_lr": "x", "server_lr": 1}, []):
        write_json(tmp_path / "rates.json", wrong)
        with pytest.raises(DataError, match="what tune_fedlm writes"):
            read_rates(tmp_path / "rates.json")


def test_the_kept_round_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates with which later rounds are worse: the best one was before the kill."""
    chosen = settings("rounds=6", "eval_every=1", "save_every=2", "client.lr=30.0", "server.lr=1.0")
    init, clients = saved_model(tmp_path / "init"), made_clients(14)

    def run(name: str, process: Process) -> None:
        train_fedlm(clients, DEV, init, tmp_path / name, chosen, process, None)

    save = round_files.RoundFiles.save

    def killed(files: round_files.RoundFiles, stand: round_files.Stand) -> None:
        save(files, stand)
        if stand.round == 4:
            raise KeyboardInterrupt

    with join("cpu") as process:
        run("whole", process)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(round_files.RoundFiles, "save", killed)
            run("parts", process)
        run("parts", process)
    folders = tmp_path / "whole", tmp_path / "parts"
    kept = [read_json(folder / "federated.json")["kept_round"] for folder in folders]
    assert kept[0] == kept[1] < 4
    whole, parts = (load_tensors(folder / "model.safetensors") for folder in folders)
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
