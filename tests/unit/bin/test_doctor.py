"""The doctor's report: 0 where ctc can run, otherwise 2 and ways out."""

from __future__ import annotations

import pytest

from privasr_k2 import environment
from privasr_k2.bin import doctor
from privasr_k2.environment import Finding


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which nothing is missing."""
    locked = environment.locked_versions(environment.lock_files("torch1"))
    monkeypatch.setattr("sys.argv", ["doctor"])
    monkeypatch.delenv("PRIVASR_STACK", raising=False)
    monkeypatch.setattr(environment, "installed_version", locked.get)
    monkeypatch.setattr(environment, "built_with", lambda: ("1.13.1", "11.7", "1.13.1", "11.7"))
    monkeypatch.setattr(environment, "check_imports", lambda: Finding("k2 loads", "yes", "", ""))
    monkeypatch.setattr(environment, "check_gpus", list)
    python = Finding("python", "cpython 3.11.7", "cpython 3.11", "")
    monkeypatch.setattr(environment, "check_machine", lambda root: [python])
    return monkeypatch


def test_all_ready(whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main() == 0
    shown = capsys.readouterr().out
    assert "ctc         ready" in shown
    assert "ways out" not in shown


def test_nothing_installed(whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    whole.setattr(environment, "installed_version", lambda name: None)
    whole.setattr(environment, "built_with", lambda: (None, None, None, None))
    assert doctor.main() == 2
    shown = capsys.readouterr().out
    assert "ctc         no: numpy, " in shown
    assert "  k2: let path.sh install it" in shown


def test_a_k2_of_another_torch_is_not_loaded(
    whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole.setattr(environment, "built_with", lambda: ("2.9.1", "12.8", "1.13.1", "11.7"))
    whole.setattr(environment, "check_imports", lambda: pytest.fail("k2 was loaded"))
    assert doctor.main() == 2
    assert "  k2 fits torch: install a k2 built for torch 2.9.1" in capsys.readouterr().out


def test_a_k2_that_does_not_load(
    whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Finding("k2 loads", None, "", "undefined symbol")
    whole.setattr(environment, "check_imports", lambda: broken)
    assert doctor.main() == 2
    assert "  k2 loads: undefined symbol" in capsys.readouterr().out


def test_a_gpu_without_kernels(
    whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = Finding("GPU", "H100, compute capability 9.0; torch 1.13.1", "sm_86", "another torch")
    whole.setattr(environment, "check_gpus", lambda: [old])
    assert doctor.main() == 2
    assert "  GPU: another torch" in capsys.readouterr().out


def test_a_stack_that_does_not_exist(
    whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole.setenv("PRIVASR_STACK", "torch3")
    assert doctor.main() == 2
    assert "PRIVASR_STACK: expected torch1 or torch2, found 'torch3'" in capsys.readouterr().err


def test_a_missing_tagger_does_not_stop_ctc(
    whole: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = environment.locked_versions(environment.lock_files("torch1"))
    del locked["spacy"]
    whole.setattr(environment, "installed_version", locked.get)
    assert doctor.main() == 0
    assert "classlm     no: spacy" in capsys.readouterr().out
