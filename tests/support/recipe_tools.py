"""Running the real command line on the tiny corpus."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXP = "exp/ctc_tdnn_phone"


def run_recipe(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """``./run.sh ARGUMENTS`` to its end; stdout and stderr together."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    command = [str(ROOT / "run.sh"), *map(str, arguments)]
    return subprocess.run(command, text=True, **streams, **options)  # type: ignore[call-overload, no-any-return]


def recipe(command: str, *arguments: str | Path, code: int = 0) -> str:
    """The output of ``./run.sh``, which ends with ``code``; the words of ``command`` are split."""
    done = run_recipe(*shlex.split(command), *arguments)
    assert done.returncode == code, done.stdout
    return done.stdout


def assert_up_to_date(command: str, *arguments: str | Path) -> None:
    """Run a finished recipe again: no stage runs."""
    lines = stage_lines(recipe(command, *arguments))
    assert lines and all(line.endswith("up to date") for line in lines), lines


def dry_run(command: str, *arguments: str | Path) -> dict[str, str]:
    """What a dry run shows of each stage, by ``NUMBER (TITLE)``."""
    text = recipe(f"{command} --dry-run true", *arguments)
    return {stage.partition("\n")[0]: stage for stage in f"\n{text}".split("\nstage ")[1:]}


def run_and_kill(
    seconds: float, *arguments: str | Path, when: Callable[[], bool] | None = None
) -> bool:
    """Whether ``./run.sh ARGUMENTS`` was killed with SIGKILL, after ``seconds`` or at ``when``."""
    command = [str(ROOT / "run.sh"), *map(str, arguments)]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(command, **quiet, start_new_session=True)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (when and when()):
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def stage_lines(text: str) -> list[str]:
    """The lines of a run that count stages."""
    return [line for line in text.splitlines() if re.match(r"\[stage \d+, \d+/\d+\] ", line)]


def check_names(rows: Iterable[Mapping[str, Any]], part: str = "test") -> set[str]:
    """The systems that were scored on a part: all have figures of names, which add up."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if (row["kind"], row["part"]) != ("score_test", part) or row["item"] or row["group"]:
            continue
        if not row["against"]:
            found.setdefault(row["system"], {})[row["metric"]] = row["value"]
    assert found
    for of in found.values():
        inside, outside = (
            of[rate] * of[words] / 100
            for rate, words in (("name_wer", "entity_words"), ("other_wer", "other_words"))
        )
        assert round(inside) + round(outside) == of["errors"] and of["entity_words"] > 0
        assert of["entity_words"] + of["other_words"] == of["words"]
        assert {"recall", "false_alarm_rate"} <= of.keys()
    return set(found)


def transcripts(work: Path, role: str = "test") -> dict[str, list[tuple[str, float]]]:
    """The words and the acoustic score of each hypothesis, for every utterance of a role."""
    return {
        record["id"]: [(hyp["words"], hyp["am_score"]) for hyp in record["hyps"]]
        for record in records(work / EXP / f"decode_{role}")
    }


def records(folder: Path) -> list[dict[str, Any]]:
    """All records of the ``*.jsonl`` of a folder."""
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def error_counts(folder: Path, part: str = "test") -> dict[str, int]:
    """The error counts of a part in a folder of scores."""
    return json.loads((folder / "wer.json").read_text())["parts"][part]["counts"]


def stage_seconds(work: Path) -> dict[str, float]:
    """How long each stage took, by its first output."""
    paths = (path for path in work.rglob("*.json") if ".stages" in path.parts)
    read = {p.stem: json.loads(p.read_text()) for p in paths if p.name != "hashes.json"}
    return {name: stamp["seconds"] for name, stamp in read.items() if "seconds" in stamp}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, logs and the runner's own files left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {".stages", "log"} & set(path.relative_to(folder).parts)
    }


def kaldi_folder(work: Path, folder: Path, *, utterances: int = 6) -> Path:
    """A Kaldi data directory, train/ and test/, with copies of the tiny corpus's audio."""
    from privasr_k2.data.manifests import load_cuts

    for role in ("train", "dev", "test"):
        by_speaker = sorted(load_cuts(work / "data/manifests", role), key=lambda cut: cut.id)
        target = folder / role
        (target / "audio").mkdir(parents=True)
        lines: dict[str, list[str]] = {"wav.scp": [], "text": [], "utt2spk": []}
        for cut in by_speaker[:utterances]:
            shutil.copy(cut.recording.sources[0].source, target / "audio" / f"{cut.id}.flac")
            lines["wav.scp"].append(f"{cut.id} audio/{cut.id}.flac")
            lines["text"].append(f"{cut.id} {cut.supervisions[0].text}")
            lines["utt2spk"].append(f"{cut.id} {cut.supervisions[0].speaker}")
        for name, content in lines.items():
            (target / name).write_text("".join(f"{line}\n" for line in content))
    return folder
