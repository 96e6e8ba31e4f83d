"""Small things for the tests of attacks: speakers who differ, corpora of single words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2 import config as configs
from privasr_k2.attack.background import Background
from privasr_k2.attack.inversion import Inverted
from privasr_k2.attack.inversion_files import Inversion
from privasr_k2.attack.occurrences import Occurrence
from tests.support.conf import section


def loaded(cls: Any, name: str, *overrides: str) -> Any:
    """A configuration with the defaults of section NAME of ``conf/``."""
    return configs.load(cls, [section(name)], overrides)


def background(dim: int = 5, **frames: int) -> Background:
    """Public speech of standard normal features."""
    ones = np.ones(dim, dtype=np.float32)
    return Background(0 * ones, ones, 0.01, 10.0, frames)


def inversion(name: str, words: dict[str, np.ndarray], **config: Any) -> Inversion:
    """What an attack is said to have found."""
    dim = next(iter(words.values())).shape[1]
    found = {w: Inverted(x.astype(np.float32), -1.0, -5.0, 10) for w, x in words.items()}
    given = {"attack": "white_box", "control": False, **config}
    return Inversion(name, given, 1, np.ones(dim, dtype=np.float32), 0.01, found)


def said(speaker: str, values: np.ndarray) -> Occurrence:
    """A word of a speaker."""
    return Occurrence(speaker, f"{speaker}-1", values.astype(np.float32))


def write_cuts(feats: Path, role: str, spoken: list[tuple[str, str, np.ndarray]]) -> None:
    """Write utterances (speaker, text, features (T, F)) as one role of a features folder."""
    from lhotse import CutSet, Features, MonoCut, SupervisionSegment
    from lhotse.features.io import NumpyFilesWriter

    from privasr_k2.data.manifests import save_cuts

    cuts = []
    with NumpyFilesWriter(str(feats / f"storage_{role}")) as writer:
        for index, (speaker, text, values) in enumerate(spoken):
            name = f"{role}-{speaker}-{index}"
            shared: dict[str, Any] = dict(start=0, duration=len(values) / 100, recording_id=name)
            manifest = Features(
                type="given", num_frames=len(values), num_features=values.shape[1],
                frame_shift=0.01, sampling_rate=16000, storage_type=writer.name,
                storage_path=str(writer.storage_path), channels=0,
                storage_key=writer.write(name, values.astype(np.float32)), **shared,
            )  # fmt: skip
            about = [SupervisionSegment(id=name, text=text, speaker=speaker, **shared)]
            duration = shared["duration"]
            cuts.append(MonoCut(name, 0, duration, 0, supervisions=about, features=manifest))
    save_cuts(CutSet.from_cuts(cuts), feats, role)


#: Spelled by the lang folder of tests.support.small_am.write_corpus.
SPELLED = {"AB": (0, 1), "C": (2,), "CA": (2, 0)}


def speak(text: str, rng: np.random.Generator, *, voice: float = 0.0) -> np.ndarray:
    """Features (T, 5): a token is a direction, held for 8 frames; a voice moves the last two."""
    held = [np.zeros((4, 5))]
    for token in (token for word in text.split() for token in SPELLED[word]):
        held += [np.tile(2.0 * np.eye(3, 5)[token], (8, 1)), np.zeros((3, 5))]
    values = np.concatenate(held)
    values[:, 3:] += voice * (values[:, :3].sum(1, keepdims=True) > 0)
    return values + 0.1 * rng.normal(size=values.shape)


def write_lang(folder: Path) -> Path:
    """The lang folder of these words."""
    folder.mkdir(parents=True)
    (folder / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nc 3\n")
    (folder / "words.txt").write_text("<eps> 0\nAB 1\nC 2\nCA 3\n#0 4\n")
    (folder / "lexicon.txt").write_text("AB a b\nC c\nCA c a\n")
    return folder
