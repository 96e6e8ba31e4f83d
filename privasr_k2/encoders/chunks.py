"""Long audio: overlapping chunks that start on frames, cut in the middle of each overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from privasr_k2.constraints import Checked, Count, NotNegative, Positive
from privasr_k2.errors import ConfigError

if TYPE_CHECKING:
    from privasr_k2.encoders.common import PublicEncoder


@dataclass(frozen=True)
class ChunkConfig(Checked):
    """How long audio is divided.

    Attributes:
        seconds: of a chunk; audio that is not longer stays whole.
        overlap: seconds that neighbours share, less than a chunk.
        batch: chunks of one pass.
    """

    seconds: Positive
    overlap: NotNegative
    batch: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= self.seconds:
            raise ValueError(f"overlap must be below {self.seconds:g} s, got {self.overlap:g}")


def encode_long(
    encoder: PublicEncoder,
    audio: Tensor,
    config: ChunkConfig,
    *,
    layers: Sequence[int] | None = None,
) -> Tensor:
    """Outputs (T', D), or (K, T', D), of one signal (S,) of any length.

    Frame t is that of ``t * frame_shift`` seconds, as if the signal had been read at once. Its
    values are those of its chunk: Whisper's also tell where in the chunk a frame lies.

    Raises:
        ConfigError: chunks that are longer than the encoder hears; too small an overlap.
    """
    if config.seconds > encoder.max_seconds:
        expected = f"chunks of at most {encoder.max_seconds:g} s for {encoder.name}"
        raise ConfigError("seconds", expected, f"{config.seconds:g}", "shorten them")
    hop = round(encoder.frame_shift * encoder.sample_rate)
    starts, size = chunk_starts(len(audio), hop, config, encoder.sample_rate)
    parts = []
    for first in range(0, len(starts), config.batch):
        some = [audio[start : start + size] for start in starts[first : first + config.batch]]
        lengths = torch.tensor([len(chunk) for chunk in some], device=audio.device)
        features, frames = encoder.features(pad_sequence(some, batch_first=True), lengths)
        outputs, frames = encoder(features, frames, layers=layers)
        parts += [outputs[..., i, : int(num), :] for i, num in enumerate(frames)]
    return _joined(parts, [start // hop for start in starts], config.overlap)


def chunk_starts(
    samples: int, hop: int, config: ChunkConfig, sample_rate: int
) -> tuple[list[int], int]:
    """First samples of the chunks, whole multiples of ``hop``, and samples of a chunk.

    The last chunk is as long as the others, up to a frame, so that it has context too.

    >>> chunk_starts(100, 2, ChunkConfig(seconds=4.0, overlap=1.0, batch=1), 10)
    ([0, 30, 60], 40)
    >>> chunk_starts(40, 2, ChunkConfig(seconds=4.0, overlap=1.0, batch=1), 10)
    ([0], 40)
    """
    size = max(hop, int(config.seconds * sample_rate) // hop * hop)
    step = max(hop, size - round(config.overlap * sample_rate) // hop * hop)
    if samples <= size:
        return [0], size
    last = -((size - samples) // hop) * hop  # of the chunks that reach the end, the first
    return [*range(0, last, step), last], size


def chunk_cuts(frames: int, frame_shift: float, config: ChunkConfig) -> list[int]:
    """The first frame of what is kept of each chunk of so many frames, and their number.

    >>> chunk_cuts(10, 0.1, ChunkConfig(seconds=0.4, overlap=0.2, batch=1))
    [0, 3, 5, 7, 10]
    >>> chunk_cuts(4, 0.1, ChunkConfig(seconds=0.4, overlap=0.2, batch=1))
    [0, 4]
    """
    starts, size = chunk_starts(frames, 1, config, round(1 / frame_shift))
    return _cuts(starts, [min(size, frames - start) for start in starts])


def _cuts(starts: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The middle of each overlap between 0 and the last frame."""
    ends = [start + size for start, size in zip(starts, sizes)]
    middles = [(following + end) // 2 for following, end in zip(starts[1:], ends)]
    return [0, *middles, ends[-1]]


def _joined(parts: Sequence[Tensor], starts: Sequence[int], overlap: float) -> Tensor:
    """Frames of overlapping parts (..., T_j, D), each beginning at a frame, to (..., T, D)."""
    sizes = [part.size(-2) for part in parts]
    for start, size, following in zip(starts, sizes, starts[1:]):
        if start + size < following:
            expected = f"above {overlap:g} s, as chunks give no frames for their last samples"
            raise ConfigError("overlap", expected, f"{overlap:g}", "raise it")
    kept = [
        part[..., begin - start : end - start, :]
        for part, start, (begin, end) in zip(parts, starts, pairwise(_cuts(starts, sizes)))
    ]
    return torch.cat(kept, dim=-2)
