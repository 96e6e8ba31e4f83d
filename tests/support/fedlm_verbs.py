"""Helpers shared with ``test_fedlm_verbs.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.federated.clients import write_clients
from privasr_k2.fileio import write_text
from tests.support.conf import section
from tests.support.fed_small import made_clients, saved_model

FEDLM = section("fedlm")

SMALL = ["rounds=3", "cohort=5", "eval_every=1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_clients(tmp_path / "clients.jsonl.gz", made_clients(14))
    saved_model(tmp_path / "init")
    write_text(tmp_path / "dev.txt", "w1 w2\n\nw3 w4 w5\n")
    return tmp_path


def flags(folder: Path, out: str = "out") -> list[object]:
    clients = ["--in-private-clients", folder / "clients.jsonl.gz"]
    public = ["--in-public-init", folder / "init", "--in-public-dev-text", folder / "dev.txt"]
    return [*clients, *public, "--out-dir", folder / out, "--device", "cpu", "--config", FEDLM]
