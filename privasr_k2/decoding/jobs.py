"""Decoding one job's share of a role's cuts."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from privasr_k2.constraints import Checked, Natural, Positive
from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.hyps import Hyp, Record
from privasr_k2.recipe.progress import report_progress

if TYPE_CHECKING:
    import numpy as np
    import torch
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

LOG_SECONDS = 30.0  # between two lines of progress in a log


class AcousticModel(Protocol):
    """The interface of acoustic models for the search."""

    def log_probs(
        self, features: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, T, F) features, (N,) lengths to (N, T', C) natural log-probabilities, lengths."""


@dataclass(frozen=True)
class JobConfig(Checked):
    """This job, from 1, of so many."""

    job: int
    num_jobs: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.job <= self.num_jobs:
            raise ValueError(f"job must be from 1 to num_jobs, got {self.job} of {self.num_jobs}")


@dataclass(frozen=True)
class ShareConfig(JobConfig):
    """Which cuts a job decodes, and how many at a time.

    Args:
        max_duration: seconds of speech in a batch, without padding; a longer cut is its own batch.
    """

    role: str
    max_duration: Positive


@dataclass(frozen=True)
class DecodeConfig(ShareConfig, SearchConfig):
    """Options of decoding; defaults in ``conf/common.yaml#decode``.

    Args:
        head: of a folder of heads the one that decodes, from 1; 0 for a whole model.
    """

    head: Natural

    def search(self) -> SearchConfig:
        """The settings of the search."""
        return SearchConfig(
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(SearchConfig)}
        )


class Search(Protocol[R_co]):
    """A search over log-probabilities."""

    def decode(self, log_probs: torch.Tensor, lengths: torch.Tensor) -> Sequence[R_co | None]:
        """A result for each of N utterances; ``None`` where the search found no path."""


def decode_cuts(
    model: AcousticModel,
    decoder: Search[tuple[Hyp, ...]],
    cuts: CutSet,
    config: DecodeConfig,
    device: str,
) -> Iterator[Record]:
    """The records of this job's cuts, the longest first; progress and speed are logged."""
    for cut, hyps in search_cuts(model, decoder, cuts, config, device):
        yield record_of(cut, hyps, config)


def search_cuts(
    model: AcousticModel, search: Search[R], cuts: CutSet, config: DecodeConfig, device: str
) -> Iterator[tuple[Cut, R | None]]:
    """This job's cuts, the longest first, each with its result; logs speed and losses."""

    def recognize(
        features: torch.Tensor, lengths: torch.Tensor, batch: Sequence[Cut]
    ) -> Sequence[R | None]:
        return search.decode(*model.log_probs(features, lengths))

    return recognized(recognize, cuts, config, device)


def recognized(
    recognize: Callable[[torch.Tensor, torch.Tensor, Sequence[Cut]], Sequence[R | None]],
    cuts: CutSet,
    config: ShareConfig,
    device: str,
    shuffle: np.random.Generator | None = None,
    by_speaker: bool = False,
) -> Iterator[tuple[Cut, R | None]]:
    """This job's cuts, the longest first, each with its result; logs progress, speed and losses.

    Args:
        recognize: (N, T, F) features, (N,) lengths and the N cuts to N results or ``None``.
        shuffle: puts the batches, each of cuts of about one length, in random order.
        by_speaker: one speaker follows the other, and a batch is of one.
    """
    import torch

    shares = split_by_duration([(cut.id, cut.duration, cut) for cut in cuts], config.num_jobs)
    share = shares[config.job - 1]
    started = last = time.perf_counter()
    lost, seconds, done = [], 0.0, 0
    # Not inference_mode: k2 needs the version counters of tensors.
    with torch.no_grad():
        groups = [share]
        if by_speaker:
            share.sort(key=speaker_of)
            groups = [list(cuts) for _, cuts in itertools.groupby(share, speaker_of)]
        parts = [part for group in groups for part in batches(group, config.max_duration)]
        order = range(len(parts)) if shuffle is None else shuffle.permutation(len(parts))
        for batch in (parts[index] for index in order):
            features, lengths = _features(batch)
            results = recognize(features.to(device), lengths.to(device), batch)
            for cut, result in zip(batch, results):
                if result is None:
                    lost.append(cut.id)
                yield cut, result
            done, seconds = done + len(batch), seconds + sum(cut.duration for cut in batch)
            report_progress(done, len(share), "utterance")
            if time.perf_counter() - last > LOG_SECONDS:
                last = time.perf_counter()
                log.info("%d of %d utterances", done, len(share))
    elapsed = time.perf_counter() - started
    rate = elapsed / max(seconds, 1e-9)
    log.info("%d utterances, %.0f s of speech, real-time factor %.3f", done, seconds, rate)
    if lost:
        message = (
            "no path within the beam for %d of %d utterances (empty there): %s; a larger"
            " search_beam or max_active_states may find one"
        )
        log.warning(message, len(lost), len(share), " ".join(lost[:5]))


def speaker_of(cut: Cut) -> str:
    """A cut's speaker; empty where it is not known."""
    return cut.supervisions[0].speaker or ""


def facts_of(cut: Cut) -> tuple[str, str, str, str]:
    """A cut's id, part, speaker and reference."""
    part = (cut.custom or {}).get("part", "")
    return cut.id, part, speaker_of(cut), cut.supervisions[0].text or ""


def record_of(cut: Cut, hyps: tuple[Hyp, ...] | None, config: SearchConfig) -> Record:
    """The record of one cut; without a path every point of the grid has no words."""
    points = itertools.product(config.lm_weights, config.insertion_penalties)
    empty = tuple(Hyp(*point, "", 0.0, 0.0) for point in points)
    return Record(*facts_of(cut), hyps is None, empty if hyps is None else hyps)


def _features(cuts: Sequence[Cut]) -> tuple[torch.Tensor, torch.Tensor]:
    """(N, T, F) float32 padded with zeros, and (N,) int64 frames."""
    import torch

    loaded = [torch.from_numpy(cut.load_features()).float() for cut in cuts]
    lengths = torch.tensor([len(features) for features in loaded], dtype=torch.int64)
    return torch.nn.utils.rnn.pad_sequence(loaded, batch_first=True), lengths


def choose_device(name: str) -> str:
    """The device of a decoding job: a GPU only where k2 supports it."""
    from privasr_k2.training import distributed

    if name == "auto":
        import k2

        name = name if k2.with_cuda else "cpu"
    return str(distributed.choose_device(name))


def batches(cuts: Iterable[Cut], max_duration: float) -> Iterator[list[Cut]]:
    """Consecutive cuts of at most ``max_duration`` seconds together."""
    batch: list[Cut] = []
    total = 0.0
    for cut in cuts:
        if batch and total + cut.duration > max_duration:
            yield batch
            batch, total = [], 0.0
        batch.append(cut)
        total += cut.duration
    if batch:
        yield batch


def split_by_duration(items: Sequence[tuple[str, float, T]], num_jobs: int) -> list[list[T]]:
    """Share (id, seconds, value) out to ``num_jobs`` evenly: the longest first, to the emptiest.

    The same items give the same shares, whatever their order.

    >>> split_by_duration([("a", 3.0, "a"), ("b", 2.0, "b"), ("c", 1.0, "c")], 2)
    [['a'], ['b', 'c']]
    """
    jobs: list[list[T]] = [[] for _ in range(num_jobs)]
    loads = [(0.0, job) for job in range(num_jobs)]
    for _, seconds, value in sorted(items, key=lambda item: (-item[1], item[0])):
        load, job = heapq.heappop(loads)
        jobs[job].append(value)
        heapq.heappush(loads, (load + seconds, job))
    return jobs
