"""Acoustic features, stored once in lhotse's formats.

``fbank`` and ``mfcc``: :mod:`.kaldi`; ``sphinx``: :mod:`.sphinx`. S samples, in [-1, 1], give
``(S + shift / 2) // shift`` frames of each.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import numpy as np
import yaml
from annotated_types import Interval

from privasr_k2.constraints import Checked, Count, NotNegative, Positive, one_of
from privasr_k2.data import kaldi, sphinx
from privasr_k2.data.audio import load_samples, no_audio
from privasr_k2.data.manifests import load_cuts, roles, save_cuts
from privasr_k2.data.perturbations import Perturbation, perturbations, without_tracks
from privasr_k2.data.processes import processes
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, write_text
from privasr_k2.recipe.progress import report_progress

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)


class Extractor(Protocol):
    """Features that are not of this module; pickled for each process that computes them.

    Attributes:
        type: of the stored features, in lhotse.
        frame_shift: seconds.
        about: what ``features.yaml`` records of it.
    """

    type: str
    frame_shift: float
    about: dict[str, Any]

    def extract(self, samples: np.ndarray, sampling_rate: int) -> np.ndarray:
        """Features (T, F) of samples (S,)."""


DIMENSIONS = {"fbank": kaldi.NUM_FILTERS, "mfcc": kaldi.NUM_CEPSTRA, "sphinx": sphinx.NUM_CEPSTRA}
_COMPUTED = {"fbank": kaldi.fbank, "mfcc": kaldi.mfcc, "sphinx": sphinx.cepstra}
VERSION = 2
"""Of the values of features. 1: fbank and mfcc of kaldi-native-fbank."""
ABOUT = "features.yaml"
ENCODER, PUBLIC_ENCODER = "encoder", "public_encoder"
FRAME_SHIFT = 0.01
"""Seconds."""
FINE_TICK_POWER = -12
"""Of features of small scale, as Sphinx's cepstra: steps of 1/4096."""


@dataclass(frozen=True)
class OutputConfig(Checked):
    """Which outputs of a public encoder are features.

    Attributes:
        layers: whose outputs are stored side by side, from 0 to L; none: the last.
        pad_seconds: audio is heard with silence up to this length; 0: at its true length.
        chunk_seconds, chunk_overlap: longer audio is read in chunks that overlap.
    """

    layers: list[int]
    pad_seconds: NotNegative
    chunk_seconds: Positive
    chunk_overlap: NotNegative


@dataclass(frozen=True)
class FeatureConfig(Checked):
    """Section ``features`` of the configuration.

    Attributes:
        version: of the values, :data:`VERSION`; with another one a stage computes them again.
        kind: ``auto`` is ``given`` where the corpus has features and no copies at other speeds are
            wanted, otherwise ``fbank``; ``encoder``: the outputs of a public encoder.
        speed_perturb: whether train is stored at three speeds.
        noise_snr: speech to noise of noisy copies, lowest and highest, in dB.
        perturb_seed: of noise and rooms.
        tick_power: fbank and mfcc are stored in steps of ``2 ** tick_power``.
        cuts_per_file: utterances stored in one file.
        encoder: settings of ``kind: encoder``.
    """

    version: Annotated[int, Interval(ge=VERSION, le=VERSION)]
    kind: Annotated[str, one_of(*DIMENSIONS, "given", "auto", ENCODER)]
    speed_perturb: bool
    noise_snr: list[float]
    perturb_seed: int
    tick_power: Annotated[int, Interval(ge=-15, le=-1)]
    cuts_per_file: Count
    encoder: OutputConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "given" and self.speed_perturb:
            raise ValueError("speed_perturb must be false with kind=given, which has no audio")
        if len(self.noise_snr) != 2 or self.noise_snr[0] > self.noise_snr[1]:
            raise ValueError(f"noise_snr must be lowest and highest, got {self.noise_snr}")


def extract(samples: np.ndarray, sampling_rate: int, kind: str = "fbank") -> np.ndarray:
    """Features of one signal, (T, F) float32, T = (S + shift / 2) // shift with a shift of 10 ms.

    Args:
        samples: (S,) floats in [-1, 1].
        sampling_rate: in Hz.
        kind: ``fbank``, ``mfcc`` or ``sphinx``.

    Raises:
        ConfigError: another kind.
        DataError: more channels than one; for ``sphinx`` another sampling rate than 16 kHz.

    >>> extract(np.zeros(16000, dtype=np.float32), 16000, "fbank").shape
    (100, 80)
    """
    if kind not in DIMENSIONS:
        way_out = "features of another kind come with the corpus"
        raise ConfigError("kind", " or ".join(DIMENSIONS), repr(kind), way_out)
    if samples.ndim != 1:
        found = f"an array of shape {samples.shape}"
        raise DataError("samples", "one channel, (S,)", found, "choose a channel")
    return _COMPUTED[kind](samples, sampling_rate)


def extractor_name(kind: str) -> str:
    """The name of the extractor in lhotse, which is the ``type`` of stored features."""
    return f"kaldi-{kind}" if kind in ("fbank", "mfcc") else kind


#: What the kinds of storage raise: lilcom, numpy, HDF5, Kaldi's archives.
_UNREADABLE = (
    *(OSError, EOFError, ValueError, TypeError, LookupError),
    *(RuntimeError, AssertionError, struct.error),
)


def load_features(cut: Cut) -> np.ndarray:
    """The stored features of a cut, (T, F) float32.

    Raises:
        DataError: there are none, or they cannot be read.
    """
    if not cut.has_features:
        way_out = "read the cuts from data/feats_<kind>"
        raise DataError(cut.id, "a cut with features", "none", way_out)
    try:
        return np.asarray(cut.load_features(), dtype=np.float32)
    except _UNREADABLE as error:
        stored, found = cut.features, str(error).split("\n")[0] or type(error).__name__
        place = f"{Path(stored.storage_path) / stored.storage_key} ({cut.id})"
        raise DataError(place, "stored features", found, "store or copy them again") from error


def compute(
    in_dir: Path,
    out_dir: Path,
    config: FeatureConfig,
    num_jobs: int = 1,
    extractor: Extractor | None = None,
    *,
    noise: Path | None = None,
    rirs: Path | None = None,
) -> dict[str, Any]:
    """Store the features of all roles atomically, and return the content of ``features.yaml``.

    The result does not depend on ``num_jobs``. Given features are read once and stay where they
    are.

    Args:
        extractor: of ``kind: encoder``; its features are stored as float16.
        noise: a manifest of noise, of which train has a noisy copy.
        rirs: a manifest of impulse responses, of which train has a reverberant copy.

    Raises:
        DataError: cuts without audio (or, with ``given``, without features), or undecodable audio.
    """
    there = roles(in_dir)
    if not there:
        way_out = "run the stage that prepares the corpus"
        raise DataError(in_dir, "a folder of manifests", "no cuts_<role>.jsonl.gz", way_out)
    rate = _sampling_rate(load_cuts(in_dir, there[0], lazy=True))
    ways = perturbations(
        rate,
        speeds=config.speed_perturb,
        noise=noise,
        snr=(config.noise_snr[0], config.noise_snr[1]),
        rirs=rirs,
        seed=config.perturb_seed,
    )
    if config.kind == "auto":
        first = next(iter(load_cuts(in_dir, there[0], lazy=True)))
        is_given = first.has_features and not ways
        config = replace(config, kind="given" if is_given else "fbank")
        log.info("%s features", config.kind)
    if config.kind == "given" and ways:
        found = " and ".join(way.name for way in ways)
        raise ConfigError("kind=given", "no perturbed copies", found, "give kind=fbank")
    public = None if extractor is None else extractor.about  # opened before any cut is read
    dims: set[int] = set()
    shifts: set[float] = set()
    with atomic_path(out_dir) as folder, processes(num_jobs) as pool:
        folder.mkdir()
        for role in there:
            seen = Counter[str]()
            cuts = load_cuts(in_dir, role, lazy=True)
            copies = ways if role == "train" else ()
            stored = _stored(cuts, folder, role, config, extractor, pool, copies)
            save_cuts(_counted(stored, seen, dims, shifts), folder, role)
            hours = seen["frames"] * max(shifts, default=FRAME_SHIFT) / 3600
            log.info("%s: %d cuts, %.2f h of features", role, seen["cuts"], hours)
        if len(dims) != 1 or len(shifts) != 1:
            expected = "features of one dimension and frame shift"
            found = f"dimensions {sorted(dims)}, frame shifts {sorted(shifts)}"
            raise DataError(in_dir, expected, found, "give features of one kind")
        about = {
            **asdict(config),
            "dim": dims.pop(),
            "frame_shift": shifts.pop(),
            "sampling_rate": rate,
        }
        if public is None:
            del about[ENCODER]
        else:
            about[PUBLIC_ENCODER] = public
        write_text(folder / ABOUT, yaml.safe_dump(about, sort_keys=False))
    return about


def _counted(
    cuts: Iterable[Cut], seen: Counter[str], dims: set[int], shifts: set[float]
) -> Iterator[Cut]:
    """Hand the cuts on and record their frames, dimensions and shifts."""
    for cut in cuts:
        seen.update(cuts=1, frames=cut.num_frames)
        dims.add(cut.features.num_features)
        shifts.add(cut.features.frame_shift)
        yield cut


def _sampling_rate(cuts: CutSet) -> int:
    first = next(iter(cuts))
    if not first.has_recording and not first.has_features:
        raise no_audio(first)
    return int(first.sampling_rate)


def _stored(
    cuts: CutSet,
    folder: Path,
    role: str,
    config: FeatureConfig,
    extractor: Extractor | None,
    pool: ProcessPoolExecutor | None,
    copies: Sequence[Perturbation],
) -> Iterator[Cut]:
    tasks: list[_Task] = [
        (
            batch,
            folder / f"feats_{role}_{way.name if way else 'plain'}_{number:04d}",
            config,
            extractor,
            way,
        )
        for way in (None, *copies)
        for number, batch in enumerate(_batches(cuts, config.cuts_per_file))
    ]
    results = pool.map(_store, tasks) if pool is not None else map(_store, tasks)
    for number, made in enumerate(results, 1):
        report_progress(number, len(tasks), f"{role} file")
        yield from made


def _batches(cuts: CutSet, size: int) -> Iterator[list[Cut]]:
    rest = iter(cuts)
    while batch := list(islice(rest, size)):
        yield batch


_Task = tuple[Sequence["Cut"], Path, FeatureConfig, Extractor | None, Perturbation | None]


def _store(task: _Task) -> list[Cut]:
    """Compute and write one file, or folder, of features; runs in a process of its own."""
    from lhotse import LilcomChunkyWriter, NumpyFilesWriter
    from lhotse.utils import fastcopy

    cuts, path, config, extractor, way = task
    if config.kind == "given":  # looked at once, and read where they are
        for cut in cuts:
            _values(cut, config.kind, None)
        return [*cuts]
    made = []
    tick_power = FINE_TICK_POWER if config.kind == "sphinx" else config.tick_power
    with (
        LilcomChunkyWriter(path, tick_power=tick_power)
        if extractor is None
        else NumpyFilesWriter(path)
    ) as writer:
        for cut in cuts:
            if way is not None and not cut.has_recording:
                raise no_audio(cut)
            heard = cut if way is None else way(cut)
            values = _values(heard, config.kind, extractor)
            storage = (writer.name, str(writer.storage_path), writer.write(heard.id, values))
            kept = without_tracks(cut, heard)
            of_cut = _manifest(kept, values, config.kind, extractor, storage)
            # The recording of a mixture would be the one without noise.
            recording = kept.recording if kept is heard else None
            made.append(fastcopy(kept, features=of_cut, recording=recording))
    return made


def _values(cut: Cut, kind: str, extractor: Extractor | None) -> np.ndarray:
    if kind == "given":
        if not cut.has_features:
            way_out = "compute them: --feature fbank (of the verb: --set kind=fbank)"
            raise DataError(cut.id, "features that come with the corpus", "none", way_out)
        values = load_features(cut)
        if len(values) != cut.num_frames:
            found, way_out = f"{len(values)} stored", "store its features again"
            raise DataError(cut.id, f"{cut.num_frames} frames", found, way_out)
    elif extractor is not None:
        samples = load_samples(cut)
        try:
            values = extractor.extract(samples, cut.sampling_rate)
        except DataError as error:
            place = f"{cut.id}, {error.place}"
            raise DataError(place, error.expected, error.found, error.way_out) from error
    else:
        values = extract(load_samples(cut), cut.sampling_rate, kind)
    if len(values) == 0 or not np.isfinite(values).all():
        found = "no frame" if len(values) == 0 else "values that are not finite"
        expected = "features of at least one frame, all finite"
        raise DataError(cut.id, expected, found, "leave the utterance out")
    return values


def _manifest(
    cut: Cut,
    values: np.ndarray,
    kind: str,
    extractor: Extractor | None,
    storage: tuple[str, str, str],
) -> Any:
    from lhotse import Features

    storage_type, storage_path, storage_key = storage
    return Features(
        type=extractor_name(kind) if extractor is None else extractor.type,
        num_frames=len(values),
        num_features=values.shape[1],
        frame_shift=FRAME_SHIFT if extractor is None else extractor.frame_shift,
        sampling_rate=cut.sampling_rate,
        start=cut.start,
        duration=cut.duration,
        storage_type=storage_type,
        storage_path=storage_path,
        storage_key=storage_key,
        recording_id=cut.recording_id,
        channels=cut.channel,
    )
