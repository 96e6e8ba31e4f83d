"""Perturbed copies of utterances that come with a corpus, as lhotse and Kaldi name them.

lhotse appends ``_sp0.9`` (speed), ``_tp1.1`` (tempo), ``_vp2.0`` (volume) or ``_rvb`` to ids.
Kaldi's ``perturb_data_dir_speed.sh`` puts ``sp0.9-`` before ids and before speakers. A copy is the
same person's speech, so it has that person's name, and ``custom["original_id"]`` of its original.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lhotse.cut import Cut

_LHOTSE = re.compile(r"(?<=.)(?:_(?:sp|tp|vp)\d+\.\d+|_rvb)+$")
_KALDI = re.compile(r"(?:(?:sp|tp|vp)\d+\.\d+-)+(?=.)")


def original_of(name: str) -> str:
    """The id of the utterance that ``name`` is a copy of; ``name`` itself where it is none.

    >>> original_of("103-1240-0000_sp0.9"), original_of("sp1.1-103-1240-0000"), original_of("a_sp")
    ('103-1240-0000', '103-1240-0000', 'a_sp')
    """
    plain = _LHOTSE.sub("", name)
    prefix = _KALDI.match(plain)
    return plain if prefix is None else plain[prefix.end() :]


def is_copy(cut: Cut) -> bool:
    """Whether :func:`named_originals` found a cut to be a copy."""
    return "original_id" in (cut.custom or {})


def named_originals(cuts: Iterable[Cut]) -> Iterator[Cut]:
    """The cuts; copies have ``custom["original_id"]`` and the speaker of their original.

    A copy that has ``original_id`` keeps it. Each cut has one supervision.
    """
    from lhotse.utils import fastcopy

    for cut in cuts:
        original = original_of(cut.id)
        if original != cut.id:
            said = cut.supervisions[0]
            prefix = _KALDI.match(cut.id)
            speaker = said.speaker
            if prefix is not None and speaker is not None:
                speaker = speaker.removeprefix(prefix[0])
            cut = fastcopy(
                cut,
                supervisions=[fastcopy(said, speaker=speaker)],
                custom={"original_id": original, **(cut.custom or {})},
            )
        yield cut
