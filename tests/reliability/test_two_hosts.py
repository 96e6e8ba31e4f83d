"""torchrun over two hosts: network namespaces of one machine that one cable connects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from privasr_k2.training.weights import load_tensors
from tests.support.distributed import SCRIPT
from tests.support.fedlm_verbs import SMALL, flags
from tests.support.fedlm_verbs import folder as folder  # a fixture

ADDRESSES = ("10.213.7.1", "10.213.7.2")


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Names of two namespaces whose only way to each other are the ends of a virtual cable."""
    names = (f"privasr{os.getpid()}a", f"privasr{os.getpid()}b")
    cables = (f"pk{os.getpid()}a"[-15:], f"pk{os.getpid()}b"[-15:])
    made: list[str] = []
    try:
        for name in names:
            _ip(f"netns add {name}")
            made.append(name)
        _ip(f"link add {cables[0]} netns {names[0]} type veth peer {cables[1]} netns {names[1]}")
        for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
            _ip(f"-n {name} link set {cable} name eth0")
            _ip(f"-n {name} addr add {address}/24 dev eth0")
            for device in ("lo", "eth0"):
                _ip(f"-n {name} link set {device} up")
            _ip(f"netns exec {name} true")
    except (OSError, subprocess.CalledProcessError) as error:
        _forget(made)
        pytest.skip(f"no network namespaces can be made here: {error}")
    yield names
    _forget(made)


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def _forget(names: Sequence[str]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _environment(repo_root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(repo_root), "OMP_NUM_THREADS": "1"}


def _on_both(hosts: tuple[str, str], command: Sequence[object], repo_root: Path) -> None:
    """Run a program by torchrun, one process on each host."""
    environment = {**_environment(repo_root), "GLOO_SOCKET_IFNAME": "eth0"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = []
    for rank, host in enumerate(hosts):
        # torch 1.13 on Python 3.11 cannot read its own default, 0, of --redirects and --tee.
        torchrun = "-m torch.distributed.run --redirects 1 --tee 1 --nnodes 2"
        torchrun += f" --node_rank {rank} --master_addr {ADDRESSES[0]} --master_port 29500"
        words = ["ip", "netns", "exec", host, sys.executable, *torchrun.split(), *map(str, command)]
        running.append(subprocess.Popen(words, env=environment, text=True, **pipes))
    logs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], "\n".join(logs)


def test_training_over_two_hosts_equals_one_process(hosts, tmp_path, repo_root):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    alone = [sys.executable, str(script), str(tmp_path / "one")]
    assert subprocess.run(alone, env=_environment(repo_root), check=False).returncode == 0
    _on_both(hosts, [script, tmp_path / "two"], repo_root)
    last = "checkpoints/epoch-4.safetensors"
    one, two = (load_tensors(tmp_path / name / last) for name in ("one", "two"))
    torch.testing.assert_close(two, one, atol=1e-6, rtol=1e-5)


def test_a_cohort_over_two_hosts_equals_one_process(hosts, folder, repo_root):
    verb = ["-m", "privasr_k2.bin.train_fedlm"]
    changes = ["--set", *SMALL, "positions=40"]
    alone = [sys.executable, *verb, *map(str, flags(folder, "one")), *changes]
    environment = _environment(repo_root)
    done = subprocess.run(alone, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _on_both(hosts, [*verb, *flags(folder, "two"), *changes], repo_root)
    one, two = (load_tensors(folder / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(two[name], one[name], atol=1e-6, rtol=0)
