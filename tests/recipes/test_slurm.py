"""Arrays on a real Slurm cluster of one node, made for the tests and taken down after them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.support.fedlm_verbs import folder as folder  # a fixture
from tests.support.stage_tools import Tree, kill
from tests.support.torchrun_stage import train

DAEMONS = ("slurmctld", "slurmd", "munged")
COPIES = 'exec ./copy "$@"\n'
SLEEPS = "echo begun >> begun\nexec sleep 100\n"
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.geteuid() != 0
        or not all(shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") for name in DAEMONS),
        reason="a test cluster needs root, slurmctld, slurmd and munged (Debian: slurm-wlm, munge)",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """A cluster of this machine; SLURM_CONF points to it. Yields its folder."""
    # Short, for munge's socket, and not world-writable.
    folder = Path(f"/run/privasr-slurm-{os.getpid()}")
    folder.mkdir(mode=0o755)
    host = socket.gethostname().split(".")[0]
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    ports = [_free_port() for _ in range(2)]
    cores = os.cpu_count()
    (folder / "slurm.conf").write_text(
        f"ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
        f"SlurmctldPort={ports[0]}\nSlurmdPort={ports[1]}\n"
        f"AuthType=auth/munge\nAuthInfo=socket={folder}/munge\n"
        f"CryptoType=crypto/munge\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n"
        f"SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nReturnToService=2\n"
        "MpiDefault=none\nSchedulerType=sched/builtin\n"
        "SchedulerParameters=batch_sched_delay=0,sched_interval=1\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
        "JobAcctGatherType=jobacct_gather/none\n"
        f"NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN\n"
        f"PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP\n"
    )
    for name in ("state", "spool"):
        (folder / name).mkdir()
    before = os.environ.copy()
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    os.environ["PATH"] += ":/usr/sbin"
    files = {"socket": "munge", "key-file": "key", "pid-file": "munged.pid"}
    files |= {"log-file": "munged.log", "seed-file": "seed"}
    munged = ["munged", "--foreground", "--force"]
    munged += [f"--{flag}={folder}/{name}" for flag, name in files.items()]
    daemons = []
    try:
        for command in (munged, ["slurmctld", "-D"], ["slurmd", "-D"]):
            with (folder / f"{command[0]}.out").open("w") as log:
                daemons.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
            time.sleep(0.5)
        _wait_until_idle(folder)
        yield folder
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_idle(folder: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True)
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.3)
    logs = "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in folder.glob("*.out"))
    pytest.fail(f"the cluster did not start: {done.stdout}{done.stderr}\n{logs}")


@pytest.fixture
def tree(cluster: Path, tmp_path: Path) -> Tree:
    """An array of four jobs, the third of which fails, and a single stage after it."""
    work = Tree(tmp_path / "work folder")
    work.program("sometimes", f"[[ $4 != */3 ]] || {{ echo bad shard; exit 4; }}\n{COPIES}")
    for job in (1, 2, 3, 4):
        work.write(f"shards/{job}", f"shard {job}\n")
    array = "JOB=1:4 --cmd 'slurm --time 5' ./sometimes --out-hyps exp/decode/JOB.txt"
    work.stage(6, "decode", f"{array} --in-shard shards/JOB --set value=JOB")
    work.stage(7, "score", "--cmd slurm ./copy --in-hyps exp/decode --out-score exp/score")
    return work


def test_an_array_with_a_failing_task(tree: Tree) -> None:
    text = tree.run(code=2)
    assert "job 3 of 4 failed (exit code 4)" in text and "bad shard" in text
    assert "exp/log/decode.JOB.txt/3.log" in text
    assert sorted(tree.ran()) == [f"exp/decode/{job}.txt" for job in (1, 2, 4)]
    assert "# ended with code 0" in tree.read("exp/log/decode.JOB.txt/2.log")
    tree.program("sometimes", COPIES)
    text = tree.run()
    assert "1 of 4 jobs" in text
    assert tree.ran() == ["exp/decode/3.txt", "exp/score"]
    assert tree.read("exp/score").count("shard") == 4
    assert tree.run().count("up to date") == 2


def test_options_that_slurm_refuses(tree: Tree) -> None:
    tree.stages[0][4] = "slurm --partition nowhere"
    text = tree.run(code=2)
    assert "nowhere" in text or "partition" in text
    assert "way out: correct --cmd" in text


def _begun(tree: Tree) -> subprocess.Popen:
    """A run whose array has begun to sleep."""
    tree.program("sometimes", SLEEPS)
    process = tree.start("--stop-stage", "6")
    deadline = time.monotonic() + 90
    while not (tree.path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return process


def test_jobs_of_a_killed_run_are_cancelled(tree: Tree) -> None:
    process = _begun(tree)
    kill(process)
    assert _queue() != ""
    tree.program("sometimes", COPIES)
    began = time.monotonic()
    assert "cancelling the Slurm jobs" in tree.run("--stop-stage", "6")
    assert time.monotonic() - began < 60
    assert _queue() == ""


def test_an_interrupted_run_cancels_its_jobs(tree: Tree) -> None:
    process = _begun(tree)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 130
    deadline = time.monotonic() + 60
    while _queue() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _queue() == ""


def _queue() -> str:
    done = subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_training_by_torchrun_on_its_nodes(cluster: Path, folder: Path) -> None:
    alone = train(folder, "one", "local")
    shared = train(folder, "two", "slurm --nodes 1 torchrun --nproc_per_node 2")
    torch.testing.assert_close(shared, alone, atol=1e-6, rtol=0)
