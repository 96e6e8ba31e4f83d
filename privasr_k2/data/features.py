"""Acoustic features by kaldi-native-fbank, stored once in lhotse's formats.

Frames are 25 ms long and 10 ms apart, with Povey's window, no dither and reflected edges, so that S
samples give ``(S + shift / 2) // shift`` frames. Samples are in [-1, 1] and filters end 400 Hz
below half the sampling rate, as in lhotse's ``Fbank`` and icefall. ``sphinx``: :mod:`.sphinx`.
"""

from __future__ import annotations

import logging
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
from privasr_k2.data import sphinx
from privasr_k2.data.audio import audio_problem
from privasr_k2.data.manifests import load_cuts, roles, save_cuts
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


DIMENSIONS = {"fbank": 80, "mfcc": 40, "sphinx": sphinx.NUM_CEPSTRA}
ABOUT = "features.yaml"
ENCODER, PUBLIC_ENCODER = "encoder", "public_encoder"
FRAME_SHIFT = 0.01
"""Seconds."""
FINE_TICK_POWER = -12
"""Of features of small scale, as Sphinx's cepstra: steps of 1/4096."""
SPEEDS = (0.9, 1.1)
"""Factors of speed perturbation [Ko et al. 2015], besides 1."""


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
        kind: ``auto`` is ``given`` where the corpus has features and no copies at other speeds are
            wanted, otherwise ``fbank``; ``encoder``: the outputs of a public encoder.
        speed_perturb: whether train is stored at three speeds.
        tick_power: fbank and mfcc are stored in steps of ``2 ** tick_power``.
        cuts_per_file: utterances stored in one file.
        encoder: settings of ``kind: encoder``.
    """

    kind: Annotated[str, one_of(*DIMENSIONS, "given", "auto", ENCODER)]
    speed_perturb: bool
    tick_power: Annotated[int, Interval(ge=-15, le=-1)]
    cuts_per_file: Count
    encoder: OutputConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "given" and self.speed_perturb:
            raise ValueError("speed_perturb must be false with kind=given, which has no audio")


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
    if kind == "sphinx":
        return sphinx.cepstra(samples, sampling_rate)
    computer = _computer(sampling_rate, kind)
    computer.accept_waveform(sampling_rate, samples.tolist())
    computer.input_finished()
    frames = [computer.get_frame(t) for t in range(computer.num_frames_ready)]
    return np.stack(frames) if frames else np.zeros((0, DIMENSIONS[kind]), dtype=np.float32)


def extractor_name(kind: str) -> str:
    """The name of the extractor in lhotse, which is the ``type`` of stored features."""
    return kind if kind in ("given", "sphinx") else f"kaldi-native-{kind}"


def _computer(sampling_rate: int, kind: str) -> Any:
    import kaldi_native_fbank as knf

    options = knf.FbankOptions() if kind == "fbank" else knf.MfccOptions()
    options.frame_opts.samp_freq = sampling_rate
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = False
    options.mel_opts.low_freq = 20.0
    options.mel_opts.high_freq = -400.0
    options.energy_floor = 1e-10
    if kind == "fbank":
        options.mel_opts.num_bins = DIMENSIONS[kind]
        return knf.OnlineFbank(options)
    options.mel_opts.num_bins = options.num_ceps = DIMENSIONS[kind]
    options.use_energy = False
    return knf.OnlineMfcc(options)


def load_features(cut: Cut) -> np.ndarray:
    """The stored features of a cut, (T, F) float32."""
    if not cut.has_features:
        way_out = "read the cuts from data/feats_<kind>"
        raise DataError(cut.id, "a cut with features", "none", way_out)
    return np.asarray(cut.load_features(), dtype=np.float32)


def compute(
    in_dir: Path,
    out_dir: Path,
    config: FeatureConfig,
    num_jobs: int = 1,
    extractor: Extractor | None = None,
) -> dict[str, Any]:
    """Store the features of all roles atomically, and return the content of ``features.yaml``.

    The result does not depend on ``num_jobs``. Given features are read once and stay where they
    are.

    Args:
        extractor: of ``kind: encoder``; its features are stored as float16.

    Raises:
        DataError: cuts without audio (or, with ``given``, without features), or undecodable audio.
    """
    there = roles(in_dir)
    if not there:
        way_out = "run the stage that prepares the corpus"
        raise DataError(in_dir, "a folder of manifests", "no cuts_<role>.jsonl.gz", way_out)
    if config.kind == "auto":
        first = next(iter(load_cuts(in_dir, there[0], lazy=True)))
        is_given = first.has_features and not config.speed_perturb
        config = replace(config, kind="given" if is_given else "fbank")
        log.info("%s features", config.kind)
    public = None if extractor is None else extractor.about  # opened before any cut is read
    dims: set[int] = set()
    shifts: set[float] = set()
    with atomic_path(out_dir) as folder, processes(num_jobs) as pool:
        folder.mkdir()
        for role in there:
            seen = Counter[str]()
            cuts = load_cuts(in_dir, role, lazy=True)
            stored = _stored(cuts, folder, role, config, extractor, pool)
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
            "sampling_rate": _sampling_rate(load_cuts(in_dir, there[0], lazy=True)),
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
    data = first.recording if first.has_recording else first.features
    return int(data.sampling_rate)


def _stored(
    cuts: CutSet,
    folder: Path,
    role: str,
    config: FeatureConfig,
    extractor: Extractor | None,
    pool: ProcessPoolExecutor | None,
) -> Iterator[Cut]:
    speeds = (1.0, *SPEEDS) if config.speed_perturb and role == "train" else (1.0,)
    tasks = [
        (batch, folder / f"feats_{role}_sp{speed}_{number:04d}", config, extractor, speed)
        for speed in speeds
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


_Task = tuple[Sequence["Cut"], Path, FeatureConfig, Extractor | None, float]


def _store(task: _Task) -> list[Cut]:
    """Compute and write one file, or folder, of features; runs in a process of its own."""
    from lhotse import LilcomChunkyWriter, NumpyFilesWriter
    from lhotse.utils import fastcopy

    cuts, path, config, extractor, speed = task
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
            moved = _at_speed(cut, speed)
            values = _values(moved, config.kind, extractor)
            storage = (writer.name, str(writer.storage_path), writer.write(moved.id, values))
            of_cut = _manifest(moved, values, config.kind, extractor, storage)
            made.append(fastcopy(moved, features=of_cut))
    return made


def _at_speed(cut: Cut, speed: float) -> Cut:
    if speed == 1.0:
        return cut
    if not cut.has_recording:
        raise _no_audio(cut)
    # The id becomes <id>_sp0.9; what belongs together can be found by custom["original_id"].
    moved = cut.drop_features().perturb_speed(speed)
    moved.custom = {**(cut.custom or {}), "original_id": cut.id}
    return moved


def _no_audio(cut: Cut) -> DataError:
    found, way_out = "text only", "give a corpus with audio"
    if (cut.custom or {}).get("text_only"):
        way_out = "have the text spoken (--set speech=synthetic), or run a recipe of text only"
    elif cut.has_features:
        found, way_out = "features only", "take its own features: --feature given"
        way_out += " (of the verb: --set kind=given speed_perturb=false)"
    return DataError(cut.id, "audio", found, way_out)


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
        samples = _samples(cut)
        try:
            values = extractor.extract(samples, cut.sampling_rate)
        except DataError as error:
            place = f"{cut.id}, {error.place}"
            raise DataError(place, error.expected, error.found, error.way_out) from error
    else:
        values = extract(_samples(cut), cut.sampling_rate, kind)
    if len(values) == 0 or not np.isfinite(values).all():
        found = "no frame" if len(values) == 0 else "values that are not finite"
        expected = "features of at least one frame, all finite"
        raise DataError(cut.id, expected, found, "leave the utterance out")
    return values


def _samples(cut: Cut) -> np.ndarray:
    """(S,) float32 of one channel."""
    import soundfile
    from lhotse.audio import AudioLoadingError, DurationMismatchError

    if not cut.has_recording:
        raise _no_audio(cut)
    try:
        return np.asarray(cut.load_audio()[0], dtype=np.float32)
    except (AudioLoadingError, DurationMismatchError, soundfile.LibsndfileError, OSError) as error:
        source, way_out = cut.recording.sources[0], "replace the file, or leave it out"
        problem = audio_problem(Path(source.source)) if source.type == "file" else None
        found = problem or f"an error: {str(error).strip().splitlines()[0]}"
        raise DataError(source.source, f"the audio of {cut.id}", found, way_out) from error


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
