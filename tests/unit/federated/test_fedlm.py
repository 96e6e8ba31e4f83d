"""Rounds go on without clients that fail, continue after a kill, and cost what was entered."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.federated import fedlm, train
from privasr_k2.federated.client import Failure
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.clients import ClientText, ListedClients, people_of
from privasr_k2.federated.fedlm import Federation, Round, rounds
from privasr_k2.federated.round_files import RoundFiles
from privasr_k2.federated.settings import FedLmConfig, spending
from privasr_k2.federated.train import train_fedlm
from privasr_k2.federated.weighting import prepare
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.privacy import release
from privasr_k2.privacy.noise import standard_normal_vector
from privasr_k2.privacy.spending import SETTINGS
from privasr_k2.privacy.streams import Drawn
from privasr_k2.training.distributed import Process
from privasr_k2.training.weights import load_tensors, read_header
from tests.support.fed_small import (
    PRIVATE,
    VOCABULARY,
    made_clients,
    norm,
    saved_model,
    settings,
    trainer,
)
from tests.support.released import shape_of

ALONE = Process(0, 1, torch.device("cpu"))


#: Noise that is correlated over rounds.
CORRELATED = (*PRIVATE, "sampling=ordered", "privacy.strategy=square_root")


class Killed(BaseException):
    """In place of a signal."""


def clients_for(config: FedLmConfig, count: int = 12) -> list[ClientData]:
    return prepare(made_clients(count), VOCABULARY, config.confidences)


def run(
    config: FedLmConfig, secrets=None, files: RoundFiles | None = None, **federation
) -> list[Round]:
    made = Federation(clients_for(config), trainer(config), **federation)
    return [*rounds(made, config, ALONE, secrets or Drawn("cohorts", 1), files)]


EVERYONE = tuple(f"client-{number:02}" for number in range(12))


def without(*names: str):
    """A failure of these clients."""
    return lambda number, name: "no power" if name in names else None


def last(done: list[Round]) -> torch.Tensor:
    return done[-1].stand.server.weights


@pytest.mark.parametrize("more", [[], PRIVATE])
def test_a_chunk_or_everybody_alone(more: list[str]) -> None:
    """With the noise of the same stream the results agree, too."""
    secrets = Drawn("cohorts", 3)
    together = run(settings(*more, "privacy.isolate_clients=false"), secrets)
    apart = run(settings(*more, "positions=1"), secrets)
    torch.testing.assert_close(last(together), last(apart), atol=1e-4, rtol=0)
    assert norm(last(together) - trainer(settings()).vector) > 1e-3


def test_under_a_claim_no_rounding_depends_on_others() -> None:
    """To the last bit: what clients add to the sum is what each of them adds alone."""

    def summed(config: FedLmConfig, *chosen: int) -> torch.Tensor:
        federation = Federation(clients_for(config), trainer(config))
        return fedlm._sum(federation, config, ALONE, np.array(chosen), 0, 0.5)[0].steps

    def differs(config: FedLmConfig) -> bool:
        together = summed(config, *range(12))
        return not torch.equal(together, sum(summed(config, number) for number in range(12)))

    assert not differs(settings(*PRIVATE))
    assert differs(settings(*PRIVATE, "privacy.isolate_clients=false"))


@pytest.mark.parametrize("more", [[], ["privacy.clip=0.1"]])
def test_a_round_goes_on_without_those_who_fail(
    more: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    config, gone = settings(*more, "sampling=everyone", "rounds=2"), ("client-01", "client-05")
    failed = run(config, fail=without(*gone))
    assert [done.figures["failed"] for done in failed] == [2, 2]
    assert "client-05: no power" in caplog.text
    others = [client for client in clients_for(config) if client.name not in gone]
    only = [*rounds(Federation(others, trainer(config)), config, ALONE, Drawn("cohorts", 1), None)]
    torch.testing.assert_close(last(failed), last(only), atol=1e-5, rtol=0)


def test_nan_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    config = settings("sampling=everyone", "rounds=1")
    size = len(trainer(config).vector)
    replaced = {"client-03": torch.full((size,), float("nan"))}
    done = run(config, replaced=replaced)
    assert torch.isfinite(last(done)).all() and done[0].figures["failed"] == 1
    assert "client-03: values that are not finite" in caplog.text
    expected = run(config, fail=without("client-03"))
    torch.testing.assert_close(last(done), last(expected), atol=1e-5, rtol=0)


def test_a_client_that_takes_too_long_is_left_out() -> None:
    config = settings()
    slow = trainer(config, max_seconds=1e-9, batch_size=1)
    found = dict((c.name, update) for c, update in slow.updates(clients_for(config), 0))
    assert any(isinstance(update, Failure) for update in found.values())


def test_when_all_fail_nothing_moves() -> None:
    done = run(settings("rounds=1"), fail=without(*EVERYONE))
    assert torch.equal(last(done), trainer(settings()).vector) and done[0].delta is None


def test_under_a_claim_the_denominator_stays() -> None:
    """Half of the clients fail: the released sum loses their part, and is divided as before."""
    config = settings(*PRIVATE, "sampling=everyone", "rounds=1", "privacy.noise=1e-9")
    unit = torch.zeros(len(trainer(config).vector))
    unit[0] = 5.0
    replaced = {f"client-{n:02}": unit for n in range(12)}
    [whole] = run(config, replaced=replaced)
    [half] = run(config, replaced=replaced, fail=without(*EVERYONE[::2]))
    assert [float(done.delta[0]) for done in (whole, half)] == pytest.approx([0.5, 0.25])


def test_noise_has_the_size_that_is_entered() -> None:
    config = settings(*PRIVATE, "privacy.noise=40.0", "rounds=3", "sampling=everyone")
    deltas = np.concatenate([one.delta.numpy() for one in run(config)])
    assert deltas.std() == pytest.approx(40.0 * 0.5 / 12, rel=0.05)
    adaptive = settings(
        *PRIVATE, "privacy.noise=2.0", "privacy.quantile=0.5", "privacy.count_noise=1.1", "rounds=1"
    )
    [one] = run(adaptive)
    expected = (2.0**-2 - 2.2**-2) ** -0.5 * 0.5 / 5
    assert one.delta.numpy().std() == pytest.approx(expected, rel=0.1) and one.stand.clip != 0.5


@pytest.mark.parametrize(
    "strategy", [["privacy.strategy=square_root", "privacy.bands=2"], ["privacy.strategy=tree"]]
)
@pytest.mark.parametrize("adaptive", [[], ["privacy.quantile=0.5", "privacy.count_noise=2.0"]])
def test_noise_is_correlated_as_the_ledger_has_it(strategy: list[str], adaptive: list[str]) -> None:
    """Nobody sends anything: the decoded release is the noise of the streams."""
    config = settings(*CORRELATED, *strategy, *adaptive, "rounds=7", "privacy.noise=3.0")
    secrets = Drawn("cohorts", 2)
    done = run(config, secrets, fail=without(*EVERYONE))
    clips = [0.5, *(one.stand.clip for one in done[:-1])]
    sizes = [clip * config.privacy.sum_noise / 6 for clip in clips]
    noise = [one.delta.numpy() / size for one, size in zip(done, sizes)]
    made = config.strategy_for(12)
    drawn = []
    for row in made.encode:
        places = np.flatnonzero(row)
        level = len(places).bit_length() - 1 if made.name == "tree" else 0
        stream = secrets.noise(int(places[-1]), "sum", level)
        drawn.append(standard_normal_vector(stream, done[0].delta.numel()))
    sums = made.decode @ np.array(drawn) * made.scale
    np.testing.assert_allclose(np.cumsum(noise, axis=0), sums, atol=0.03)
    assert (len(set(clips)) == 7) == bool(adaptive)


def test_cohorts_in_a_fixed_order() -> None:
    """Each client every other round, the same rounds in every epoch."""
    seen: list[set[str]] = [set() for _ in range(6)]

    def sees(number: int, name: str) -> None:
        seen[number].add(name)

    run(settings(*CORRELATED, "rounds=6", "cohort=6"), fail=sees)
    assert seen[0] == seen[2] == seen[4] and seen[1] == seen[3] == seen[5]
    assert seen[0] and seen[1] and not seen[0] & seen[1] and len(seen[0] | seen[1]) == 12


def test_cohorts_of_one_size() -> None:
    """As in the paper: drawn anew for each round, and always so many."""
    seen: list[set[str]] = [set() for _ in range(6)]

    def sees(number: int, name: str) -> None:
        seen[number].add(name)

    done = run(
        settings("sampling=fixed", "client_fraction=null", "rounds=6", "cohort=5"), fail=sees
    )
    assert [one.figures["clients"] for one in done] == [5] * 6 == [*map(len, seen)]
    assert len({*map(frozenset, seen)}) > 1


def test_one_client_moves_the_measurements_by_what_is_claimed() -> None:
    """With next to no noise: a client that always sends too much against the same without it."""
    config = settings(*CORRELATED, "privacy.noise=1e-6", "rounds=6", "cohort=6", "privacy.bands=3")
    size = len(trainer(config).vector)
    long = torch.zeros(size)
    long[3] = 7.0
    released = []
    for failing in (set(EVERYONE) - {"client-04"}, EVERYONE):
        done = run(config, replaced={"client-04": long}, fail=without(*failing))
        released.append(np.array([each.delta.numpy() for each in done], dtype=np.float64) * 6)
    made = config.strategy_for(12)
    moved = np.linalg.norm(made.encode @ (released[0] - released[1]) / made.scale) / 0.5
    claimed = (
        1e-6 / spending(config, 12, "speaker").event.noise_multiplier
    )  # the sensitivity of clip 1
    assert moved == pytest.approx(claimed, rel=0.2) and moved <= claimed * 1.001


@pytest.mark.parametrize(
    "more",
    [
        [],
        [*PRIVATE, "privacy.quantile=0.5"],
        [*CORRELATED, "privacy.bands=3", "privacy.quantile=0.5"],
        [*CORRELATED, "privacy.strategy=tree"],
    ],
)
@pytest.mark.parametrize("killed_in", ["save", "save_round", "read_round"])
@pytest.mark.parametrize("at", [1, 3])
def test_killed_and_continued_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], killed_in: str, at: int
) -> None:
    """Killed before or while a stand or a round is written, with the release's own key."""
    config = settings(*more, "rounds=6", "save_every=2")
    secrets = Drawn("cohorts", 5)
    expected = run(config, secrets)
    files = RoundFiles(tmp_path / "checkpoints", "one", writes=True)
    calls = []
    real = getattr(RoundFiles, killed_in)

    def dies(self, *args):
        calls.append(args)
        if len(calls) == at:
            if killed_in != "save":
                real(self, *args)
            raise Killed
        return real(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(RoundFiles, killed_in, dies)
        try:
            run(config, secrets, files)
            assert killed_in != "save" and not more  # nothing is released without a claim
        except Killed:
            pass
    again = run(config, secrets, files)
    if again:  # else it had come to its end
        assert torch.equal(last(again), last(expected))
        assert again[-1].stand.clip == expected[-1].stand.clip


def test_what_was_released_is_read_back_and_not_drawn_again(tmp_path: Path) -> None:
    config = settings(*PRIVATE, "rounds=3", "save_every=3")
    files = RoundFiles(tmp_path / "checkpoints", "one", writes=True)
    made = Federation(clients_for(config), trainer(config))
    steps = rounds(made, config, ALONE, Drawn("cohorts", None), files)
    first, second = next(steps), next(steps)
    steps.close()
    again = run(config, Drawn("cohorts", None), files)  # other secrets: what is drawn anew differs
    assert torch.equal(again[0].delta, first.delta) and torch.equal(again[1].delta, second.delta)
    assert not again[0].figures and again[2].figures
    other = RoundFiles(tmp_path / "checkpoints", "two", writes=True)
    assert run(config, Drawn("cohorts", None), other)[0].figures  # nothing of another is read


def begun(tmp_path: Path, config: FedLmConfig, clients: int):
    costs = {
        "spending": spending(config, clients, "speaker"),
        "fingerprint": "f",
        "max_epsilon": None,
    }
    return release.begin(tmp_path / "ledger.json", beside=tmp_path / "privacy.json", **costs)


@pytest.mark.parametrize(
    ("before_finish", "private"), [(False, PRIVATE), (True, PRIVATE), (True, CORRELATED)]
)
def test_a_release_from_beginning_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before_finish: bool, private: tuple[str, ...]
) -> None:
    config = settings(*private, "save_every=1")
    clients, init = made_clients(12), saved_model(tmp_path / "init")
    dev = [["w1", "w2"], ["w3"]]

    def attempt() -> None:
        with begun(tmp_path, config, 12) as one:
            train_fedlm(clients, dev, init, tmp_path / "out", config, ALONE, one)

    def dies(*args, **kwargs):
        raise Killed

    target = (release.Release, "finish") if before_finish else (train, "save_lm")
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(*target, dies)
        attempt()
    attempt()
    weights = load_tensors(tmp_path / "out" / "model.safetensors")
    attempt()  # finished: everything was written
    again = load_tensors(tmp_path / "out" / "model.safetensors")
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    entries = read_json(tmp_path / "ledger.json")["entries"]
    assert len(entries) == 1 and entries[0]["spending"]["units"] == 12
    assert not [path for path in (tmp_path / "ledger.json.keys").iterdir() if path.name != "seal"]
    assert read_json(tmp_path / "out" / "federated.json")["release"] == entries[0]["release"]
    header = read_header(tmp_path / "out/checkpoints/latest.safetensors")
    assert header["fingerprint"] == entries[0]["release"]  # no hash of what the clients have said
    assert [set(r) for r in read_jsonl(tmp_path / "out" / "train_log.jsonl")] == [
        {"epoch", "step", "clip", "dev_ppl"}
    ]


@pytest.mark.parametrize("change", ["trained=[output]", "init=scratch"])
def test_what_is_trained_and_from_where(tmp_path: Path, change: str) -> None:
    init = saved_model(tmp_path / "init")
    config = settings(change, "rounds=1", "server.lr=0.1", "seed=2")
    train_fedlm(made_clients(8), [], init, tmp_path / "out", config, ALONE, None)
    before, after = (load_tensors(f / "model.safetensors") for f in (init, tmp_path / "out"))
    same = {name for name in before if torch.equal(before[name], after[name])}
    output = {name for name in before if name.startswith("output")}
    assert same == (set(before) - output if change == "trained=[output]" else set())
    assert read_json(tmp_path / "out" / "federated.json")["rounds"] == 1


@pytest.mark.parametrize("listed", [False, True])
def test_without_one_client_the_released_folder_has_the_same_form_and_times(
    tmp_path: Path, listed: bool
) -> None:
    """Of the neighbours one client has 400 times the text of the others."""
    config = settings(
        *PRIVATE, "client_fraction=0.6", "save_every=1", "eval_every=1", "privacy.quantile=0.5"
    )
    init, clients = saved_model(tmp_path / "init"), made_clients(12, most=2)
    large = dataclasses.replace(clients[-1], utterances=clients[0].utterances * 400)
    found = []
    for name, people in (("with", [*clients[:-1], large]), ("without", clients[:-1])):
        folder = tmp_path / name / "out"
        all_clients = [*ListedClients(people, [each.name for each in clients])]
        people = all_clients if listed else people
        with begun(tmp_path / name, config, len(people)) as one:
            train_fedlm(people, [["w1", "w2"]], init, folder, config, ALONE, one)
        found.append(shape_of(folder, one.entry.time))
        assert read_json(folder / "federated.json").pop("clients") == len(people)
        if not listed:
            found[-1]["federated.json"][1].pop("clients")  # in the guarantee: it is not hidden
    assert found[0] == found[1]
    assert {"train_log.jsonl", "model.safetensors"} < found[0].keys()
    assert all((of if path == "." else of[0]) == 0 for path, of in found[0].items())
    assert "tensorboard" not in found[0]


def test_no_clock_decides_under_a_claim() -> None:
    with pytest.raises(ConfigError, match="max_seconds"):
        settings(*PRIVATE, "client.max_seconds=1")
    told = spending(settings(*PRIVATE), 12, "speaker").does_not_cover
    assert any("how long" in sentence for sentence in told)
    assert SETTINGS in told and any("how many clients" in sentence for sentence in told)
    told = spending(settings(*PRIVATE), 12, "speaker", listed=True).does_not_cover
    assert not any("how many clients" in sentence for sentence in told)


def test_the_divisor_is_that_of_the_roster() -> None:
    """Noise of the released weights would tell the number of clients with text."""
    config, clients = settings(*PRIVATE, "client_fraction=0.5"), made_clients(12, most=2)
    names = [client.name for client in clients]

    def divisor(of: list[ClientText]) -> float:
        data = prepare(ListedClients(of, names), VOCABULARY, config.confidences)
        return config.denominator(len(data))

    assert divisor(clients) == divisor(clients[1:]) == divisor(clients[:5]) == 6.0
    silent = people_of(ListedClients(clients[1:], names), "clients")
    assert silent.names == people_of(clients, "clients").names and silent.most_units == 1
    with pytest.raises(DataError, match="no client-11"):
        [*ListedClients(clients, names[:-1])]
