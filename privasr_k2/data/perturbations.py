"""Perturbed copies of the training utterances, made by lhotse: speed, noise, rooms.

Each kind adds one copy of every utterance to train (speed: two), as Kaldi's ``augment_data_dir.py``
does. A copy has ``custom["original_id"]``, so that it counts as its original's speech wherever
people are counted, held out or protected. What is drawn depends on the seed and the utterance's id
alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from privasr_k2.errors import DataError

if TYPE_CHECKING:
    from lhotse import CutSet, Recording
    from lhotse.cut import Cut

SPEEDS = (0.9, 1.1)
"""Factors of speed perturbation [Ko et al. 2015], besides 1."""


class Perturbation(Protocol):
    """Makes a copy of a cut that has audio; pickled for each process that computes features.

    Attributes:
        name: in names of files.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, cut: Cut) -> Cut:
        """The copy, whose audio is made when it is loaded."""


@dataclass(frozen=True)
class Speed:
    """Another speed; the id becomes ``<id>_sp0.9``.

    Attributes:
        factor: below 1: slower.
    """

    factor: float

    @property
    def name(self) -> str:
        return f"sp{self.factor}"

    def __call__(self, cut: Cut) -> Cut:
        return _copy_of(cut, cut.drop_features().perturb_speed(self.factor))


@dataclass(frozen=True)
class Noise:
    """Noise from first to last sample, as much as it takes; the id becomes ``<id>_noise``.

    Attributes:
        noise: drawn from, at the sampling rate of the utterances.
        snr: lowest and highest ratio of speech to noise, in dB.
        seed: with an utterance's id it determines what is mixed in.
    """

    noise: CutSet
    snr: tuple[float, float]
    seed: int
    name: str = "noise"

    def __call__(self, cut: Cut) -> Cut:
        from lhotse import CutSet

        drawn = random.Random(f"{self.seed} {cut.id}")
        alone = CutSet.from_cuts([cut.drop_features().with_id(f"{cut.id}_{self.name}")])
        [mixed] = alone.mix(
            self.noise, snr=self.snr, preserve_id="left", seed=drawn, random_mix_offset=True
        )
        return _copy_of(cut, mixed)


@dataclass(frozen=True)
class Reverberation:
    """A room; the id becomes ``<id>_rvb``.

    Attributes:
        rirs: impulse responses, of which one is drawn; its first channel is used.
        seed: with an utterance's id it determines the room.
    """

    rirs: tuple[Recording, ...]
    seed: int
    name: str = "rvb"

    def __call__(self, cut: Cut) -> Cut:
        rir = random.Random(f"{self.seed} {cut.id}").choice(self.rirs)
        copy = cut.drop_features().reverb_rir(rir, affix_id=False)
        return _copy_of(cut, copy.with_id(f"{cut.id}_{self.name}"))


def _copy_of(original: Cut, copy: Cut) -> Cut:
    copy.custom = {**(original.custom or {}), "original_id": original.id}
    return copy


def without_tracks(original: Cut, copy: Cut) -> Cut:
    """A mixture as one cut with the original's recording; any other copy as it is."""
    from lhotse.cut import MixedCut
    from lhotse.utils import fastcopy

    if not isinstance(copy, MixedCut):
        return copy
    end = copy.id.removeprefix(original.id)
    said = [fastcopy(said, id=f"{said.id}{end}") for said in original.supervisions]
    return fastcopy(original, id=copy.id, supervisions=said, custom=copy.custom, features=None)


def perturbations(
    sampling_rate: int,
    *,
    seed: int,
    snr: tuple[float, float],
    speeds: bool = False,
    noise: Path | None = None,
    rirs: Path | None = None,
) -> tuple[Perturbation, ...]:
    """Those that are asked for; manifests are read.

    Args:
        sampling_rate: of the utterances, in Hz.
        speeds: one for each of :data:`SPEEDS`.
        seed, noise, snr: see :class:`Noise`.
        rirs: see :class:`Reverberation`.

    Raises:
        DataError: a manifest cannot be read, or holds something else.
    """
    ways: list[Perturbation] = [Speed(factor) for factor in SPEEDS if speeds]
    if noise is not None:
        ways.append(Noise(read_noise(noise, sampling_rate), snr, seed))
    if rirs is not None:
        ways.append(Reverberation(read_rirs(rirs, sampling_rate), seed))
    return tuple(ways)


def read_noise(path: Path, sampling_rate: int) -> CutSet:
    """Noise by a manifest of lhotse's, cuts or recordings, for example MUSAN's.

    Args:
        sampling_rate: that the audio is resampled to, in Hz.

    Raises:
        DataError: no such manifest, another kind, or nothing in it.
    """
    from lhotse import CutSet, RecordingSet

    found = _manifest(path)
    if isinstance(found, RecordingSet):
        found = CutSet.from_manifests(recordings=found)
    if not isinstance(found, CutSet):
        raise _another_kind(path, "cuts or recordings of noise", type(found).__name__)
    cuts = [cut for cut in found if cut.num_channels == 1]
    if not cuts:
        raise _another_kind(path, "cuts or recordings of one channel", "none")
    return CutSet.from_cuts(cut.drop_features().resample(sampling_rate) for cut in cuts)


def read_rirs(path: Path, sampling_rate: int) -> tuple[Recording, ...]:
    """Impulse responses by lhotse's manifest of recordings, for example of ``prepare rir-noise``.

    Args:
        sampling_rate: that they are resampled to, in Hz.

    Raises:
        DataError: no such manifest, another kind, or nothing in it.
    """
    from lhotse import RecordingSet

    found = _manifest(path)
    if not isinstance(found, RecordingSet):
        raise _another_kind(path, "recordings of impulse responses", type(found).__name__)
    rirs = tuple(recording.resample(sampling_rate) for recording in found)
    if not rirs:
        raise _another_kind(path, "recordings of impulse responses", "none")
    return rirs


def _manifest(path: Path) -> object:
    from lhotse import load_manifest

    try:
        return load_manifest(path)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise _another_kind(path, "a manifest of lhotse's", f"{error}".split("\n")[0]) from error


def _another_kind(path: Path, expected: str, found: str) -> DataError:
    way_out = "give the file that lhotse prepare musan or rir-noise has written"
    return DataError(path, expected, found, way_out)
