"""Groups of speakers for cross-validation."""

from __future__ import annotations

import pytest

from privasr_k2.data.folds import fold_of
from privasr_k2.errors import DataError


def cuts_of(seconds: dict[str, float]):
    lhotse = pytest.importorskip("lhotse")
    made = []
    for speaker, duration in seconds.items():
        for speed in ("", "_sp0.9"):
            name = f"{speaker}{speed}"
            said = lhotse.SupervisionSegment(name, name, 0.0, duration, speaker=speaker, text="a")
            cut = lhotse.MonoCut(name, 0.0, duration, 0, supervisions=[said])
            if speed:
                cut.custom = {"original_id": speaker}
            made.append(cut)
    return lhotse.CutSet.from_cuts(made)


def speakers(cuts) -> list[str]:
    return sorted(cut.supervisions[0].speaker for cut in cuts)


def test_each_speaker_is_held_out_once_and_is_never_on_both_sides() -> None:
    cuts = cuts_of({name: 1.0 + number for number, name in enumerate("abcdefg")})
    folds = [fold_of(cuts, fold, 3, seed=1) for fold in (1, 2, 3)]
    assert sorted(name for fold in folds for name in speakers(fold["dev"])) == list("abcdefg")
    for fold in folds:
        held, used = set(speakers(fold["dev"])), set(speakers(fold["train"]))
        assert not held & used and held | used == set("abcdefg")
        assert len(fold["train"]) == 2 * len(used) and len(fold["dev"]) == len(held)
    # Dealt out by their seconds: 7 + 4 + 1, 6 + 3 and 5 + 2 of 28.
    assert sorted(sum(c.duration for c in fold["dev"]) for fold in folds) == [7.0, 9.0, 12.0]


def test_the_seed_orders_speakers_of_equal_seconds() -> None:
    cuts = cuts_of(dict.fromkeys("abcdefghij", 1.0))
    held = {seed: speakers(fold_of(cuts, 1, 2, seed)["dev"]) for seed in range(5)}
    assert held[1] == speakers(fold_of(cuts, 1, 2, 1)["dev"])
    assert len({tuple(names) for names in held.values()}) > 1


def test_more_folds_than_speakers() -> None:
    with pytest.raises(DataError):
        fold_of(cuts_of({"a": 1.0, "b": 2.0}), 1, 3, seed=1)
