"""The second back end has folders of its own, and the acoustic model of the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recipe_tools import recipe

pytestmark = pytest.mark.recipe


@pytest.mark.parametrize("name", ["ctc", "rescore"])
def test_the_second_back_end_has_folders_of_its_own(tmp_path: Path, name: str) -> None:
    plain, k2, kaldi = (
        recipe(f"mini {name} --dry-run true {option}", "--work-dir", tmp_path)
        for option in ("", "--backend k2", "--backend kaldi")
    )
    assert "_kaldi" not in plain + k2
    for file in ("decode_dev", "decode_test", "weights.json"):
        assert f"exp/ctc_tdnn_phone/{file}" in plain and f"exp/ctc_tdnn_phone/{file}" not in kaldi
        assert f"exp/ctc_tdnn_phone_kaldi/{file}" in kaldi
    assert "exp/ctc_tdnn_phone/am" in kaldi and "exp/ctc_tdnn_phone_kaldi/am" not in kaldi
    report = f"exp/{name}_tdnn_phone_kaldi/RESULTS.md"
    assert report in kaldi and report not in plain
