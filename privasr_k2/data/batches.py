"""Batches for training: bucketed by length, in an order that seed and epoch determine."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from privasr_k2.data.features import load_features
from privasr_k2.errors import DataError
from privasr_k2.randomness import derive_seed

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

MAX_BUCKETS, CUTS_PER_BUCKET = 20, 20


class NothingLeftError(DataError):
    """A role without a single utterance that can be learned from."""


@dataclass(frozen=True)
class Batch:
    """Utterances padded to one length.

    Attributes:
        ids: names of the N utterances.
        features: (N, T, F) float32, zero at padding.
        lengths: (N,) int64, true frames.
        targets: (N, U) int64 token numbers, zero at padding.
        target_lengths: (N,) int64, true tokens.
        masks: (N, T, F) bool, values that the model masks; None: none.
    """

    ids: tuple[str, ...]
    features: Tensor
    lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    masks: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        tensors = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **tensors)

    def split(self, parts: int) -> list[Batch]:
        """The utterances in ``parts`` batches of similar size, in order, without excess padding.

        >>> batch = pad_batch("abc", [torch.ones(n, 2) for n in (3, 2, 1)], [[1], [2], [3, 4]])
        >>> [(part.ids, tuple(part.features.shape)) for part in batch.split(2)]
        [(('a', 'b'), (2, 3, 2)), (('c',), (1, 1, 2))]
        """
        size = -(-len(self.ids) // parts)
        return [self._slice(slice(start, start + size)) for start in range(0, len(self.ids), size)]

    def _slice(self, rows: slice) -> Batch:
        lengths, target_lengths = self.lengths[rows], self.target_lengths[rows]
        features = self.features[rows, : int(lengths.max())]
        targets = self.targets[rows, : int(target_lengths.max())]
        masks = None if self.masks is None else self.masks[rows, : features.size(1)]
        return Batch(self.ids[rows], features, lengths, targets, target_lengths, masks)

    def __len__(self) -> int:
        return len(self.ids)


def pad_batch(
    ids: Sequence[str],
    features: Sequence[Tensor],
    targets: Sequence[Sequence[int]],
    masks: Sequence[Tensor] | None = None,
) -> Batch:
    """Make a batch of utterances' features (T_n, F), token numbers, and masks (T_n, F).

    >>> batch = pad_batch(["a", "b"], [torch.ones(3, 2), torch.ones(1, 2)], [[5], [6, 7]])
    >>> batch.features.shape, batch.targets.tolist()
    (torch.Size([2, 3, 2]), [[5, 0], [6, 7]])
    """
    lengths, target_lengths = (torch.tensor([*map(len, rows)]) for rows in (features, targets))
    padded = pad_sequence([*features], batch_first=True)
    tokens = pad_sequence([*map(torch.tensor, targets)], batch_first=True)
    covers = None if masks is None else pad_sequence([*masks], batch_first=True)
    return Batch(tuple(ids), padded, lengths, tokens, target_lengths, covers)


class Utterances(torch.utils.data.Dataset):
    """Turns cuts into a :class:`Batch`.

    Args:
        targets: token numbers by the cut's name.
        keep: whether to keep features in memory.
    """

    def __init__(self, targets: Mapping[str, Sequence[int]], *, keep: bool) -> None:
        self._targets, self._keep = targets, keep
        self._features: dict[str, Tensor] = {}

    def __getitem__(self, cuts: CutSet) -> Batch:
        names = [self._name(cut) for cut in cuts]
        features = [self._read(name, cut) for name, cut in zip(names, cuts)]
        return pad_batch(names, features, [self._targets[name] for name in names])

    def _name(self, cut: Cut) -> str:
        # To give every process a last batch, lhotse's sampler repeats cuts under names of its own.
        return cut.id if cut.id in self._targets else cut.id.rpartition("_dup")[0]

    def _read(self, name: str, cut: Cut) -> Tensor:
        if name in self._features:
            return self._features[name]
        features = torch.from_numpy(load_features(cut))
        if self._keep:
            self._features[name] = features
        return features


class Batches:
    """The batches of any epoch, through lhotse's bucketing sampler.

    Args:
        cuts: utterances with features.
        targets: token numbers by the cut's name.
        max_duration: most seconds of speech in a batch, padding included.
        seed: of the order; None: the cuts' own order, for scoring.
        rank, world_size: this process and the number of processes that share an epoch.
        num_workers: processes that read ahead where the features do not fit in memory.
        memory_gb: keep features in memory up to this size.
    """

    def __init__(
        self,
        cuts: CutSet,
        targets: Mapping[str, Sequence[int]],
        *,
        max_duration: float,
        seed: int | None,
        rank: int = 0,
        world_size: int = 1,
        num_workers: int = 0,
        memory_gb: float = 4.0,
    ) -> None:
        self.targets = {cut.id: targets[cut.id] for cut in cuts}
        self._cuts = cuts
        self.total_frames = sum(cut.num_frames for cut in cuts)
        self._seed = seed
        self._shared = dict(max_duration=max_duration, rank=rank, world_size=world_size)
        size = self.total_frames * cuts[0].num_features * 4 / 1e9 / world_size
        fits = size <= memory_gb
        self._num_workers = 0 if fits else num_workers
        self._utterances = Utterances(self.targets, keep=fits)

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Batch]:
        """The batches of epoch ``number`` after the first ``skip``, whose features are not read."""
        sampler = self._sampler()
        sampler.set_epoch(number)
        plan = islice(sampler, skip, None)
        # A generator of its own: the loader would draw from torch's global one.
        yield from torch.utils.data.DataLoader(
            self._utterances,
            batch_size=None,
            sampler=plan,  # type: ignore[arg-type]
            num_workers=self._num_workers,
            generator=torch.Generator().manual_seed(number),
        )

    def num_batches(self) -> int:
        """Batches of the first epoch, for this process; those of others differ little."""
        sampler = self._sampler()
        sampler.set_epoch(0)
        return sum(1 for _ in sampler)

    def everything(self) -> Iterator[Batch]:
        """Every utterance once, for this process alone, in the cuts' order."""
        from lhotse.dataset import SimpleCutSampler

        alone = {**self._shared, "rank": 0, "world_size": 1}
        yield from (self._utterances[cuts] for cuts in SimpleCutSampler(self._cuts, **alone))

    def _sampler(self) -> Any:
        from lhotse.dataset import DynamicBucketingSampler, SimpleCutSampler

        if self._seed is None:
            return SimpleCutSampler(self._cuts, **self._shared)
        seed = derive_seed(self._seed, "batches") % 2**31
        shuffled = dict(shuffle=True, seed=seed, drop_last=False, **self._shared)
        buckets = min(MAX_BUCKETS, len(self._cuts) // CUTS_PER_BUCKET)
        if buckets < 2:
            return SimpleCutSampler(self._cuts, **shuffled)
        shuffled |= dict(num_buckets=buckets, buffer_size=max(10000, len(self._cuts)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would rather read cuts lazily; ours are in memory
            return DynamicBucketingSampler(self._cuts, **shuffled)


def encode_texts(cuts: CutSet, encode: Callable[[str], list[int]]) -> dict[str, list[int]]:
    """Token numbers of every cut's text, by the cut's name.

    Raises:
        DataError: a cut without exactly one supervision, or without text.
    """
    targets = {}
    for cut in cuts:
        if len(cut.supervisions) != 1 or not (cut.supervisions[0].text or "").strip():
            found = (
                f"{len(cut.supervisions)} supervisions, text {[s.text for s in cut.supervisions]}"
            )
            way_out = "cut the recording at its supervisions, and leave out those without text"
            raise DataError(cut.id, "one supervision with text", found, way_out)
        targets[cut.id] = encode(cut.supervisions[0].text)
    return targets


def drop_unspelled(cuts: CutSet, known: Container[str], *, role: str) -> CutSet:
    """The cuts whose words are all ``known``; the others are logged.

    Raises:
        NothingLeftError: none is left.
    """
    unknown = {}
    for cut in cuts:
        words = " ".join(supervision.text or "" for supervision in cut.supervisions).split()
        if missing := [word for word in words if word not in known]:
            unknown[cut.id] = " ".join(missing)
    found = f"in each of {len(unknown)} utterances another"
    way_out = "prepare the lang folder from this corpus"
    place, expected = f"cuts of the role {role!r}", "words that the lexicon has"
    error = NothingLeftError(place, expected, found, way_out)
    return _without(cuts, unknown, f"{role}: words that the lexicon lacks", error)


def _without(cuts: CutSet, dropped: Mapping[str, str], why: str, error: DataError) -> CutSet:
    """The cuts but ``dropped`` (id -> details), which are logged; ``error`` if none is left."""
    from lhotse import CutSet

    kept = [cut for cut in cuts if cut.id not in dropped]
    if dropped:
        names = " ".join(f"{id_} ({details})" for id_, details in dropped.items())
        log.warning("%s: %d of %d utterances left out: %s", why, len(dropped), len(cuts), names)
    if not kept:
        raise error
    return CutSet.from_cuts(kept)


def needed_frames(targets: Sequence[int]) -> int:
    """Fewest output frames of a CTC alignment: equal neighbours need a blank between them.

    >>> needed_frames([3, 3, 4])
    4
    """
    return len(targets) + sum(a == b for a, b in pairwise(targets))


def drop_unalignable(
    cuts: CutSet,
    targets: Mapping[str, Sequence[int]],
    output_frames: Callable[[int], int],
    *,
    role: str,
) -> CutSet:
    """The cuts whose tokens fit their output frames; the others are logged.

    Args:
        output_frames: input frames -> frames of the model's output.

    Raises:
        NothingLeftError: none is left.
    """
    shorter = {
        cut.id: f"{cut.num_frames} frames, {len(targets[cut.id])} tokens"
        for cut in cuts
        if output_frames(cut.num_frames) < needed_frames(targets[cut.id])
    }
    place, expected = f"cuts of the role {role!r}", "utterances longer than their text"
    way_out = "use a smaller subsampling, or check that texts belong to their audio"
    error = NothingLeftError(place, expected, f"{len(shorter)} utterances, all shorter", way_out)
    return _without(cuts, shorter, f"{role}: shorter than their text", error)
