"""path.sh: the environment is made once, and everything that stands in the way is one message."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

SHELL = "/bin/bash"


@pytest.fixture
def tree(tmp_path: Path, repo_root: Path) -> Path:
    """A checkout without an environment."""
    made = tmp_path / "tree"
    made.mkdir()
    shutil.copy(repo_root / "path.sh", made)
    shutil.copytree(repo_root / "requirements", made / "requirements")
    (made / "local").mkdir()
    shutil.copy(repo_root / "local" / "install_env.sh", made / "local")
    return made


def complete(tree: Path, stack: str = "torch1", folder: str = ".venv") -> None:
    """Make it look as if the environment were whole."""
    (tree / folder / "bin").mkdir(parents=True)
    (tree / folder / "bin" / "python").symlink_to("/bin/true")
    command = [SHELL, str(tree / "local" / "install_env.sh"), "fingerprint", stack]
    key = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tree / folder / ".complete").write_text(key)


def sourced(tree: Path, script: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Source path.sh from another folder in a strict shell, then run ``script``."""
    ours = ("PRIVASR_", "PYTHONPATH")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)} | variables
    command = [SHELL, "-c", f'set -euo pipefail; cd /; . "{tree}/path.sh"; {script}']
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_what_it_sets(tree: Path) -> None:
    complete(tree)
    script = 'echo "$PRIVASR_ROOT" "$LC_ALL" "$PYTHONUNBUFFERED" "$PYTHONPATH"'
    done = sourced(tree, f'{script}; echo "$PATH"; declare -F')
    assert (done.returncode, done.stderr) == (0, "")
    values, path = done.stdout.splitlines()
    assert values == f"{tree} C.UTF-8 1 {tree}"
    assert path.split(":")[:2] == [f"{tree}/local", f"{tree}/.venv/bin"]


def test_threads_sleep_while_they_wait_unless_told_otherwise(tree: Path) -> None:
    complete(tree)
    for told, policy in (("", "passive"), ("active", "active")):
        assert sourced(tree, "echo $OMP_WAIT_POLICY", OMP_WAIT_POLICY=told).stdout.strip() == policy


def test_sourcing_twice_changes_nothing_more(tree: Path) -> None:
    complete(tree)
    script = f'one=$PATH:$PYTHONPATH; . "{tree}/path.sh"'
    assert (
        sourced(tree, f"{script}; [[ $one == $PATH:$PYTHONPATH ]] && echo same").stdout == "same\n"
    )


def test_of_two_clones_the_last_sourced_comes_first(tree: Path, tmp_path: Path) -> None:
    complete(tree)
    other = Path(shutil.copytree(tree, tmp_path / "other", symlinks=True))
    script = f'. "{other}/path.sh"; . "{tree}/path.sh"; echo "$PYTHONPATH"; echo "$PATH"'
    pythonpath, path = sourced(tree, script).stdout.splitlines()
    assert pythonpath.split(":")[0] == str(tree)
    assert path.split(":")[:2] == [f"{tree}/local", f"{tree}/.venv/bin"]


def test_nothing_missing_takes_no_time(tree: Path) -> None:
    complete(tree)
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert sourced(tree).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Processor time, not the clock: other tests may be at work.
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.05


def test_nothing_missing_needs_no_network(tree: Path) -> None:
    complete(tree)
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a namespace without network cannot be made here")
    script = f'. "{tree}/path.sh"; echo "$PRIVASR_ROOT"'
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PRIVASR_")}
    command = [*alone, SHELL, "-c", script]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == str(tree)
    assert done.stderr == ""


def test_stacks_have_folders_of_their_own(tree: Path) -> None:
    complete(tree, "torch2-cpu", ".venv-torch2-cpu")
    done = sourced(tree, 'echo "$VIRTUAL_ENV"', PRIVASR_STACK="torch2-cpu")
    assert done.stdout == f"{tree}/.venv-torch2-cpu\n"


def test_the_current_environment_is_left_as_it_is(tree: Path) -> None:
    done = sourced(tree, "command -v python3", PRIVASR_ENV="current", PATH="/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tree / ".venv").exists()


@pytest.mark.parametrize("damage", ["no marker", "other lock", "no python"])
def test_a_half_made_environment_is_not_taken_for_a_whole_one(tree: Path, damage: str) -> None:
    complete(tree)
    if damage == "no marker":
        (tree / ".venv" / ".complete").unlink()
    elif damage == "other lock":
        with (tree / "requirements" / "k2.txt").open("a") as file:
            file.write("# changed\n")
    else:
        (tree / ".venv" / "bin" / "python").unlink()
    # The installer starts, and stops at the first check.
    done = sourced(tree, "echo went on", PRIVASR_PYTHON="/bin/false")
    assert done.returncode == 2
    assert "cannot be made here" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        (
            {"PRIVASR_PYTHON": "/nowhere/python"},
            [
                "CPython 3.11 is needed, found: /nowhere/python",
                "is nothing",
                "apt-get install python3.11",
            ],
        ),
        ({"PRIVASR_STACK": "torch3"}, ["PRIVASR_STACK is torch1 or torch2, found 'torch3'"]),
        ({"PRIVASR_ENV": "mine"}, ["PRIVASR_ENV is 'current' or not set, found 'mine'"]),
    ],
)
def test_one_message_and_2(tree: Path, variables: dict[str, str], parts: list[str]) -> None:
    done = sourced(tree, "echo went on", **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert [part for part in parts if part not in done.stderr] == []
    assert not (tree / ".venv").exists()


def test_a_folder_that_others_have_made_is_kept(tree: Path) -> None:
    (tree / ".venv/mine").mkdir(parents=True)
    done = sourced(tree, PRIVASR_PYTHON="/bin/false")
    assert done.returncode == 2
    assert ".venv is there, and is not path.sh's" in done.stderr
    assert (tree / ".venv/mine").exists()


def _wrapper(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!{SHELL}\n{body}\n")
    (folder / name).chmod(0o755)


def test_a_wrong_python_is_named_with_its_version(tree: Path, tmp_path: Path) -> None:
    for name in ("python3.11", "python3"):
        _wrapper(tmp_path / "bin", name, "echo cpython 3.12.4")
    done = sourced(tree, PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.returncode == 2
    assert "python3.11 is cpython 3.12.4,python3 is cpython 3.12.4" in done.stderr


def test_a_wrong_platform(tree: Path, tmp_path: Path) -> None:
    _wrapper(tmp_path / "bin", "uname", "[[ $1 == -s ]] && echo Darwin || echo arm64")
    done = sourced(tree, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 2
    assert "Linux on x86-64 is needed, found Darwin on arm64" in done.stderr


def test_an_old_c_library(tree: Path, tmp_path: Path) -> None:
    _wrapper(tmp_path / "bin", "getconf", "echo glibc 2.17")
    done = sourced(tree, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert "glibc 2.28 or newer is needed" in done.stderr
    assert "found 2.17" in done.stderr


def test_an_interactive_shell_survives(tree: Path) -> None:
    kept = {"PATH": os.environ["PATH"], "PRIVASR_STACK": "torch3"}
    script = f". {tree}/path.sh; echo alive $?"
    stdout = subprocess.check_output([SHELL, "-c", script], env=kept, text=True)
    assert stdout == "alive 2\n"


def test_a_folder_with_a_space(tree: Path) -> None:
    spaced = tree.rename(tree.with_name("a tree"))
    done = sourced(spaced)
    assert done.returncode == 2
    assert "no spaces allowed" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_checkout_that_cannot_be_written(tree: Path) -> None:
    tree.chmod(0o500)
    done = sourced(tree)
    tree.chmod(0o700)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_the_second_of_two_waits_and_says_so(tree: Path) -> None:
    with (tree / ".venv.lock").open("w") as lock:
        holder = subprocess.Popen(["flock", str(lock.name), "sleep", "1"])
        time.sleep(0.3)
        done = sourced(tree, PRIVASR_PYTHON="/bin/false")
        assert holder.poll() == 0
    assert "another process is making .venv; waiting for it" in done.stderr


def wheel(folder: Path, name: str, content: str, tag: str = "py3") -> str:
    """Write ``name`` 1.0 with one module; its line in a lock file."""
    folder.mkdir(exist_ok=True)
    path, about = folder / f"{name}-1.0-{tag}-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", content)
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="wants CPython 3.11")
def test_an_installation_takes_what_the_hashes_say(tree: Path, tmp_path: Path) -> None:
    """With pip from a folder of wheels; of two k2, as on the package index, the right one."""
    wheels = tmp_path / "wheels"
    wheel(wheels, "k2", "python = 3.9", "py3.9")
    locks = {
        "torch1": wheel(wheels, "numpy", "") + wheel(wheels, "torch", ""),
        "kenlm": wheel(wheels, "kenlm", ""),
        "k2": wheel(wheels, "k2", "python = 3.11", "py3.11"),
    }
    for name, lines in locks.items():
        (tree / f"requirements/{name}.txt").write_text(lines)
    given = {"PRIVASR_PYTHON": getattr(sys, "_base_executable", sys.executable)}
    given |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PATH": "/usr/bin:/bin"}
    show = 'python -c "import k2, torch; print(k2.python, torch.__file__)"'
    done = sourced(tree, show, **given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "3.11" and f"{tree}/.venv/" in done.stdout
    assert "path.sh: .venv is ready" in done.stderr
    assert sourced(tree, show, **given).stderr == ""  # nothing more to do
    # A wheel of the same name and version with other content.
    wheel(wheels, "k2", "python = 3.11  # changed", "py3.11")
    (tree / "requirements/kenlm.txt").write_text(f"# a new lock\n{locks['kenlm']}")
    (tree / ".venv/lib/python3.11/site-packages/k2.py").unlink()
    shutil.rmtree(tree / ".venv/lib/python3.11/site-packages/k2-1.0.dist-info")
    done = sourced(tree, show, **given)
    assert (done.returncode, done.stdout) == (2, "")
    assert "bringing .venv up to date" in done.stderr and "installing failed" in done.stderr
    assert "HASH" in done.stderr and not (tree / ".venv/.complete").exists()
