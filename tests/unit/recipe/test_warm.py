"""Verbs forked from a warm process are as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from privasr_k2.recipe import launch, warm
from tests.support.fedlm_verbs import SMALL, flags
from tests.support.fedlm_verbs import folder as folder  # a fixture
from tests.support.stage_tools import is_gone

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="warm stages need Linux"
)

ENDS = """
import os, signal, sys
how = sys.argv[1]
print(sys.argv[1:], os.getcwd(), os.getsid(0) == os.getpid(), repr(sys.stdin.read()), __name__)
if how == "number": sys.exit(3)
if how == "text": sys.exit("a reason")
if how == "none": sys.exit()
if how == "raise": raise ValueError("a defect")
if how == "abort": os.kill(os.getpid(), signal.SIGKILL)
if how == "at_exit":
    import atexit, threading, time
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.2), print("a thread"))).start()
    kept = open("unclosed", "w"); kept.write("text")
"""
DRAWS = """
import json, random, secrets, sys
was_warm = "torch" in sys.modules
import numpy, torch
from privasr_k2.privacy import release
from privasr_k2.privacy.discrete import DiscreteGaussianNoise
from privasr_k2.randomness import new_secret, noise_stream
from tests.support.made_spending import COUNTS
from pathlib import Path
own = Path(sys.argv[1])
begun = dict(beside=own / "privacy.json", spending=COUNTS, fingerprint="a" * 64, max_epsilon=None)
with release.begin(own / "ledger.json", **begun) as made:
    files = [path for path in own.rglob("*") if path.is_file() and path.stat().st_size == 32]
    key = files[0].read_bytes()
values = {
    "key": key.hex(),
    "noise": noise_stream(new_secret(), "x").random_bytes(16).hex(),
    "discrete": DiscreteGaussianNoise(1e9).add([0, 0, 0]).tolist(),
    "python": random.random(), "numpy": numpy.random.random(), "secrets": secrets.token_hex(8),
    "torch": torch.rand(1, dtype=torch.float64).item(),
}
print(json.dumps([was_warm, values]))
"""
COMPUTES = """
import multiprocessing, sys
was_warm = "torch" in sys.modules
import numpy, torch
def square(x):
    return x * x
if __name__ == "__main__":
    torch.manual_seed(1)
    weight = torch.randn(700, 700, requires_grad=True)
    value = (torch.randn(700, 700) @ weight).tanh().sum()
    value.backward()  # starts the threads of autograd
    solved = numpy.linalg.svd(weight.detach().numpy()[:200, :200])[1].sum()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        squares = pool.map(square, range(3))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        squares += pool.map(square, range(3))
    sums = [float(sum).hex() for sum in (value.detach(), weight.grad.sum(), solved)]
    print(torch.get_num_threads(), *sums, squares)
    print("warm" if was_warm else "cold", file=open(sys.argv[1], "w"))
"""
#: A fork is safe only where no thread runs; a child may use a GPU only if its parent never did.
IMPORTS = """
import importlib, os, pkgutil, sys
import torch
def refuse(*_):
    raise SystemExit("a GPU is looked for")
for name in ("_cuda_getDeviceCount", "_cuda_init"):
    if hasattr(torch._C, name):
        setattr(torch._C, name, refuse)
from privasr_k2.recipe import warm
import privasr_k2
own_modules = (info.name for info in pkgutil.walk_packages(privasr_k2.__path__, "privasr_k2."))
for name in [*warm.LIBRARIES, *filter(warm.is_taught, own_modules)]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error, file=sys.stderr)
print(len(os.listdir("/proc/self/task")), torch.cuda.is_initialized())
"""


@pytest.fixture
def environment(repo_root: Path) -> dict[str, str]:
    own = {"PYTHONPATH": str(repo_root), "OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": ""}
    return {**os.environ, **own}


@pytest.fixture
def server(tmp_path: Path, environment: dict[str, str]) -> Iterator[warm.WarmServer]:
    for name, text in (("ends", ENDS), ("draws", DRAWS), ("computes", COMPUTES)):
        (tmp_path / f"{name}.py").write_text(text)
    started = warm.WarmServer(environment, tmp_path)
    yield started
    started.close()


def run(server: warm.WarmServer, folder: Path, module: str, *arguments: str) -> tuple[int, str]:
    """The exit code, and what the log got."""
    log = folder / "log"
    log.write_text("")
    process = server.start(module, arguments, log, {})
    assert process is not None
    return process.wait(60), log.read_text()


@pytest.mark.parametrize(
    ("how", "code", "last"),
    [
        ("end", 0, ""),
        ("none", 0, ""),
        ("number", 3, ""),
        ("text", 1, "a reason"),
        ("raise", 1, "ValueError: a defect"),
        ("abort", -9, None),
        ("at_exit", 0, "at exit"),
    ],
)
def test_ends_as_a_process_of_its_own(
    server: warm.WarmServer, tmp_path: Path, how: str, code: int, last: str | None
) -> None:
    first = f"{[how, 'a b']} {tmp_path} True '' __main__"
    ended, text = run(server, tmp_path, "ends", how, "a b")
    assert ended == code
    if last is not None:  # what was not flushed is lost with the process, here as there
        lines = text.splitlines()
        assert first in lines and (not last or last in lines)
    if how == "at_exit":
        assert "a thread" in text and (tmp_path / "unclosed").read_text() == "text"


def test_children_of_one_server_draw_their_own_noise(
    server: warm.WarmServer, tmp_path: Path
) -> None:
    drawn = []
    for name in ("first", "second", "third"):
        code, text = run(server, tmp_path, "draws", str(tmp_path / name))
        assert code == 0, text
        drawn.append(json.loads(text.splitlines()[-1]))
    assert [was_warm for was_warm, _ in drawn] == [False, True, True]
    for name in drawn[0][1]:
        assert len({str(values[name]) for _, values in drawn}) == 3, name


@pytest.mark.skipif(not warm.is_exact(), reason="stages start cold with torch 2")
def test_threads_autograd_and_processes_of_a_warm_child(
    server: warm.WarmServer, tmp_path: Path, environment: dict[str, str]
) -> None:
    warm_runs = [run(server, tmp_path, "computes", str(tmp_path / f"state{i}")) for i in (1, 2)]
    assert [(tmp_path / f"state{i}").read_text() for i in (1, 2)] == ["cold\n", "warm\n"]
    alone = [sys.executable, "-m", "computes", str(tmp_path / "state3")]
    done = subprocess.run(alone, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("2 "), done.stderr
    assert warm_runs[0] == warm_runs[1] == (0, done.stdout)


def test_the_libraries_are_imported_without_side_effects(environment: dict[str, str]) -> None:
    alone = {**environment, "OPENBLAS_NUM_THREADS": "1"}  # its threads end before a fork
    command = [sys.executable, "-c", IMPORTS]
    done = subprocess.run(command, env=alone, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "False"], done.stderr


def test_a_server_that_has_opened_a_gpu_is_told(tmp_path: Path) -> None:
    (tmp_path / "0").symlink_to("/dev/null")
    assert not warm.holds_gpu(tmp_path) and not warm.holds_gpu()
    (tmp_path / "1").symlink_to("/dev/nvidiactl")
    assert warm.holds_gpu(tmp_path)


def test_what_is_imported_is_learned_and_a_verb_is_not(
    server: warm.WarmServer, tmp_path: Path
) -> None:
    (tmp_path / "names.py").write_text(
        "import sys\n"
        "verbs = ['privasr_k2.bin.cli', 'privasr_k2.bin.wer']\n"
        "names = ['privasr_k2.text', *verbs, 'decimal', 'yaml']\n"
        "print(*(name for name in names if name in sys.modules))\n"
        "import decimal, privasr_k2.text, privasr_k2.bin.wer\n"
        "sys.exit(2)\n"
    )
    assert run(server, tmp_path, "names") == (2, "\n")
    known = run(server, tmp_path, "names")[1].split()
    assert known == ["privasr_k2.text", "privasr_k2.bin.cli", "yaml"]


def test_a_module_that_cannot_be_imported_stops_nothing(
    server: warm.WarmServer, tmp_path: Path
) -> None:
    """Such as k2 without k2, or a module that was removed while a recipe ran."""
    (tmp_path / "odd.py").write_text(
        "import sys, types\nsys.modules['privasr_k2.gone'] = types.ModuleType('x')\n"
    )
    for _ in range(3):
        assert run(server, tmp_path, "odd") == (0, "")
    code, text = run(server, tmp_path, "no_such_verb")
    assert code == 1 and "No module named no_such_verb" in text


@pytest.mark.skipif(not warm.is_exact(), reason="stages start cold with torch 2")
def test_a_training_gives_the_same_bytes_warm_and_alone(
    folder: Path, environment: dict[str, str]
) -> None:
    def command(name: str) -> launch.Command:
        words = [*map(str, flags(folder, name)), "--set", *SMALL, "positions=40"]
        argv = launch.argv_of(["train_fedlm", *words])
        return launch.Command(1, argv, folder / "log" / f"{name}.log")

    with launch.Pool(at_once=1, work_dir=folder) as pool:
        pool.add([command("first"), command("warm")], threads=1)
        for _ in range(2):
            ended = pool.next_ended()
            assert ended.code == 0, ended.command.log.read_text()
    variables = {**environment, "OMP_NUM_THREADS": "1"}
    subprocess.run(command("alone").argv, cwd=folder, env=variables, check=True)
    for name in ("first", "warm"):
        for file in ("model.safetensors", "train_log.jsonl"):
            alone = folder / "alone" / file
            assert (folder / name / file).read_bytes() == alone.read_bytes(), file


def test_signals_reach_the_child_and_its_children(server: warm.WarmServer, tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(
        "import subprocess\nsubprocess.run(['sh', '-c', 'echo $$; exec sleep 60'])\n"
    )
    log = tmp_path / "log"
    process = server.start("sleeps", [], log, {})
    assert process is not None
    while not log.exists() or not log.read_text():
        time.sleep(0.01)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(5) == -signal.SIGTERM
    assert is_gone(log.read_text().strip())


@pytest.mark.skipif(not warm.is_exact(), reason="stages start cold with torch 2")
def test_a_verb_is_started_anew_where_the_server_has_died(tmp_path: Path) -> None:
    command = launch.Command(1, launch.argv_of(["wer", "--help"]), tmp_path / "log")
    with launch.Pool(at_once=1, work_dir=tmp_path) as pool:
        for _ in range(2):
            pool.add([command])
            assert pool.next_ended().code == 0 and "verb wer " in command.log.read_text()
            (server,) = pool._servers.values()
            server._process.kill()
            server._process.wait()
