"""Local processes: bound, logs, exit codes, and nothing left behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from privasr_k2.recipe import launch
from tests.support.stage_tools import is_gone, write_program


def command(folder: Path, job: int, script: str) -> launch.Command:
    return launch.Command(job, ("/bin/sh", "-c", script), folder / "log" / f"{job}.log")


def run(
    commands: list[launch.Command], folder: Path, at_once: int, threads: int | None = None
) -> list[launch.Ended]:
    with launch.Pool(at_once=at_once, work_dir=folder) as pool:
        pool.add(commands, threads=threads)
        return [pool.next_ended() for _ in commands]


def test_codes_logs_and_order_of_ending(tmp_path: Path) -> None:
    commands = [command(tmp_path, job, f"echo out; echo err >&2; exit {job}") for job in (0, 1, 2)]
    ended = run(commands, tmp_path, at_once=2)
    assert sorted((each.command.job, each.code) for each in ended) == [(0, 0), (1, 1), (2, 2)]
    lines = (tmp_path / "log/2.log").read_text().splitlines()
    assert lines[1] == "# /bin/sh -c 'echo out; echo err >&2; exit 2'"
    assert lines[2:4] == ["out", "err"]
    assert lines[4].startswith("# ended with code 2 after ")


def test_a_signal_is_minus_its_number(tmp_path: Path) -> None:
    (ended,) = run([command(tmp_path, 1, "kill -9 $$")], tmp_path, at_once=1)
    assert ended.code == -9


def test_the_log_of_a_continued_attempt_is_kept(tmp_path: Path) -> None:
    first = command(tmp_path, 1, "echo first")
    run([first], tmp_path, at_once=1)
    again = launch.Command(1, ("/bin/echo", "second"), first.log, keep_log=True)
    run([again], tmp_path, at_once=1)
    assert "first\n" in (text := first.log.read_text()) and "second\n" in text


@pytest.mark.parametrize(("threads", "expected"), [(None, "unset"), (2, "2")])
def test_threads_where_the_environment_does_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int | None, expected: str
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    echo = command(tmp_path, 1, "echo threads ${OMP_NUM_THREADS-unset}")
    run([echo], tmp_path, at_once=1, threads=threads)
    assert f"threads {expected}\n" in echo.log.read_text()
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    run([echo], tmp_path, at_once=1, threads=threads)
    assert "threads 5\n" in echo.log.read_text()


def test_left_early_it_ends_its_processes_and_theirs(tmp_path: Path) -> None:
    sleeps = "sleep 60 & echo $! > child; wait"
    with launch.Pool(at_once=2, work_dir=tmp_path) as pool:
        pool.add([command(tmp_path, 1, "true"), command(tmp_path, 2, sleeps)])
        pool.next_ended()
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            time.sleep(0.01)
    assert is_gone((tmp_path / "child").read_text().strip())


def test_verbs_and_programs() -> None:
    assert launch.argv_of(["wer", "--x"]) == (sys.executable, "-m", "privasr_k2.bin.wer", "--x")
    assert launch.argv_of(["./own.sh", "--x"]) == ("./own.sh", "--x")
    assert launch._is_verb(launch.argv_of(["wer", "--x"])) == sys.platform.startswith("linux")
    assert not launch._is_verb(launch.argv_of(["./own.sh"]))
    assert not launch._is_verb(launch.argv_of(["train_lm"], ("torchrun", "--nproc_per_node", "2")))


def test_torchrun_starts_verbs_that_share_their_work() -> None:
    verb = ("-m", "privasr_k2.bin.train_lm", "--x")
    two = ("torchrun", "--nproc_per_node", "2")
    here = launch.argv_of(["train_lm", "--x"], two)
    # A free port: trainings side by side do not meet.
    own_port = ("--rdzv_endpoint", "localhost:0")
    assert here[0] == sys.executable and here[-7:] == (*own_port, *two[1:], *verb)
    assert own_port[0] not in launch.argv_of(["train_lm"], ("torchrun", "--nnodes=2"))
    on_nodes = launch.argv_of(["train_lm", "--x"], ("slurm", "--nodes", "2", *two))
    assert on_nodes[0] == "srun" and on_nodes[-5:] == (*two[1:], *verb)
    assert own_port[0] not in on_nodes
    alone = (sys.executable, "-m", "privasr_k2.bin.train_dpsgd")
    for launcher in (two, ("slurm", *two)):
        assert launch.argv_of(["train_dpsgd"], launcher) == alone
        assert launch.argv_of(["./own.sh"], launcher) == ("./own.sh",)


def test_verbs_that_share_their_work_are_those_that_join_a_group(repo_root: Path) -> None:
    verbs = repo_root / "privasr_k2" / "bin"
    joining = [file for file in verbs.rglob("*.py") if "with join(args.device)" in file.read_text()]
    names = {"audit" if file.parent.name == "audits" else file.stem for file in joining}
    assert names == launch.SHARING


def test_an_interrupted_slurm_job_is_cancelled_without_waiting_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """scancel tries for long while tasks are starting: the run ends, and scancel goes on."""
    (tmp_path / "bin").mkdir()
    scripts = {"sbatch": "echo 17", "scancel": 'echo $$ "$@" > said'}
    for name, script in scripts.items():
        write_program(tmp_path / "bin" / name, f"cd {tmp_path}\n{script}\nexec sleep 60\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(launch, "_GRACE_SECONDS", 0.5)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    commands = [command(tmp_path, 1, "true")]
    with pytest.raises(KeyboardInterrupt):
        launch.run_slurm(commands, [], is_array=False, work_dir=tmp_path, say=interrupted)
    while not (tmp_path / "said").exists() or not (tmp_path / "said").read_text():
        time.sleep(0.01)
    process, job = (tmp_path / "said").read_text().split()
    assert job == "17"
    os.kill(int(process), 9)  # it is still there


def test_the_script_of_a_slurm_array_quotes(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    odd = "a b'c\"d$e*"
    commands = [launch.Command(job, ("/bin/echo", odd, str(job)), folder / "l") for job in (2, 5)]
    script = folder / "script.sh"
    script.write_text(launch._script(commands, folder, folder))
    done = os.popen(f"SLURM_ARRAY_TASK_ID=5 bash '{script}'").read()
    assert done == f"{odd} 5\n"
    assert (folder / "5.code").read_text() == "0\n"
    assert launch._escape("/a%b/%a.log", is_array=True) == "/a%%b/%a.log"
    assert launch._escape("/a%b/c.log", is_array=False) == "/a%%b/c.log"
