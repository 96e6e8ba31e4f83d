"""Cross-validation over speakers: train's speakers in groups, one of which is held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privasr_k2.errors import DataError
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse import CutSet


def fold_of(cuts: CutSet, fold: int, folds: int, seed: int) -> dict[str, CutSet]:
    """Cuts of the roles ``train`` and ``dev``: dev has the speakers of one group.

    Speakers are shuffled by the seed, sorted by their seconds, and dealt out in turn, so that
    groups have about as much speech. Copies at other speeds go with their speaker; dev has none.

    Args:
        cuts: of train.
        fold: the group that is held out, from 1.
        folds: groups.

    Raises:
        DataError: fewer speakers than groups, or a cut without a speaker.
    """
    seconds: dict[str, float] = {}
    for cut in cuts:
        speaker = cut.supervisions[0].speaker
        if not speaker:
            way_out = "name the speakers, or set folds=0"
            raise DataError(cut.id, "a speaker, for cross-validation", "none", way_out)
        seconds[speaker] = seconds.get(speaker, 0.0) + cut.duration
    if len(seconds) < folds:
        expected = f"a speaker or more for each of {folds} folds"
        raise DataError("the role train", expected, f"{len(seconds)} speakers", "set fewer folds")
    names = sorted(seconds)
    shuffled = [names[place] for place in stream(seed, "folds").permutation(len(names))]
    ordered = sorted(shuffled, key=lambda name: -seconds[name])
    held = frozenset(ordered[fold - 1 :: folds])
    train = cuts.filter(lambda cut: cut.supervisions[0].speaker not in held).to_eager()
    dev = cuts.filter(
        lambda cut: cut.supervisions[0].speaker in held and "original_id" not in (cut.custom or {})
    )
    return {"train": train, "dev": dev.to_eager()}
