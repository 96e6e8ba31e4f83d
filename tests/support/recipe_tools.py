"""Running the real command line on the tiny corpus."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXP = "exp/ctc_tdnn_phone"


def run_recipe(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """``./run.sh ARGUMENTS`` to its end; stdout and stderr together."""
    command = [str(ROOT / "run.sh"), *map(str, arguments)]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )  # type: ignore[call-overload, no-any-return]


def run_and_kill(
    seconds: float, *arguments: str | Path, when: Callable[[], bool] | None = None
) -> bool:
    """``./run.sh ARGUMENTS``, killed with SIGKILL after some seconds, or as soon as ``when``;
    whether so.
    """
    process = subprocess.Popen(
        [str(ROOT / "run.sh"), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
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
    return [line for line in text.splitlines() if re.match(r"\[\d+/\d+\] ", line)]


def transcripts(work: Path, role: str = "test") -> dict[str, list[tuple[str, float]]]:
    """The words and the acoustic score of each hypothesis, for every utterance of a role."""
    found = {}
    for path in sorted((work / EXP / f"decode_{role}").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            found[record["id"]] = [(hyp["words"], hyp["am_score"]) for hyp in record["hyps"]]
    return found


def stage_seconds(work: Path) -> dict[str, float]:
    """How long each stage took, by its first output."""
    stamps = (
        path
        for path in work.rglob("*.json")
        if ".stages" in path.parts and path.name != "hashes.json"
    )
    read = {path.stem: json.loads(path.read_text()) for path in stamps}
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
        made = folder / role
        (made / "audio").mkdir(parents=True)
        lines: dict[str, list[str]] = {"wav.scp": [], "text": [], "utt2spk": []}
        for cut in by_speaker[:utterances]:
            shutil.copy(cut.recording.sources[0].source, made / "audio" / f"{cut.id}.flac")
            lines["wav.scp"].append(f"{cut.id} audio/{cut.id}.flac")
            lines["text"].append(f"{cut.id} {cut.supervisions[0].text}")
            lines["utt2spk"].append(f"{cut.id} {cut.supervisions[0].speaker}")
        for name, content in lines.items():
            (made / name).write_text("".join(f"{line}\n" for line in content))
    return folder
