"""Is a masked name likelier than names that nobody in the training has said?

A name's candidates are others of its class, by how much the attacked recognizer gains over the
public one where all speech of the name is noise. The rank is reported as exposure in bits
(:mod:`privasr_k2.privacy.audit.exposure`).

Lengths and sounds of names tell something without any memory. The same figure of people who are in
no training shows how much: only what members have beyond it is memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from privasr_k2.attack.blind import drawn_counts, fewest_speakers
from privasr_k2.attack.membership import Scores
from privasr_k2.attack.noise_masking import Masked, Words, batches_of, longest_first, rate
from privasr_k2.attack.settings import RecognizerAttackConfig
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spellings
from privasr_k2.privacy.audit.exposure import exposure, ranks
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import MIN_CLUSTERS


@dataclass(frozen=True)
class NameLosses:
    """Losses of M masked names and their candidates, in nats.

    Attributes:
        values: (I, M, R) of I recognizers, the true name first; infinite where one does not fit
            into the frames.
        speakers: (M,) who said the names.
    """

    values: np.ndarray
    speakers: tuple[str, ...]


def name_losses(
    masked: Sequence[Masked],
    unheard: Mapping[str, set[Words]],
    scores_of: Scores,
    lang: Lang,
    config: RecognizerAttackConfig,
    device: torch.device | str,
) -> NameLosses | None:
    """The losses of each utterance with its true name, and with names that are drawn.

    Args:
        unheard: names by class that nobody in training says; the mention's own is not drawn.

    Returns:
        None where no class has ``config.other_names`` of them.
    """
    said = {word for one in masked for word in one.mention.words}
    listed = {word for names in unheard.values() for name in names for word in name}
    spelled = spellings(lang, said | listed)
    hyps: dict[int, list[list[int]]] = {}
    for number, one in enumerate(masked):
        mention = one.mention
        others = unheard.get(mention.label, set()) - {mention.name}
        known = sorted(name for name in others if all(word in spelled for word in name))
        if len(known) < config.other_names:
            continue
        generator = stream(config.seed, "names", number)
        drawn = generator.permutation(len(known))[: config.other_names]
        names = [mention.name, *(known[place] for place in drawn)]
        before, behind = mention.rest
        texts = [[*before, *name, *behind] for name in names]
        hyps[id(one)] = [[token for word in text for token in spelled[word]] for text in texts]
    kept = longest_first(one for one in masked if id(one) in hyps)
    if not kept:
        return None
    found = [
        -scores_of(features, lengths, [hyps[id(one)] for one in batch])
        for features, lengths, batch in batches_of(kept, config, device)
    ]
    speakers = (one.mention.cut.supervisions[0].speaker or "" for one in kept)
    return NameLosses(np.concatenate(found, axis=1), tuple(speakers))


def name_bits(losses: NameLosses, place: int, reference: int | None) -> np.ndarray:
    """(M,) exposure of each true name in bits; NaN where a candidate does not fit into the frames.

    Args:
        place, reference: of the attacked recognizer, and of the public one, whose loss is
            subtracted; None: nothing is.

    >>> values = np.array([[[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, np.inf]]])
    >>> name_bits(NameLosses(values, ("anna", "bert")), 0, None)
    array([ 2., nan])
    """
    values = losses.values
    fits = np.isfinite(values).all(axis=(0, 2))
    bits = np.full(values.shape[1], np.nan)
    if fits.any():
        own = values[place, fits] - (values[reference, fits] if reference is not None else 0.0)
        bits[fits] = exposure(ranks(own[:, 0], own[:, 1:]), space=own.shape[1])
    return bits


def name_exposure(
    members: NameLosses | None,
    others: NameLosses | None,
    place: int,
    reference: int | None,
    config: RecognizerAttackConfig,
) -> dict[str, Any]:
    """Exposure of the names of members, and beyond that of others; empty where one side has none.

    The interval is None where a side has fewer speakers than
    :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS`.

    Args:
        members, others: names of people in the private training, and of people in none.
        place, reference: as of :func:`name_bits`.
    """
    if members is None or others is None:
        return {}
    bits: list[np.ndarray] = []
    speakers: list[list[str]] = []
    for losses in (members, others):
        all_bits = name_bits(losses, place, reference)
        kept = np.flatnonzero(~np.isnan(all_bits))
        if not len(kept):
            return {}
        bits.append(all_bits[kept])
        speakers.append([losses.speakers[place] for place in kept])
    ours, theirs = (float(of.mean()) for of in bits)
    possible = math.log2(members.values.shape[2])
    first = int(np.count_nonzero(bits[0] > possible - 1e-9))
    return {
        "name_exposure": ours,
        "name_exposure_others": theirs,
        "name_exposure_beyond": ours - theirs,
        "name_exposure_beyond_interval": _interval(bits, speakers, config),
        "name_exposure_speakers": fewest_speakers(speakers),
        "name_exposure_possible": possible,
        "names_ranked": len(bits[0]),
        **rate("name_first", first, len(bits[0]), config.confidence),
    }


def _interval(
    bits: Sequence[np.ndarray], speakers: Sequence[Sequence[str]], config: RecognizerAttackConfig
) -> list[float] | None:
    """Of the difference of both sides' means, the speakers of each drawn with replacement."""
    if fewest_speakers(speakers) < MIN_CLUSTERS:
        return None
    drawn = []
    for side, (of_names, names) in enumerate(zip(bits, speakers, strict=True)):
        times = drawn_counts(names, config.replicates, stream(config.seed, "speakers", side))
        drawn.append(times @ of_names / times.sum(axis=1))
    ends = (1 - config.confidence) / 2, (1 + config.confidence) / 2
    return [float(end) for end in np.quantile(drawn[0] - drawn[1], ends)]
