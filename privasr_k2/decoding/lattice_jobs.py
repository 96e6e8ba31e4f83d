"""The compact lattices of one job's share of a role's cuts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2.decoding.jobs import DecodeConfig, facts_of, search_cuts
from privasr_k2.decoding.lattices import Found, Lattice, LatticeConfig, LatticeSearch
from privasr_k2.decoding.nbest_jobs import SubsamplingModel

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

_LISTED = 5


@dataclass(frozen=True)
class LatticeJobConfig(DecodeConfig, LatticeConfig):
    """Options of decoding and of lattices; defaults in sections ``decode`` and ``lattices``."""


def lattice_cuts(
    model: SubsamplingModel,
    search: LatticeSearch,
    cuts: CutSet,
    config: LatticeJobConfig,
    device: str,
) -> Iterator[Lattice]:
    """The lattices of this job's cuts, the longest first; logs lost and limited ones."""
    limited, states, arcs, number = [], 0, 0, 0
    for cut, searched in search_cuts(model, search, cuts, config, device):
        if searched is not None and searched.limited:
            limited.append(f"{cut.id} ({searched.beam:g})")
        lattice = lattice_of(cut, searched, model.subsampling, config.beam)
        number, states, arcs = number + 1, states + lattice.num_states, arcs + len(lattice.words)
        yield lattice
    log.info("%d lattices, %d states and %d arcs", number, states, arcs)
    if limited:
        message = (
            "%d lattices hold less than the beam of %g, since they would have had more than"
            " max_states=%d: %s; raise max_states, or lower the beam"
        )
        listed = " ".join(limited[:_LISTED])
        log.warning(message, len(limited), config.beam, config.max_states, listed)


def lattice_of(cut: Cut, result: Found | None, subsampling: int, beam: float) -> Lattice:
    """The lattice of a cut; empty without a path. ``subsampling``: inputs per output frame."""
    if result is None:
        return Lattice.without_path(facts_of(cut), beam)
    seconds = np.minimum(result.arrays.frames * (subsampling * cut.frame_shift), cut.duration)
    return result.lattice(facts_of(cut), seconds)
