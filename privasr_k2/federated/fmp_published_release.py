"""Files of the release of eq. 8 and 9 as published, written once."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from privasr_k2.config import from_values
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_published import (
    published_marginals,
    published_spending,
    published_sums,
    usable,
)
from privasr_k2.federated.fmp_release import header_of, settings_in, unit_numbers
from privasr_k2.federated.fmp_settings import PublishedConfig
from privasr_k2.federated.fmp_spoken import Spoken, WordNumbers
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.spending import Spending

_MARGINALS, _AGAIN = "released marginals of eq. 8 and 9", "release them again"


def spending_of(config: PublishedConfig, spoken: Spoken) -> Spending:
    """The entry of the ledger: the published epsilon for units of ``config.words`` words."""
    return published_spending(
        config.caches, epsilon=config.epsilon, words=config.words, data=config.data, unit=config.unit,
        units=unit_numbers(spoken, config.unit)[1], delta=config.delta,
    )  # fmt: skip


def write_published(
    path: Path, spoken: Spoken, config: PublishedConfig, background: np.ndarray, begun: Release
) -> None:
    """Write marginals with the noise of eq. 9 to ``*.safetensors``, once, and finish the release.

    Raises:
        PrivacyError: the release is finished, and its file is gone.
    """
    if not (path.exists() and header_of(path).get("release") == begun.entry.release):
        sums = published_sums(spoken, config.caches, background)
        marginals = published_marginals(sums, config.epsilon, begun)
        header = {
            "release": begun.entry.release,
            "published": dataclasses.asdict(config),
            "words": spoken.numbers.digest,
        }
        with atomic_path(path) as temporary, disk_errors(path):
            save_file({"marginals": marginals}, str(temporary), {"json": json.dumps(header)})
    begun.finish()


def is_published(path: Path) -> bool:
    """Whether a file of released marginals is one of eq. 8 and 9."""
    return "published" in header_of(path)


def read_published(path: Path, numbers: WordNumbers) -> tuple[np.ndarray, dict[str, Any]]:
    """The usable marginals (T, V), and the settings of their release.

    Raises:
        DataError: another vocabulary.
    """
    header, arrays = read_arrays(path, ["marginals"], expected=_MARGINALS, way_out=_AGAIN)
    if header.get("words") != numbers.digest:
        found = "those of another"
        raise DataError(
            path, "marginals of this vocabulary", found, "give the model they were made for"
        )
    config, marginals = (
        from_values(PublishedConfig, settings_in(header, "published"), path),
        arrays["marginals"],
    )
    good = marginals.shape == (config.rounds, numbers.size) and np.isfinite(marginals).all()
    if not good or not (np.maximum(marginals, 0.0).sum(axis=1) > 0).all():
        expected = f"marginals of {config.rounds} rounds and {numbers.size} words"
        raise DataError(path, expected, f"others, of the shape {marginals.shape}", _AGAIN)
    return usable(marginals), dataclasses.asdict(config)
