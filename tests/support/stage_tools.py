"""A work folder, small verbs and a way to run declared stages, for tests of the stage runner."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Writes to every --out-* what it reads and was told, line by line; notes in runs.txt that it ran.
#: --set fail=1 ends with code 3, gate=FILE waits for FILE before writing, folder=1 writes folders,
#: slowly=N writes in two steps into the folder itself, N seconds apart, and continues from what is
#: there; between them it ends with code 4 where there is a file called break.
COPY = r"""#!/usr/bin/env bash
declare -A set=(); ins=(); outs=(); flag=
words=("$@")
for word in "$@"; do
  case $word in
    --*) flag=$word ;;
    *) case $flag in
         --in-*|--config) ins+=("$word") ;; --out-*) outs+=("$word") ;;
         --set) set[${word%%=*}]=${word#*=} ;;
       esac ;;
  esac
done
echo "${outs[0]}" >> runs.txt
echo "threads ${OMP_NUM_THREADS-unset}"
if [[ -n ${set[gate]-} ]]; then while [[ ! -e ${set[gate]} ]]; do sleep 0.02; done; fi
read_all() {
  for i in "${ins[@]}"; do
    case $i in *.yaml#*) echo "value: ${i##*/}"; continue ;; esac  # the address of a section
    if [[ -d $i ]]; then cat "$i"/*; else cat "$i"; fi
  done
  echo "value=${set[value]-}"
}
for out in "${outs[@]}"; do
  if [[ -n ${set[slowly]-} ]]; then
    mkdir -p "$out"
    if [[ ! -e $out/first ]]; then
      read_all > "$out/.0badcafe.tmp.first"
      mv "$out/.0badcafe.tmp.first" "$out/first"
    fi
    if [[ -e break ]]; then echo "this broke"; exit 4; fi
    sleep "${set[slowly]}"
    { cat "$out/first"; echo second; } > "$out/.0badcafe.tmp.second"
    mv "$out/.0badcafe.tmp.second" "$out/second"
  elif [[ -n ${set[folder]-} ]]; then
    mkdir -p "$out"; read_all > "$out/content"
  elif [[ -z ${set[write_nothing]-} ]]; then
    mkdir -p "$(dirname "$out")"
    read_all > "$(dirname "$out")/.12345678.tmp.$(basename "$out")"
    [[ -z ${set[pause_after]-} ]] || sleep "${set[pause_after]}"
    if [[ -n ${set[fail]-} ]]; then echo "this went wrong"; exit 3; fi
    mv "$(dirname "$out")/.12345678.tmp.$(basename "$out")" "$out"
  fi
done
if [[ -n ${set[fail]-} ]]; then echo "this went wrong"; exit 3; fi
exit 0
"""


#: A recipe of stages that are declared already.
RECIPE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    pass

def stages(r, o):
    r.records += {records!r}
"""


def hear_interrupts() -> None:
    """For ``preexec_fn``: background processes inherit that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def clone(folder: Path, corpora: dict[str, str]) -> Path:
    """The repository's entries, no recipes, the verb ``copy``, and ``egs/NAME/corpus.yaml``."""
    ignored = shutil.ignore_patterns("recipes", "__pycache__")
    shutil.copytree(ROOT / "local", folder / "local", ignore=ignored)
    for name in ("run.sh", "path.sh"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "local/recipes").mkdir()
    write_program(folder / "copy", COPY)
    (folder / "x").write_text("x\n")
    for name, text in corpora.items():
        (folder / "egs" / name).mkdir(parents=True)
        (folder / "egs" / name / "corpus.yaml").write_text(text)
    return folder


def write_program(path: Path, text: str) -> None:
    """Write a file that can be run; bash runs it where it names no interpreter."""
    path.write_text(text if text.startswith("#!") else f"#!/usr/bin/env bash\n{text}")
    path.chmod(0o755)


#: A corpus of ``egs/`` for :func:`clone`.
CORPUS = """\
description: a corpus for tests
options: {corpus_dir: corpus}
own_options: {users: number of users}
"""


def run(root: Path, *words: str, code: int = 0, cwd: Path | None = None) -> str:
    """Run ./run.sh; both outputs together."""
    variables = {**os.environ, "PRIVASR_ENV": "current", "PYTHONPATH": str(ROOT)}
    return _output([root / "run.sh", *words], cwd or root, variables, code)


def _output(
    command: Sequence[str | Path], folder: Path, variables: dict[str, str], code: int
) -> str:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert done.returncode == code and "Traceback" not in text, text
    return text


@dataclass
class Tree:
    """A work folder with the verb ``./copy`` and a list of declared stages."""

    path: Path
    stages: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self.program("copy", COPY)
        self.write("runs.txt", "")

    def write(self, name: str, text: str) -> None:
        """Write a file of the work folder."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def program(self, name: str, text: str) -> None:
        """Write a verb of the work folder."""
        write_program(self.path / name, text)

    def read(self, name: str) -> str:
        """Read a file of the work folder."""
        return (self.path / name).read_text()

    def stage(self, number: int, title: str, line: str, *more: str) -> None:
        """Declare a stage by the words of a line and more; the verb is ``./copy`` by default."""
        words = [*shlex.split(line), *more]
        place = 1 if words[0].startswith("JOB=") else 0
        place += 2 if words[place] == "--cmd" else 0
        if words[place].startswith("--"):
            words.insert(place, "./copy")
        self.stages.append([str(number), title, *words])

    def command(self, *options: str) -> list[str]:
        """The command that runs the declared stages, as a recipe of one file."""
        recipe = self.path.with_name(f"{self.path.name}_recipe.py")
        recipe.write_text(RECIPE.format(records=self.stages))
        main = [sys.executable, "-m", "privasr_k2.recipe.run", "mini", str(recipe)]
        jobs = () if "--nj" in options else ("--nj", "1")
        return [*main, "--work-dir", str(self.path), *jobs, *options]

    def run(self, *options: str, code: int = 0) -> str:
        """Run the declared stages; the two outputs together."""
        text = _output(self.command(*options), self.path, environment(), code)
        return text.removeprefix(f"work folder: {self.path}\n")

    def start(self, *options: str) -> subprocess.Popen:
        """Begin to run the declared stages."""
        return subprocess.Popen(
            self.command(*options),
            cwd=self.path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=hear_interrupts,
        )

    def ran(self) -> list[str]:
        """The first outputs of the verbs that ran since the last call, in order."""
        names = self.read("runs.txt").split()
        self.write("runs.txt", "")
        return names

    def contents(self) -> dict[str, bytes]:
        """Everything under data/ and exp/ but stamps, logs and names with a dot."""
        files = [p for top in ("data", "exp") for p in sorted((self.path / top).rglob("*"))]
        names = {file.relative_to(self.path): file for file in files if file.is_file()}
        return {
            str(name): file.read_bytes()
            for name, file in names.items()
            if not any(part.startswith(".") or part == "log" for part in name.parts)
        }


def environment() -> dict[str, str]:
    """That of this process, with the repository to import from and no number of threads."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    return {**kept, "PYTHONPATH": str(ROOT)}


def kill(process: subprocess.Popen) -> None:
    """SIGKILL to the process alone, as the kernel does when memory runs out."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def is_gone(pid: str, seconds: float = 5.0) -> bool:
    """Whether a process ends within that time."""
    status = Path("/proc") / pid / "status"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not status.exists() or "Z (zombie)" in status.read_text():
            return True
        time.sleep(0.02)
    return False


def chain(tree: Tree) -> Tree:
    """Four stages: data -> (a folder) features -> model (in two steps) -> table."""
    tree.write("corpus.txt", "words\n")
    tree.write("model.yaml", "lr: 1\n")
    tree.stage(0, "data", "--in-corpus corpus.txt --out-data data/d.txt")
    tree.stage(1, "features", "--in-data data/d.txt --out-dir data/feats --set folder=1")
    model = "--in-feats data/feats --config model.yaml --out-dir exp/m/am --set slowly=0"
    tree.stage(2, "model", model)
    tree.stage(3, "table", "--in-model exp/m/am --out-table exp/m/RESULTS.md")
    return tree
