"""What the recipes plan for the second back end: folders of its own, and the acoustic model of the
first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recipe_tools import run_recipe

pytestmark = pytest.mark.recipe


def planned(work: Path, recipe: str, *more: str) -> str:
    """What ``--dry-run true`` lists."""
    done = run_recipe("mini", recipe, "--work-dir", work, "--dry-run", "true", *more)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("recipe", ["ctc", "rescore"])
def test_the_second_back_end_has_folders_of_its_own(tmp_path: Path, recipe: str) -> None:
    plain = planned(tmp_path, recipe)
    assert (
        planned(tmp_path, recipe, "--backend", "k2").count("_kaldi") == 0 == plain.count("_kaldi")
    )
    kaldi = planned(tmp_path, recipe, "--backend", "kaldi")
    for name in ("decode_dev", "decode_test", "weights.json"):
        assert f"exp/ctc_tdnn_phone/{name}" in plain
        assert (
            f"exp/ctc_tdnn_phone/{name}" not in kaldi
            and f"exp/ctc_tdnn_phone_kaldi/{name}" in kaldi
        )
    assert "exp/ctc_tdnn_phone/am" in kaldi and "exp/ctc_tdnn_phone_kaldi/am" not in kaldi
    report = {"ctc": "exp/ctc_tdnn_phone_kaldi", "rescore": "exp/rescore_tdnn_phone_kaldi"}[recipe]
    assert f"{report}/RESULTS.md" in kaldi and f"{report}/RESULTS.md" not in plain
