"""Outputs of a frozen public encoder as the features of an acoustic model, stored once.

They are computed signal by signal, at true lengths or with the padding that the encoder was trained
with. Whoever trains on them needs the encoder no more; who transcribes new audio does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privasr_k2.data.features import OutputConfig
from privasr_k2.encoders.chunks import ChunkConfig, encode_long
from privasr_k2.encoders.common import PublicEncoder, checked_layers
from privasr_k2.encoders.loading import describe, load_encoder
from privasr_k2.errors import DataError

TYPE = "public-encoder"
"""Of stored features, in lhotse."""


@dataclass(frozen=True)
class FrozenEncoder:
    """An encoder's outputs, as :class:`privasr_k2.data.features.Extractor`.

    It is small where it is pickled: each process reads the weights once.

    Args:
        folder: of the encoder, or its file of weights.
    """

    folder: Path
    config: OutputConfig

    type = TYPE

    @property
    def frame_shift(self) -> float:
        """Seconds between output frames."""
        return self._encoder.frame_shift

    @property
    def about(self) -> dict[str, Any]:
        """Name, sha256, licence, source and the sentence on its training data; its folder."""
        return {**describe(self._encoder), "folder": str(self.folder.absolute())}

    def extract(self, samples: np.ndarray, sampling_rate: int) -> np.ndarray:
        """Outputs (T', K D) float16 of samples (S,) in [-1, 1].

        Raises:
            DataError: another sampling rate than the encoder's.
        """
        from lhotse.utils import compute_num_frames

        encoder = self._encoder
        if sampling_rate != encoder.sample_rate:
            expected, found = f"audio at {encoder.sample_rate} Hz", f"{sampling_rate} Hz"
            way_out = f"resample the corpus: sox IN -r {encoder.sample_rate} OUT"
            raise DataError(f"encoder {encoder.name}", expected, found, way_out)
        layers = checked_layers(encoder, self.config.layers or None)
        chunks = ChunkConfig(self.config.chunk_seconds, self.config.chunk_overlap, batch=1)
        with torch.no_grad(), _one_thread():
            outputs = encode_long(encoder, torch.from_numpy(samples), chunks, layers=layers)
        # lhotse counts frames by rounding; some encoders give one more for what is left over.
        seconds = len(samples) / sampling_rate
        frames = compute_num_frames(seconds, encoder.frame_shift, sampling_rate)
        return outputs[:, : max(1, frames)].transpose(0, 1).flatten(1).numpy().astype(np.float16)

    @property
    def _encoder(self) -> PublicEncoder:
        return _opened(self.folder, self.config.pad_seconds)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of floats depend on the number of threads, and with it on the number of jobs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=2)
def _opened(folder: Path, pad_seconds: float) -> PublicEncoder:
    return load_encoder(folder, pad_seconds=pad_seconds)
