"""Features that lhotse does not have, as extractors that it finds by the ``type`` of stored ones.

With them lhotse's own calls work on our cuts: ``cut.mix`` and ``cut.load_features`` on what is
stored, ``cut.compute_and_store_features`` and the on-the-fly features of its data sets. Whoever
imports this module has them registered, as :func:`privasr_k2.data.manifests.load_cuts` does.
Filter banks and cepstra have lhotse's own types: at 16 kHz they are what its ``Fbank()`` and
``Mfcc(MfccConfig(num_filters=40, num_ceps=40))`` compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from lhotse.features.base import FeatureExtractor, register_extractor

from privasr_k2.data.features import DIMENSIONS, FRAME_SHIFT, extract
from privasr_k2.errors import DataError


@dataclass(frozen=True)
class NoSettings:
    """What lhotse wants every extractor to have; a kind of features has no settings here."""

    def to_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> NoSettings:
        """The settings that :meth:`to_dict` made."""
        return NoSettings(**data)


class _Extractor(FeatureExtractor):
    """:func:`privasr_k2.data.features.extract` for the kind ``name``."""

    config_type = NoSettings

    @property
    def frame_shift(self) -> float:
        return FRAME_SHIFT

    def feature_dim(self, sampling_rate: int) -> int:
        return DIMENSIONS[self.name]

    def extract(self, samples: np.ndarray, sampling_rate: int) -> np.ndarray:
        """Features (T, F) of samples (S,) or (1, S)."""
        samples = np.asarray(samples, dtype=np.float32)
        one_channel = samples[0] if samples.ndim == 2 and len(samples) == 1 else samples
        return extract(one_channel, sampling_rate, self.name)


@register_extractor
class SphinxCepstra(_Extractor):
    """13 cepstra of CMU Sphinx, which lhotse refuses to mix."""

    name = "sphinx"


@register_extractor
class Given(_Extractor):
    """Features that came with a corpus: they are read, and cannot be computed."""

    name = "given"

    def extract(self, samples: np.ndarray, sampling_rate: int) -> np.ndarray:
        """Raise DataError."""
        place, way_out = "features of type 'given'", "choose --feature fbank or mfcc"
        raise DataError(place, "features that are stored", "a signal to compute them of", way_out)
