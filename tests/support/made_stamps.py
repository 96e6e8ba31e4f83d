"""Work folders with stamps of stages that never ran."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privasr_k2.fileio import write_json, write_text
from privasr_k2.privacy import events
from privasr_k2.privacy.ledger import Entry, Ledger
from tests.support.made_spending import COUNTS


def work_folder(path: Path) -> Path:
    """A folder that the stage runner takes for its own."""
    write_text(path / ".stages" / "lock", "")
    return path


def stamp(
    work: Path, number: int, command: str, output: str = "", configs: Sequence[str] = ()
) -> None:
    """The stamp of a stage; its output is the command's last word."""
    words = command.split()
    output = output or words[-1]
    record: dict[str, Any] = {
        "number": number,
        "title": words[0],
        "fingerprint": "f",
        "command": words,
    }
    record["configs"] = [[address, "0"] for address in configs]
    folder, name = Path(output).parent, Path(output).name
    write_json(work / folder / ".stages" / f"{name}.json", {**record, "outputs": {output: "0"}})


def privacy(path: Path, *, protected: bool = True) -> None:
    """The ``privacy.json`` of a release."""
    event = COUNTS.event if protected else events.unprotected()
    spending = dataclasses.replace(COUNTS, event=event)
    Ledger(path).append(Entry("0" * 32, "2-f", spending, "code", "2026-01-01T00:00:00+00:00"))
