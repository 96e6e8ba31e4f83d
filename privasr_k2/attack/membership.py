"""Membership inference on speakers: in a model's training, or in a teacher's shard.

A unit's score is what a model gains on its speech, in nats a token:

- of teachers: loss in the other teachers, who have not seen the unit, minus the loss in this one,
  each teacher's losses less their mean. The guess is the teacher with the highest score.
- of a model that was made of all shards: loss of a public reference model minus its own; others are
  units that no training has seen. With perturbed features the score is how much more the loss rises
  in the model than in the reference (:mod:`privasr_k2.attack.perturbed`).

No bound on epsilon follows from these figures (:mod:`privasr_k2.privacy.audit.membership`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from privasr_k2.attack.settings import MembershipConfig
from privasr_k2.data.features import load_features
from privasr_k2.decoding.jobs import batches
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spelled_targets
from privasr_k2.privacy.audit import membership
from privasr_k2.privacy.audit.intervals import clopper_pearson

if TYPE_CHECKING:
    from lhotse.cut import Cut


#: Features, lengths and hypotheses of each utterance to (I, N, hypotheses) log-probabilities.
Scores = Callable[[torch.Tensor, torch.Tensor, Sequence[Sequence[Sequence[int]]]], np.ndarray]


def unit_losses(
    scores_of: Scores,
    cuts: Iterable[Cut],
    lang: Lang,
    device: torch.device | str,
    *,
    unit: str,
    max_duration: float,
) -> dict[str, np.ndarray]:
    """Unit -> (I,) nats a token in each of I models, over all its speech.

    Utterances that cannot be spelled, or are too short for their text, are left out.

    Args:
        unit: ``speaker`` or ``utterance``.
        max_duration: seconds of speech in a batch.
    """
    from lhotse import CutSet

    own = CutSet.from_cuts(cut for cut in cuts if "original_id" not in (cut.custom or {}))
    known, targets = spelled_targets(own, lang, role="membership")
    sums: dict[str, np.ndarray] = {}
    tokens: dict[str, int] = defaultdict(int)
    ordered = sorted(known, key=lambda cut: (-cut.duration, cut.id))
    for batch in batches(ordered, max_duration):
        features = [torch.from_numpy(load_features(cut)) for cut in batch]
        padded = torch.nn.utils.rnn.pad_sequence(features, batch_first=True).to(device)
        lengths = torch.tensor([len(values) for values in features], device=device)
        texts = [targets[cut.id] for cut in batch]
        losses = -scores_of(padded, lengths, [[text] for text in texts])[:, :, 0]
        for cut, text, loss in zip(batch, texts, losses.T):
            if text and np.isfinite(loss).all():
                name = (cut.supervisions[0].speaker or "") if unit == "speaker" else cut.id
                sums[name] = sums.get(name, 0.0) + loss
                tokens[name] += len(text)
    return {name: sums[name] / tokens[name] for name in sorted(sums)}


def of_teachers(
    losses: Mapping[str, np.ndarray], roster: Mapping[str, int], config: MembershipConfig
) -> dict[str, Any]:
    """Whether teachers tell whose speech they have seen.

    Args:
        losses: of :func:`unit_losses`, teachers in the order of their shards, 1 first.
        roster: unit -> shard; others in ``losses`` are left out.

    Raises:
        DataError: fewer than two teachers, fewer than two units, or a shard that has no teacher.
    """
    units = [unit for unit in losses if unit in roster]
    number = len(next(iter(losses.values()), ()))
    wrong = sorted({roster[unit] for unit in units} - set(range(1, number + 1)))
    if number < 2 or len(units) < 2 or wrong:
        found = f"{number} teachers, {len(units)} units" + (f", shards {wrong}" if wrong else "")
        expected, way_out = "the shards of the teachers of --in-models", "name all teachers"
        raise DataError("--in-shards", expected, found, way_out)
    centered = np.stack([losses[unit] for unit in units])  # (N, I)
    centered = centered - centered.mean(axis=0)
    # Loss in the others minus loss in this one.
    scores = (centered.sum(axis=1, keepdims=True) - centered) / (number - 1) - centered
    own = np.array([roster[unit] - 1 for unit in units])
    inside = np.zeros(centered.shape, dtype=bool)
    inside[np.arange(len(units)), own] = True
    right = int(np.count_nonzero(scores.argmax(axis=1) == own))
    interval = clopper_pearson(right, len(units), confidence=config.confidence)
    return {
        "units": len(units),
        "teachers": number,
        "right_shard": right / len(units),
        "right_shard_interval": [interval.low, interval.high],
        "chance": 1 / number,
        **_told(scores[inside], scores[~inside], config),
    }


def told(ours: np.ndarray, theirs: np.ndarray, config: MembershipConfig) -> dict[str, Any]:
    """Area and true positives at a low rate of false ones, of scores of M members and N others."""
    return {"members": len(ours), "others": len(theirs), **_told(ours, theirs, config)}


def names_of(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the folders' names that tell all of them apart.

    >>> names_of([Path("exp/a/am"), Path("exp/b/am")])
    ['a/am', 'b/am']
    """
    parts, length = [folder.resolve().parts for folder in folders], 1
    while len({names[-length:] for names in parts}) < len(set(parts)):
        length += 1
    return ["/".join(names[-length:]) for names in parts]


def _told(ours: np.ndarray, theirs: np.ndarray, config: MembershipConfig) -> dict[str, Any]:
    curve = membership.roc(ours, theirs)
    interval = membership.auc_interval(curve, confidence=config.confidence)
    rare = membership.at_low_fpr(ours, theirs, fpr=config.fpr, confidence=config.confidence)
    return {
        "auc": curve.auc,
        "auc_interval": [interval.low, interval.high],
        "fpr": config.fpr,
        "tpr": None if rare is None else rare.true_positives / rare.members,
        "tpr_interval": None if rare is None else [rare.tpr.low, rare.tpr.high],
    }
