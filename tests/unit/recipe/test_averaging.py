"""Which trainings begin with the checkpoints that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.recipe.averaging import averages_anew, take_over
from privasr_k2.recipe.fingerprint import Fingerprint
from privasr_k2.recipe.stamps import Places

COMMAND = "train_am --in-feats data/feats --out-dir exp/am"


def made(words: str, command: str = COMMAND, config: str = "1", feats: str = "2") -> Fingerprint:
    argv = (*command.split(), *words.split())
    return Fingerprint(argv, (("am.yaml", config),), (("data/feats", feats),))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (made("--set avg=8"), made("--set avg=3"), True),
        (made(""), made("--set avg=3"), True),
        (made("--set lr=0.1 avg=8"), made("--set average_over=best lr=0.1"), True),
        (made("--set lr=0.1 avg=8"), made("--set lr=0.2 avg=3"), False),
        (made("--set avg=8"), made("--set avg=3", feats="3"), False),
        (made("--set avg=8"), made("--set avg=3", config="3"), False),
        (made("--set avg=8", "decode --out-x y"), made("--set avg=3", "decode --out-x y"), False),
    ],
)
def test_another_average_alone(before: Fingerprint, now: Fingerprint, expected: bool) -> None:
    assert averages_anew(before.record, now) is expected
    assert not averages_anew(None, now)


def test_a_release_is_never_taken_over() -> None:
    private = f"{COMMAND} --out-privacy exp/privacy.json"
    before, now = (made(f"--set avg={n}", private) for n in (8, 3))
    assert not averages_anew(before.record, now)


def test_the_earlier_output_is_copied_and_stays(tmp_path: Path) -> None:
    stem = tmp_path / ".stages/am"
    where = Places(stem.with_suffix(".json"), stem, tmp_path / "log", (tmp_path / "am",))
    (where.before / "0/checkpoints").mkdir(parents=True)
    (where.before / "0/checkpoints/latest").write_text("weights")
    take_over(where)
    copied = tmp_path / "am/checkpoints/latest"
    copied.write_text("others")
    assert (where.before / "0/checkpoints/latest").read_text() == "weights"
    take_over(where)  # what an attempt has begun stays
    assert copied.read_text() == "others"
