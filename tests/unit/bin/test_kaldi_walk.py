"""The walks of docs/fmp.md and docs/fedlm.md, which begin at a Kaldi experiment's lattices."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.federated.clients import read_clients
from privasr_k2.fileio import read_json, write_text
from privasr_k2.lm.neural.files import load_lm, save_lm
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.scoring.nbest_lists import read_nbest
from tests.support.conf import ROOT
from tests.support.fed_small import SPEC, Vocabulary, new_lm
from tests.support.fed_small import SYMBOLS as LM_SYMBOLS
from tests.support.kaldi_lattices import plain_bytes, write_gz
from tests.support.verbs import call, refused
from tests.support.word_lattices import write_closed_arpa

WORDS = tuple(f"W{n}" for n in range(1, 21))
SYMBOLS = ("<eps>", *WORDS, "#0", "<s>", "</s>")
_RECORD = """privasr() { python3 -c '
import json, sys
print(json.dumps(sys.argv[1:]))' "$@" >> calls.jsonl; }
"""


def confusions(name: str, texts: Sequence[Sequence[str]]) -> Lattice:
    """A lattice of several texts of the same length, each a path from the start to the end."""
    rows, states = [], 1
    final = 1 + sum(len(text) for text in texts)
    for number, text in enumerate(texts):
        at = 0
        for word in text:
            rows.append((at, states, SYMBOLS.index(word), -20.0 - number, -2.0))
            at, states = states, states + 1
        rows.append((at, final, END, 0.0, -1.0))
    columns = [np.array(column) for column in zip(*sorted(rows))]
    ends = (values.astype(np.int32) for values in columns[:3])
    return Lattice(name, "", "", "", 9.0, np.zeros(final + 1), *ends, *columns[3:])


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kaldi's data directories, lattices by kaldifst, words.txt, an ARPA model and its text."""
    pytest.importorskip("kaldifst")
    monkeypatch.chdir(tmp_path)
    for role, seed in (("dev", 1), ("test", 2), ("adapt", 3)):
        rng, entries, text, utt2spk = np.random.default_rng(seed), [], "", ""
        for speaker in range(3):
            own = WORDS[5 * speaker : 5 * speaker + 6]
            for number in range(12):
                name = f"{role}{speaker}-{number:02d}"
                ref = rng.choice(own, size=4)
                wrong = np.where(rng.random(4) < 0.5, rng.choice(WORDS, size=4), ref)
                texts = [wrong, ref] if (wrong != ref).any() else [ref]
                entries.append(plain_bytes(confusions(name, texts)))
                text += f"{name} {' '.join(ref)}\n"
                utt2spk += f"{name} {role}{speaker}\n"
        decoded = tmp_path / f"exp/chain/decode_{role}"
        decoded.mkdir(parents=True)
        for job in (1, 2):
            write_gz(decoded / f"lat.{job}.gz", *entries[job - 1 :: 2])
        if role != "adapt":  # what clients say to their devices is not transcribed
            write_text(tmp_path / f"data/{role}/text", text)
        write_text(tmp_path / f"data/{role}/utt2spk", utt2spk)
    symbols = "".join(f"{word} {number}\n" for number, word in enumerate(SYMBOLS))
    write_text(tmp_path / "exp/chain/graph/words.txt", symbols)
    write_closed_arpa(tmp_path / "lm.arpa", WORDS)
    write_text(tmp_path / "lm_text.txt", "".join(f"{word}\n" for word in WORDS))
    return tmp_path


def run_walk(experiment: Path, page: str) -> None:
    """Run the lines of a page, expanded by a shell, one after the other."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    [walk] = re.findall(r"```bash\n(for role.*?)```", text, re.DOTALL)
    assert len(re.findall(r"(?<!\\)\n", walk)) <= 15  # a command may take several lines
    script = f"set -eu; CONF={ROOT}/conf\n{_RECORD}"
    # Files are there before anything runs, so that a shell can expand their names.
    subprocess.run(["bash", "-c", script + walk], check=True)
    for line in (experiment / "calls.jsonl").read_text().splitlines():
        verb, *words = json.loads(line)
        if verb == "verb":
            verb, *words = words
        call({"import": "import_external"}.get(verb, verb), *words)


def test_rescoring_by_marginals(experiment: Path) -> None:
    run_walk(experiment, "fmp.md")
    lists = read_nbest(experiment / "fmp/nbest_test")
    assert len(lists.lists) == 36 and lists.lm_names == ("graph",)
    assert {one.speaker for one in lists.lists} == {"test0", "test1", "test2"}
    assert all(one.ref in [hyp.words for hyp in one.hyps] for one in lists.lists)
    [entry] = Ledger(experiment / "fmp/ledger.json").entries()
    assert (entry.spending.unit, entry.spending.data) == ("user", "chain/test")
    assert read_json(experiment / "fmp/run_test.json")["release"]["epsilon"] == 1.0
    [part] = read_json(experiment / "fmp/score_test/wer.json")["parts"].values()
    assert part["ref_words"] == 36 * 4 and part["no_path"] == []


def test_federated_training_on_what_was_recognized(experiment: Path) -> None:
    vocabulary = Vocabulary((*LM_SYMBOLS, *WORDS))
    save_lm(Path("lm"), SPEC, new_lm(SPEC, vocabulary, seed=1).state_dict(), vocabulary)
    write_text(experiment / "dev.txt", "W1 W2\nW3 W4\n")
    run_walk(experiment, "fedlm.md")
    clients = read_clients(experiment / "fedlm/clients.jsonl.gz")
    assert [client.name for client in clients] == ["adapt0", "adapt1", "adapt2"]
    said = [utterance for client in clients for utterance in client.utterances]
    lists = {one.id: one for one in read_nbest(experiment / "fedlm/nbest_adapt").lists}
    assert len(said) == 36 and all(one.ref == "" for one in lists.values())
    for utterance in said:
        assert " ".join(utterance.words) == lists[utterance.id].hyps[0].words
        assert all(0 < value < 1 for value in utterance.confidences)
    assert len({value for utterance in said for value in utterance.confidences}) > 10
    [entry] = Ledger(experiment / "fedlm/ledger.json").entries()
    assert (entry.spending.unit, entry.spending.data) == ("speaker", "chain/adapt")
    assert (entry.spending.units, entry.spending.delta) == (3, 1e-5)
    before, after = (load_lm(experiment / folder) for folder in ("lm", "fedlm/lm"))
    assert before[1].words == after[1].words
    moved = [
        (one - other).abs().max()
        for one, other in zip(before[0].parameters(), after[0].parameters())
    ]
    assert max(moved) > 0


def test_data_directories(experiment: Path) -> None:
    """Case of references, and what is refused."""
    base = (
        f"import_external --raw-lattices {experiment}/exp/chain/decode_dev/lat.1.gz"
        f" --raw-words {experiment}/exp/chain/graph/words.txt --out-nbest {experiment}/n/1.jsonl"
        f" --config {ROOT}/conf/common.yaml#kaldi_lattices"
    )
    call(base, f"--raw-data {experiment}/data/dev --set text_case=lower")
    found = read_nbest(experiment / "n").lists
    assert all(one.ref == one.ref.lower() for one in found)
    assert sum(one.no_path for one in found) == 18
    with refused("maybe --in-cuts or --raw-data, found"):
        call(base, f"--raw-data {experiment} --in-cuts {experiment}")
    with refused("a file text of utterances"):
        call(base, f"--raw-data {experiment}")
    with refused("an utterance with a reference, found dev0-00"):
        call(base, f"--raw-data {experiment}/data/adapt")
    with refused("an utterance with a reference, found dev0-00"):
        call(base, f"--raw-data {experiment}/data/test")
    (experiment / "data/dev/utt2spk").write_text("")
    with refused("a speaker of every utterance, found 36 without"):
        call(base, f"--raw-data {experiment}/data/dev")
    (experiment / "data/dev/text").write_text("a b\na b\n")
    with refused("text:2: expected every utterance once, found a again"):
        call(base, f"--raw-data {experiment}/data/dev")
