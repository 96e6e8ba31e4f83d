"""A recipe killed in any stage and run again gives the transcripts of one that was never killed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.recipe_tools import EXP, recipe, run_and_kill, stage_seconds, transcripts

pytestmark = [pytest.mark.k2, pytest.mark.recipe, pytest.mark.reliability]

NUM_KILLS = 6
TINY = "mini ctc --preset tiny"


def test_killed_anywhere_and_run_again(finished: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng()  # other moments every time; those of a failure are printed
    work, times = tmp_path / "work", []
    command = (*TINY.split(), "--work-dir", work)
    longest = sum(stage_seconds(finished).values())
    while len(times) < NUM_KILLS:
        seconds = float(draw.uniform(0.5, 0.5 * longest))
        times.append(seconds)
        if not run_and_kill(seconds, *command):
            break
    print("killed after", times)
    recipe(TINY, "--work-dir", work)
    for role in ("dev", "test"):
        assert transcripts(work, role) == transcripts(finished, role)
    assert (work / EXP / "RESULTS.md").read_bytes() == (finished / EXP / "RESULTS.md").read_bytes()


def test_training_killed_in_the_middle(finished: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    command = (*TINY.split(), "--work-dir", work)
    recipe(TINY, "--stop-stage", "4", "--work-dir", work)
    epochs = work / EXP / "am/train_log.jsonl"
    for number in (2, 5):

        def trained(number: int = number) -> bool:
            return epochs.exists() and epochs.read_text().count("\n") >= number

        assert run_and_kill(300, *command, "--stop-stage", "5", when=trained)
    recipe(TINY, "--work-dir", work)
    assert "continuing in epoch" in (work / EXP / "log/am.log").read_text()
    weights = "am/model.safetensors"
    assert (work / EXP / weights).read_bytes() == (finished / EXP / weights).read_bytes()
    assert transcripts(work) == transcripts(finished)
