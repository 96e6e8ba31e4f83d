"""Synthetic speech for corpora: many voices, each utterance with its own room and noise.

:func:`draw_voices` draws the speakers, :func:`plan` the conditions of each line, and :func:`speak`
writes FLAC files. The bytes depend on the jobs alone, not on order or number of processes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from privasr_k2.constraints import Checked, Share
from privasr_k2.corpora import noise as acoustics
from privasr_k2.corpora.espeak import SAMPLING_RATE as ESPEAK_RATE
from privasr_k2.corpora.espeak import Espeak, espeak
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream

SAMPLING_RATE = 16000

# Accents by how often they are drawn where none are named (en: Great Britain), and the variants of
# espeak-ng that are understood well: no whisper, no robots, none that clips.
ACCENTS = {"en-us": 0.55, "en-us-nyc": 0.1, "en-gb-x-rp": 0.15, "en-gb-scotland": 0.08}
ACCENTS |= {"en-gb-x-gbclan": 0.06, "en-029": 0.06, "en": 0.0, "en-gb-x-gbcwmd": 0.0}
_VARIANTS = """
m1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 f5 Alex Alicia Annie Denis Diogo Henrique Hugo Lee Michael Mike
Nguyen adam anika aunty belinda benjamin boris david edward2 ian linda marcelo max michel miguel
pablo quincy rob robert shelby steph travis victor zac
"""
VARIANTS = tuple(_VARIANTS.split())
_LABEL = "synthetic speech made with espeak-ng"


@dataclass(frozen=True)
class Voice:
    """A speaker: espeak-ng's voice name, words per minute, base pitch and pitch range (0 to 99)."""

    name: str
    rate: int
    pitch: int
    pitch_range: int


@dataclass(frozen=True)
class Ranges(Checked):
    """Ranges (lowest, highest) of uniformly drawn recording conditions.

    Attributes:
        snr_db: speech over noise, in decibels, -20 to 100.
        t60: reverberation time in seconds, 0 to 1.
        wet: energy of the reverberation relative to the direct path, 0 to 1.
        peak_db: level of the loudest sample relative to full scale, -60 to 0.
        silence: seconds before and after the speech, each, 0 to 10.
        babble: share of utterances with babble; the others get white or pink noise.
    """

    snr_db: tuple[float, float]
    t60: tuple[float, float]
    wet: tuple[float, float]
    peak_db: tuple[float, float]
    silence: tuple[float, float]
    babble: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        bounds = {"snr_db": (-20, 100), "t60": (0, 1), "wet": (0, 1), "peak_db": (-60, 0)}
        for name, (least, most) in {**bounds, "silence": (0, 10)}.items():
            pair = getattr(self, name)
            if len(pair) != 2 or not least <= pair[0] <= pair[1] <= most:
                expected = f"two numbers from {least} to {most} in order"
                raise ValueError(f"{name} must be {expected}, got {pair}")


@dataclass(frozen=True)
class SpeakJob:
    """One utterance to be spoken.

    Attributes:
        id: names the file, ``<id>.flac``.
        noise: ``white``, ``pink`` or ``babble``.
        talkers: texts and voices in the background; only for babble.
        snr_db, t60, wet, peak_db: as in :class:`Ranges`.
        silence: seconds before and after the speech.
        seed: of the noise, the impulse response and espeak-ng's random numbers.
        speed: the speech is played so many times as fast, which raises its pitch too. The file
            keeps its length: silence follows the speech.
    """

    id: str
    text: str
    voice: Voice
    noise: str
    talkers: tuple[tuple[str, Voice], ...]
    snr_db: float
    t60: float
    wet: float
    peak_db: float
    silence: tuple[float, float]
    seed: int
    speed: float = 1.0


@dataclass(frozen=True)
class Spoken:
    """A written file, its length in samples of :data:`SAMPLING_RATE`."""

    id: str
    path: Path
    num_samples: int

    @property
    def duration(self) -> float:
        """In seconds."""
        return self.num_samples / SAMPLING_RATE


def draw_voices(count: int, seed: int, among: Sequence[str] = ()) -> list[Voice]:
    """``count`` speakers; no two share accent and variant as long as there are enough of them.

    Args:
        among: names of :data:`ACCENTS`, each as likely; none: all of them, by their shares.

    >>> voices = draw_voices(48, seed=1)
    >>> len({voice.name for voice in voices}), voices[:2] == draw_voices(2, seed=1)
    (48, True)
    """
    accents = [accent for accent in ACCENTS if not among or accent in among]
    taken, voices = set(), []
    shares = [1 / len(accents) if among else share for share in map(ACCENTS.get, accents)]
    for number in range(count):
        generator = stream(seed, "voice", number)
        name = ""
        for _ in range(100):
            accent = accents[generator.choice(len(accents), p=shares)]
            name = f"{accent}+{VARIANTS[generator.integers(len(VARIANTS))]}"
            if name not in taken:
                break
        taken.add(name)
        rate, *pitches = (int(generator.integers(*b)) for b in ((145, 196), (30, 71), (30, 71)))
        voices.append(Voice(name, rate, *pitches))
    return voices


def plan(lines: Sequence[tuple[str, str, Voice]], ranges: Ranges, seed: int) -> list[SpeakJob]:
    """A job for each (id, text, voice), with conditions drawn from ``seed`` and the id.

    Babble is made of three other lines.
    """
    jobs = []
    for id_, text, voice in lines:
        generator = stream(seed, "conditions", id_)
        uniform = {
            name: float(generator.uniform(*getattr(ranges, name)))
            for name in ("snr_db", "t60", "wet", "peak_db")
        }
        silence = tuple(float(s) for s in generator.uniform(*ranges.silence, size=2))
        babbles = generator.random() < ranges.babble
        kind = "babble" if babbles else str(generator.choice(["white", "pink"]))
        others = generator.integers(len(lines), size=3) if babbles else ()
        talkers, job_seed = tuple(lines[n][1:] for n in others), int(generator.integers(1 << 31))
        jobs.append(
            SpeakJob(id_, text, voice, kind, talkers, silence=silence, seed=job_seed, **uniform)
        )
    return jobs


def speak(jobs: Sequence[SpeakJob], out_dir: Path, num_jobs: int) -> list[Spoken]:
    """Speak every job, in order, into ``out_dir/<id>.flac`` (16 kHz, one channel, 16 bits).

    Args:
        num_jobs: processes; the files are the same for any number.

    Raises:
        DataError: two jobs with one id, or a voice or text that cannot be spoken.
    """
    ids = {job.id for job in jobs}
    if len(ids) < len(jobs):
        expected = "utterance ids that differ"
        raise DataError(out_dir, expected, f"{len(jobs) - len(ids)} twice", "give each its own")
    out_dir.mkdir(parents=True, exist_ok=True)
    if num_jobs <= 1 or len(jobs) < 2 * num_jobs:
        return _speak_all(jobs, out_dir)
    # Many small parts keep the processes busy to the end; spawn, as fork is unsafe beside threads.
    size = min(50, -(-len(jobs) // num_jobs))
    parts = [jobs[start : start + size] for start in range(0, len(jobs), size)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(num_jobs, len(parts)), mp_context=context) as pool:
        spoken = list(pool.map(_speak_all, parts, [out_dir] * len(parts)))
    return [file for part in spoken for file in part]


def _speak_all(jobs: Sequence[SpeakJob], out_dir: Path) -> list[Spoken]:
    import soundfile

    spoken = []
    with espeak() as synthesizer:
        for job in jobs:
            samples, path = render(job, synthesizer), out_dir / f"{job.id}.flac"
            with soundfile.SoundFile(path, "w", SAMPLING_RATE, 1, "PCM_16", format="FLAC") as file:
                file.comment = _LABEL
                file.write(samples)
            spoken.append(Spoken(job.id, path, len(samples)))
    return spoken


def render(job: SpeakJob, synthesizer: Espeak) -> np.ndarray:
    """The samples of a job: int16, (count,), at :data:`SAMPLING_RATE`."""
    generator = stream(job.seed, "render")
    before, after = (int(seconds * SAMPLING_RATE) for seconds in job.silence)
    clean = _say(job.text, job.voice, job.seed, synthesizer)
    if job.speed != 1.0:
        normal, clean = len(clean), _faster(clean, job.speed)
        after += max(normal - len(clean), 0)
    # The ratio of speech to noise is that of the speech itself, silences at the ends left out.
    noise_count = before + len(clean) + after
    room = dict(t60=job.t60, wet=job.wet, sampling_rate=SAMPLING_RATE, generator=generator)
    reverberant = acoustics.reverberate(np.pad(clean, (before, after)), **room)
    if job.noise == "babble":
        voices = [_say(text, voice, job.seed, synthesizer) for text, voice in job.talkers]
        noise = acoustics.babble(voices, noise_count, generator)
    else:
        make = {"white": acoustics.white_noise, "pink": acoustics.pink_noise}[job.noise]
        noise = make(noise_count, generator)
    silent_share_db = 10.0 * np.log10(noise_count / len(clean))
    noisy = acoustics.add_noise(reverberant, noise, snr_db=job.snr_db - silent_share_db)
    return np.round(acoustics.scale_to_peak(noisy, peak_db=job.peak_db) * 32767.0).astype(np.int16)


def _say(text: str, voice: Voice, seed: int, synthesizer: Espeak) -> np.ndarray:
    from scipy.signal import resample_poly

    spoken = synthesizer.speak(text, **asdict(voice), seed=seed).astype(np.float64)
    up, down = SAMPLING_RATE // 50, ESPEAK_RATE // 50
    return acoustics.trim(resample_poly(spoken, up, down, window=_low_pass(up, down)))


def _faster(samples: np.ndarray, speed: float) -> np.ndarray:
    """(count,) samples as (count / speed,): played ``speed`` times as fast, in steps of 1/20."""
    from scipy.signal import resample_poly

    return resample_poly(samples, 20, round(20 * speed))


@cache
def _low_pass(up: int, down: int) -> np.ndarray:
    """The filter that ``resample_poly`` would design again for every utterance."""
    from scipy.signal import firwin

    most = max(up, down)
    return firwin(20 * most + 1, 1.0 / most, window=("kaiser", 5.0))
