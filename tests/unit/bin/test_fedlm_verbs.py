"""make_clients, train_fedlm, audit and prepare_earnings21 from the command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

from privasr_k2.federated.clients import read_clients, write_clients
from privasr_k2.fileio import read_json, read_lines, write_jsonl, write_text
from privasr_k2.lm.neural.files import load_lm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.privacy.spending import Spending
from privasr_k2.recipe.launch import argv_of
from privasr_k2.training.weights import load_tensors
from tests.support.conf import section
from tests.support.fed_small import PRIVATE, VOCABULARY, made_clients
from tests.support.fedlm_verbs import FEDLM, SMALL, flags
from tests.support.fedlm_verbs import folder as folder  # a fixture
from tests.support.verbs import call, refused, words_of

ROOT = Path(__file__).parents[3]


def started(processes: int, *command: object) -> None:
    """A verb in processes of its own."""
    torchrun = ("torchrun", "--nproc_per_node", str(processes))
    whole = argv_of(words_of(*command), ("local",) if processes == 1 else torchrun)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(whole, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def spent(folder: Path) -> list[object]:
    return f"--out-privacy {folder}/privacy.json --ledger {folder}/privacy/ledger.json".split()


def test_with_a_claim(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    claim = [*SMALL, *PRIVATE, "select_round=last"]
    call("train_fedlm", *flags(folder), *spent(folder), "--set", *claim)
    assert "epsilon by RDP" in caplog.text and "10,000 devices" in caplog.text
    entries = read_json(folder / "privacy.json")["entries"]
    [spending] = [entry["spending"] for entry in entries]
    assert (spending["unit"], spending["person_units"]) == ("speaker", 1)
    model = load_tensors(folder / "out" / "model.safetensors")
    # Evaluation at other rounds is the same release: nothing is spent or drawn again.
    again = [*flags(folder), *spent(folder), "--set", *claim, "eval_every=2"]
    call("train_fedlm", *again)
    assert len(read_json(folder / "privacy" / "ledger.json")["entries"]) == 1
    same = load_tensors(folder / "out" / "model.safetensors")
    assert all(torch.equal(model[name], same[name]) for name in model)


def test_a_roster_of_clients(folder: Path) -> None:
    write_text(folder / "roster.txt", "".join(f"client-{n:02}\n" for n in range(20)))
    claim = [*SMALL, *PRIVATE, "select_round=last"]
    listed = ["--in-public-roster", folder / "roster.txt"]
    call("train_fedlm", *flags(folder), *spent(folder), *listed, "--set", *claim)
    [entry] = read_json(folder / "privacy.json")["entries"]
    assert entry["spending"]["units"] == 20 == read_json(folder / "out/federated.json")["clients"]
    assert any("roster" in sentence for sentence in entry["spending"]["does_not_cover"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["privacy.clip=0"], "clip must be above 0"),
        (["privacy.clip=null"], "need privacy.clip"),
        (["client_fraction=0"], "client_fraction must be above 0"),
        (["client_fraction=1.5"], "client_fraction must be at most 1"),
        (["cohort=15"], "cohort: expected at most 14, the number of clients"),
        (["privacy.delta=0.0715"], "below 1/units"),
        (["privacy.noise=0"], "--out-privacy"),
        (["unit=user"], "the file of clients says what a client is"),
        (["trained=[none]"], "the beginning of a parameter's name"),
        (["trained=[lora]", "lora.layers=[lstm]"], "linear layers: linear"),
    ],
)
def test_nothing_is_spent_on_bad_input(folder: Path, overrides: list[str], message: str) -> None:
    with refused(message):
        call("train_fedlm", *flags(folder), *spent(folder), "--set", *SMALL, *PRIVATE, *overrides)
    assert not (folder / "privacy").exists() and not (folder / "out").exists()


def test_nothing_is_spent_on_bad_clients(folder: Path) -> None:
    line = {"client": "a", "unit": "speaker", "speaker": "s", "id": "u", "words": "w1"}
    line |= {"num_words": 1, "confidences": None}
    for change, message in (
        ({"words": "", "num_words": 0}, "at least one word"),
        ({"confidences": [2.0]}, "from 0 to 1"),
        ({"confidences": [1.0, 1.0]}, "each of 1 words"),
        ({"unit": "device", "speaker": "", "confidences": [0.5]}, "who spoke"),
        ({}, "confidences for confidences.use=token"),
    ):
        write_jsonl(folder / "clients.jsonl.gz", [{**line, **change}])
        claim = ["--set", *SMALL, *PRIVATE, "cohort=1", "confidences.use=token"]
        with refused(message):
            call("train_fedlm", *flags(folder), *spent(folder), *claim)
    assert not (folder / "privacy").exists()


def test_every_verb_trains_the_part(folder: Path) -> None:
    """Another part is another release, and the server's control trains the same."""
    claim = [*SMALL, *PRIVATE, "select_round=last", "server.lr=0.1"]
    for part in ("[output]", "[lora]"):
        call("train_fedlm", *flags(folder), *spent(folder), "--set", *claim, f"trained={part}")
    entries = read_json(folder / "privacy.json")["entries"]
    assert len({entry["spending"]["released"] for entry in entries}) == 2
    given = f"--in-clients {folder}/clients.jsonl.gz --in-init {folder}/init --device cpu".split()
    out = ["--out-dir", folder / "server", "--config", section("finetune_lm"), "--set"]
    call("finetune_lm", *given, *out, "epochs=1", "select_epoch=last", "trained=[lora]")
    before = load_tensors(folder / "init" / "model.safetensors")
    for name in ("out", "server"):
        after = load_tensors(folder / name / "model.safetensors")
        assert after.keys() == before.keys()
        changed = {one for one, value in before.items() if not torch.equal(value, after[one])}
        assert changed == {"output.linear.weight"}
    dev = f"--in-clients {folder}/clients.jsonl.gz --in-scored {folder}/clients.jsonl.gz".split()
    rates = ["--in-init", folder / "init", "--out-rates", folder / "rates.json", "--device", "cpu"]
    config = ["--config", FEDLM, section("fedlm_tune"), "--set", *SMALL, "trained=[lora]"]
    call("tune_fedlm", *dev, *rates, *config, "client_lrs=[0.5]", "server_lrs=[0.01]")
    audit = ["--out-audit", folder / "audit.json", "--config", FEDLM, section("fedlm_audit")]
    few = ["canaries=2", "candidates=20", "top=2", "client_fraction=0.2", "trained=[lora]"]
    call("audit", *given, *audit, "--set", *SMALL, *PRIVATE, *few, "marks=40")
    assert set(read_json(folder / "audit.json")) == {"without_privacy", "with_privacy", "marks"}
    # A mark is a coordinate of the part: of A (8, 8) and B (22, 8) there are 240.
    with refused("240"):
        call("audit", *given, *audit, "--set", *SMALL, *PRIVATE, *few, "marks=241")


def test_clients_in_a_fixed_order_are_one_mechanism(folder: Path) -> None:
    order = "--set sampling=ordered client_fraction=null privacy.strategy=square_root"
    order += " privacy.bands=2"
    call("train_fedlm", *flags(folder), *spent(folder), "--set", *SMALL, *PRIVATE, order)
    [entry] = read_json(folder / "privacy.json")["entries"]
    said = entry["spending"]["sampling"]
    assert "in the same order" in said and "square_root of 2 bands over 3 rounds" in said
    # Each of 14 clients is in one round of three; the coefficients of two bands are 1 and 1/2.
    event = Spending.from_json(entry["spending"], "here").event
    assert event.noise_multiplier == pytest.approx(1 / 1.25**0.5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "rates", [["client.lr=2.0", "server.lr=0.05"], ["client.lr=30.0", "server.lr=0.3"]]
)
def test_the_round_that_reads_dev_best_is_kept(folder: Path, rates: list[str]) -> None:
    setting = ["rounds=6", "cohort=5", "eval_every=1", *rates]
    for keep in ("best", "last"):
        call("train_fedlm", *flags(folder, keep), "--set", *setting, f"select_round={keep}")
    log = [
        json.loads(line) for line in (folder / "best" / "train_log.jsonl").read_text().splitlines()
    ]
    ppls = {record["step"]: record["dev_ppl"] for record in log if "dev_ppl" in record}
    kept = read_json(folder / "best" / "federated.json")["kept_round"]
    assert kept == min(ppls, key=lambda number: ppls[number])
    assert read_json(folder / "last" / "federated.json")["kept_round"] == 6
    text = [["w1", "w2"], ["w3", "w4", "w5"]]
    found = {
        keep: perplexity(NeuralScorer(*load_lm(folder / keep)), text, VOCABULARY.words).ppl
        for keep in ("best", "last")
    }
    assert found["best"] == pytest.approx(ppls[kept], rel=1e-4)
    assert found["last"] == pytest.approx(ppls[6], rel=1e-4)


def test_without_dev_text_no_round_can_be_chosen(folder: Path) -> None:
    given = [
        one for one in flags(folder) if one not in ("--in-public-dev-text", folder / "dev.txt")
    ]
    with refused("text to choose a round by"):
        call("train_fedlm", *given, *spent(folder), "--set", *SMALL, *PRIVATE)
    assert not (folder / "privacy").exists()


def test_learning_rates_are_chosen_on_others_and_taken(folder: Path) -> None:
    write_clients(folder / "dev.jsonl.gz", made_clients(8, seed=5))
    given = (
        f"--in-clients {folder}/dev.jsonl.gz --in-scored {folder}/dev.jsonl.gz --device cpu".split()
    )
    out = ["--in-init", folder / "init", "--out-rates", folder / "rates.json"]
    grid = ["client_lrs=[0.01,2.0]", "server_lrs=[0.0001,0.05]", "clients=14"]
    config = ["--config", FEDLM, section("fedlm_tune"), "--set", *SMALL, *grid]
    call("tune_fedlm", *given, *out, *config)
    found = read_json(folder / "rates.json")
    assert len(found["grid"]) == 4
    best = min(found["grid"], key=lambda one: one["ppl"])
    assert (found["client_lr"], found["server_lr"]) == (best["client_lr"], best["server_lr"])
    # FedAdam: the server's rate is what counts.
    assert found["server_lr"] == 0.05
    with_noise = [*PRIVATE, "sampling=ordered", "client_fraction=null"]
    with_noise.append("privacy.strategy=square_root")
    call("tune_fedlm", *given, *out[:3], folder / "noisy.json", *config, *with_noise)
    assert read_json(folder / "noisy.json")["grid"] != found["grid"]
    assert not (folder / "privacy").exists()
    call("train_fedlm", *flags(folder), f"--in-public-rates {folder}/rates.json --set", *SMALL)
    taken = (folder / "out" / "config.yaml").read_text()
    assert f"lr: {found['client_lr']}\n" in taken and "lr: 0.05\n" in taken


@pytest.mark.parametrize("more", [[], ["privacy.clip=0.05", "weights.by=uniform"]])
def test_the_number_of_processes_changes_nothing(folder: Path, more: list[str]) -> None:
    for name, processes in (("one", 1), ("two", 2)):
        started(
            processes, "train_fedlm", *flags(folder, name), "--set", *SMALL, "positions=40", *more
        )
    one, two = (load_tensors(folder / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(two[name], one[name], atol=1e-6, rtol=0)
    initial = load_tensors(folder / "init" / "model.safetensors")
    assert any(not torch.equal(one[name], value) for name, value in initial.items())


def test_clients_of_lists(tmp_path: Path) -> None:
    hyp = {"rank": 1, "words": "a b", "am_score": 0.0, "lm_scores": {}, "confidences": [0.5, 0.25]}
    shared = {"part": "dev", "ref": "a c", "no_path": False, "hyps": [hyp]}
    lists = [{"id": f"u{n}", "speaker": f"s{n % 2}", **shared} for n in range(4)]
    write_jsonl(tmp_path / "nbest" / "1.jsonl", lists)
    out = ["--out-clients", tmp_path / "clients.jsonl.gz", "--out-text", tmp_path / "text.txt"]
    config = ["--config", section("clients")]
    call("make_clients", "--in-nbest", tmp_path / "nbest", *out, *config)
    clients = read_clients(tmp_path / "clients.jsonl.gz")
    found = [(c.name, c.num_words, c.utterances[0].confidences) for c in clients]
    assert found == [("s0", 4, (0.5, 0.25)), ("s1", 4, (0.5, 0.25))]
    assert (tmp_path / "text.txt").read_text() == "a b\n" * 4


def test_clients_have_what_rescoring_chose(tmp_path: Path) -> None:
    """The confidences are those of the hypothesis that was chosen."""
    texts = ("a b", 0.5), ("a c d", 0.25), ("", 0.0)
    hyps = [
        {"rank": n, "words": words, "am_score": 0.0, "lm_scores": {}}
        | {"confidences": [sure] * len(words.split())}
        for n, (words, sure) in enumerate(texts, 1)
    ]
    shared = {"part": "dev", "ref": "a c", "no_path": False, "speaker": "s"}
    lists = [{"id": f"u{n}", **shared, "hyps": hyps} for n in range(3)]
    write_jsonl(tmp_path / "nbest" / "1.jsonl", lists)

    def records(*chosen: str, grid: tuple[float, ...] = (1.0,)) -> Path:
        point = {"insertion_penalty": 0.0, "am_score": 0.0, "lm_score": 0.0}
        records = [
            {"id": f"u{n}", **shared}
            | {"hyps": [{"lm_weight": weight, "words": words, **point} for weight in grid]}
            for n, words in enumerate(chosen)
        ]
        write_jsonl(tmp_path / "decode_adapt" / "1.jsonl", records)
        return tmp_path / "decode_adapt"

    given = ["--out-clients", tmp_path / "c.jsonl.gz", "--config", section("clients"), "--in-nbest"]
    given += [tmp_path / "nbest", "--in-hyps"]
    call("make_clients", *given, records("a c d", "", "a b"))
    [client] = read_clients(tmp_path / "c.jsonl.gz")
    assert [(said.id, said.words, said.confidences) for said in client.utterances] == [
        ("u0", ("a", "c", "d"), (0.25,) * 3),
        ("u2", ("a", "b"), (0.5,) * 2),
    ]
    for wrong, grid, message in (
        (("a b", "a b", "b"), (1.0,), "utterance u2: expected a hypothesis of its list"),
        (("a b", "a b"), (1.0,), "utterance u2"),
        (("a b", "a b", "a b"), (1.0, 2.0), "those of 2 weights"),
    ):
        with refused(message):
            call("make_clients", *given, records(*wrong, grid=grid))


def test_clients_of_what_was_said(tmp_path: Path) -> None:
    pytest.importorskip("lhotse")
    from privasr_k2.corpora.utterances import Utterance, make_cuts
    from privasr_k2.data.manifests import save_cuts

    said = [Utterance(f"u{n}", "a b c", f"s{n % 2}", "train") for n in range(3)]
    save_cuts(make_cuts(said), tmp_path / "manifests", "adapt")
    config = ["--config", section("clients"), "--set", "client=speaker"]
    given = (
        f"--in-cuts {tmp_path}/manifests/cuts_adapt.jsonl.gz --out-clients {tmp_path}/c.jsonl.gz"
    ).split()
    call("make_clients", *given, *config, "text=ref")
    clients = read_clients(tmp_path / "c.jsonl.gz")
    found = [(c.name, c.num_words, c.utterances[0].confidences) for c in clients]
    assert found == [("s0", 6, None), ("s1", 3, None)]
    for flag, path, message in (
        ("text=hyp", given[1], "ref with --in-cuts"),
        ("text=ref", tmp_path / "x", "cuts_<role>"),
    ):
        with refused(message):
            call("make_clients", "--in-cuts", path, *given[2:], *config, flag)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_audit_writes_what_it_found(folder: Path, processes: int) -> None:
    given = f"--in-clients {folder}/clients.jsonl.gz --in-init {folder}/init --device cpu".split()
    out = ["--out-audit", folder / "audit.json", "--config", FEDLM, section("fedlm_audit")]
    few = ["canaries=2", "candidates=20", "top=2", "marks=200", "client_fraction=0.2"]
    started(processes, "audit", *given, *out, "--set", *SMALL, *PRIVATE, *few)
    found = json.loads((folder / "audit.json").read_text())
    assert set(found) == {"without_privacy", "with_privacy", "marks"}
    lower = found["marks"]["epsilon_lower"]
    assert set(lower) == {"sound", "broken", "noise_free"} and lower["noise_free"] > 0


def test_earnings21_clients(tmp_path: Path) -> None:
    spoken = [("Good", 0, ""), ("morning", 0, "."), ("Thanks", 1, ""), ("all", 1, ".")]
    words = enumerate([*spoken, ("Bye", 0, ".")])
    gold = "idx\ttoken\tspeaker\tpunct\tentities\n"
    gold += "".join(f"{n}\t{word}\t{who}\t{mark}\t\n" for n, (word, who, mark) in words)
    starts = {"GOOD": 0.0, "MOURNING": 0.3, "THANKS": 1.2, "ALL": 1.5, "ALL ": 2.6, "BYE": 2.9}
    for call_name in ("1", "2", "3"):
        write_text(tmp_path / "corpus" / "gold" / f"{call_name}.tsv.gz", gold)
        ctm = "".join(f"{call_name} A {at:.2f} 0.30 {word} 0.90\n" for word, at in starts.items())
        write_text(tmp_path / "corpus" / "ctm_kaldi_librispeech" / f"{call_name}.ctm.gz", ctm)
    config = ["--config", section("earnings21"), section("earnings21_clients")]
    arguments = ["--raw-corpus", tmp_path / "corpus", "--out-clients", tmp_path / "out", *config]
    call("prepare_earnings21", *arguments)
    found = read_clients(tmp_path / "out" / "recognized_train.jsonl.gz")
    said = {c.name[-1]: [(" ".join(u.words), u.confidences) for u in c.utterances] for c in found}
    assert said == {
        "0": [("good mourning", (0.9, 0.9)), ("bye", (0.9,))],
        "1": [("thanks all", (0.9, 0.9)), ("all", (0.9,))],
    }
    sentences = read_clients(tmp_path / "out" / "gold_train.jsonl.gz")
    gold_text = {" ".join(u.words) for c in sentences for u in c.utterances}
    assert gold_text == {"good morning", "thanks all", "bye"}
    assert (tmp_path / "out" / "recognized_test.txt.gz").is_file()


def test_training_on_the_server(folder: Path) -> None:
    given = f"--in-clients {folder}/clients.jsonl.gz --in-init {folder}/init --device cpu".split()
    config = (
        f"--in-dev-text {folder}/dev.txt --config {section('finetune_lm')} --set epochs=2".split()
    )
    for name in ("all", "token", "hard"):
        out = ["--out-dir", folder / name, *config, f"confidences.use={name}", "lr=0.05"]
        call("finetune_lm", *given, *out)
    texts = [list(one.words) for client in made_clients(14) for one in client.utterances]
    found = {
        name: perplexity(NeuralScorer(*load_lm(folder / name)), texts, VOCABULARY.words).ppl
        for name in ("init", "all", "token", "hard")
    }
    assert found["all"] < found["init"] * 0.97 and len(set(found.values())) == 4


def test_sentences_that_chose_the_epoch(folder: Path) -> None:
    """Half of the clients are trained on, and the text of the others is written."""
    given = f"--in-clients {folder}/clients.jsonl.gz --in-init {folder}/init --device cpu".split()
    given += ["--out-held-out", folder / "other.txt.gz", "--config", section("finetune_lm")]
    with refused("select_epoch=held_out"):
        call("finetune_lm", *given, "--out-dir", folder / "dev", "--set", "select_epoch=last")
    given += ["--set", "select_epoch=held_out", "epochs=1"]
    call("finetune_lm", *given, "--out-dir", folder / "dev")
    written = [line for _, line in read_lines(folder / "other.txt.gz")]
    texts = [[" ".join(one.words) for one in client.utterances] for client in made_clients(14)]
    inside = [all(line in written for line in text) for text in texts]
    assert sum(inside) == 7 and len(written) == sum(len(t) for t, of in zip(texts, inside) if of)
