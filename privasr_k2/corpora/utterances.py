"""From a list of utterances to lhotse cuts: what every corpus file would write again otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.data.audio import AudioHeader, read_headers

if TYPE_CHECKING:
    from lhotse import CutSet, Features, MonoCut

CHARACTERS_PER_SECOND = 15.0
"""Of conversational English, blanks included: the duration of speech that nobody recorded is
estimated by it."""
_OVERSHOOT_SECONDS = 0.5


@dataclass(frozen=True)
class Utterance:
    """One utterance as a corpus describes it.

    Attributes:
        id: different from that of every other utterance.
        text: as found.
        speaker: the person.
        part: the corpus's own name of the part.
        audio: the file, or ``None`` for an utterance with given features or with text only.
        start: where it begins in the file, in seconds.
        end: where it ends, in seconds; ``None`` is the end of the file.
        channel: of the file, from 0.
        features: a lhotse ``Features`` manifest that comes with the corpus.
        custom: more that is known, for ``supervision.custom``. ``entities`` is a list of
            ``[first, last_exclusive, label]`` that counts the blank-parted tokens of ``text``.
        synthetic: whether a machine spoke it.
        place: ``file:line`` of the transcript, for messages.
    """

    id: str
    text: str
    speaker: str
    part: str
    audio: Path | None = None
    start: float = 0.0
    end: float | None = None
    channel: int = 0
    features: Features | None = None
    custom: Mapping[str, Any] = field(default_factory=dict)
    synthetic: bool = False
    place: str = ""


def make_cuts(utterances: Iterable[Utterance], num_jobs: int = 1) -> CutSet:
    """One cut with one supervision an utterance, in the given order. Reads the headers of the audio
    files.

    An utterance whose audio cannot be read, or lies outside its file, gets a cut with
    ``custom["problem"]``, so that ``check_cuts`` reports it with all others.
    """
    from lhotse import CutSet

    utterances = list(utterances)
    headers = read_headers((u.audio for u in utterances if u.audio is not None), num_jobs)
    return CutSet.from_cuts(_make_cut(u, headers) for u in utterances)


def _make_cut(utterance: Utterance, headers: Mapping[Path, AudioHeader]) -> MonoCut:
    from lhotse import MonoCut, SupervisionSegment

    custom: dict[str, Any] = {"part": utterance.part, "place": utterance.place or utterance.id}
    if utterance.synthetic:
        custom["synthetic"] = True
    start, recording, problem = utterance.start, None, None
    if utterance.audio is not None:
        header = headers[utterance.audio]
        duration, problem = _duration(utterance, header)
        if problem is None:
            recording = _recording(utterance, header)
            start = round(start * header.sampling_rate) / header.sampling_rate
    elif utterance.features is not None:
        start, duration = 0.0, utterance.features.duration
    else:
        start, duration = 0.0, max(0.3, round(len(utterance.text) / CHARACTERS_PER_SECOND, 2))
        custom["text_only"] = True
    if problem is not None:
        custom["problem"] = f"{utterance.audio}: {problem}"
        start = 0.0
    recording_id = recording.id if recording is not None else utterance.id
    supervision = SupervisionSegment(
        id=utterance.id,
        recording_id=recording_id,
        start=0.0,
        duration=duration,
        channel=utterance.channel,
        text=utterance.text,
        speaker=utterance.speaker,
        custom=dict(utterance.custom) or None,
    )
    return MonoCut(
        id=utterance.id,
        start=start,
        duration=duration,
        channel=utterance.channel,
        supervisions=[supervision],
        features=utterance.features,
        recording=recording,
        custom=custom,
    )


def _duration(utterance: Utterance, header: AudioHeader) -> tuple[float, str | None]:
    """Seconds of the utterance, a whole number of samples; and what is wrong with it (then 1
    second).
    """
    if header.problem is not None:
        return 1.0, header.problem
    if utterance.channel >= header.num_channels:
        return 1.0, f"{header.num_channels} channels, but channel {utterance.channel} is wanted"
    rate, length = header.sampling_rate, header.num_samples
    first = round(utterance.start * rate)
    last = length if utterance.end is None else round(utterance.end * rate)
    if first < 0 or last > length + _OVERSHOOT_SECONDS * rate or min(last, length) <= first:
        end = "its end" if utterance.end is None else f"{utterance.end:g}"
        return 1.0, f"{length / rate:.2f} s of audio, but {utterance.start:g} to {end} s are wanted"
    return (min(last, length) - first) / rate, None


def _recording(utterance: Utterance, header: AudioHeader) -> Any:
    from lhotse import Recording
    from lhotse.audio import AudioSource

    assert utterance.audio is not None
    whole = utterance.start == 0.0 and utterance.end is None
    source = AudioSource(
        type="file", channels=list(range(header.num_channels)), source=str(utterance.audio)
    )
    return Recording(
        id=utterance.id if whole else utterance.audio.stem,
        sources=[source],
        sampling_rate=header.sampling_rate,
        num_samples=header.num_samples,
        duration=header.num_samples / header.sampling_rate,
    )
