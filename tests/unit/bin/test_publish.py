"""publish from the command line: what leaves holds no name, word or digest of private data."""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path

from privasr_k2.federated.clients import ClientText, Utterance, write_clients
from privasr_k2.federated.train import neutral
from privasr_k2.fileio import write_text
from privasr_k2.privacy import release
from privasr_k2.privacy.keys import seal_of
from privasr_k2.recipe.fingerprint import HashCache
from tests.support.fed_small import PRIVATE, made_clients, saved_model, settings
from tests.support.fedlm_verbs import FEDLM
from tests.support.published import Work
from tests.support.verbs import call

_SECRET = ("zanzibar", "quagmire")  # words that are in no public vocabulary
_SETTINGS = ("rounds=2", "cohort=5", "eval_every=1", *PRIVATE)


def private_clients() -> list[ClientText]:
    clients = []
    for number, client in enumerate(made_clients(14)):
        name = f"speaker-anna-{number}"
        secret = Utterance(f"call-{number}-secret", _SECRET, (0.9, 0.9), name)
        said = (replace(utterance, speaker=name) for utterance in client.utterances)
        clients.append(ClientText(name, (*said, secret), "speaker"))
    return clients


def test_a_published_model_holds_nothing_private(tmp_path: Path) -> None:
    work, clients = Work.new(tmp_path / "work"), private_clients()
    text, init, dev = (work.path / f"exp/{name}" for name in ("clients.jsonl.gz", "init", "dev"))
    write_clients(text, sorted(clients, key=lambda client: client.name))
    saved_model(init)
    write_text(dev, "w1 w2\n")
    out, privacy = work.path / "exp/m", work.path / "exp/m_privacy.json"
    flags = f"--in-private-clients {text} --in-public-init {init} --in-public-dev-text {dev}"
    words = ("--ledger", work.ledger, "--device", "cpu", "--config", FEDLM, "--set", *_SETTINGS)
    call(f"train_fedlm {flags} --out-dir {out} --out-privacy {privacy}", *words)
    relative = flags.replace(f"{work.path}/", "")
    work.stamp(f"train_fedlm {relative} --out-privacy exp/m_privacy.json", "exp/m")
    for name in ("exp/init", "exp/dev"):
        work.stamp("import_external --raw-model public", name)
    published = tmp_path / "published"
    call("publish", out, "--out", published)
    call("publish", "--check", published)

    names = [client.name for client in clients]
    names += [utterance.id for client in clients for utterance in client.utterances]
    cache, plain = HashCache(Path(os.devnull), Path()), [*names, *_SECRET]
    digests = [hashlib.sha256(name.encode()).hexdigest() for name in plain]
    digests += [hashlib.sha256(text.read_bytes()).hexdigest(), str(cache.digest(str(text)))]
    digests.append(hashlib.sha256(gzip.decompress(text.read_bytes())).hexdigest())
    config = neutral(settings(*_SETTINGS))
    digests.append(release.fingerprint_of(config, [text, init]))
    digests += [(seal_of(work.ledger) or b"?").hex(), str(tmp_path), os.uname().nodename]
    secrets = [name for name in plain if not name[0].isdigit()] + digests
    for path in published.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        found = [secret for secret in secrets if secret.encode() in content]
        assert found == [], path
    # Where the same words do stand, so that the search can find them.
    assert any(b"speaker-anna-3" in gzip.decompress(text.read_bytes()) for _ in "x")
