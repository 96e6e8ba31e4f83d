"""From a list of utterances to lhotse cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.corpora.perturbed import is_copy
from privasr_k2.data.audio import AudioHeader, read_headers
from privasr_k2.data.users import hold_out

if TYPE_CHECKING:
    from lhotse import CutSet, Features, MonoCut

CHARACTERS_PER_SECOND = 15.0
"""Of conversational English, blanks included; it estimates durations of text without audio."""
MAX_SECONDS = 15.0
"""A longer turn of a speaker is cut at its punctuation."""
OVERSHOOT_SECONDS = 0.5
"""What a segment may exceed its file by, as in Kaldi; it is cut off."""
_CLAUSE_END = frozenset(".?!,;:")


@dataclass(frozen=True)
class Utterance:
    """One utterance as a corpus describes it.

    Attributes:
        id: unique.
        text: as found.
        part: the corpus's own name of the part.
        audio: the file; ``None`` for given features or text only.
        start, end: in the file, in seconds; ``None`` is the end of the file.
        channel: of the file, from 0.
        features: a manifest that comes with the corpus.
        custom: for ``supervision.custom``. ``entities`` lists ``[first, last_exclusive, label]`` in
            tokens of ``text``.
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
    """One cut with one supervision per utterance, in order; reads the headers of the audio files.

    An utterance whose audio cannot be read, or lies outside its file, gets ``custom["problem"]``,
    which ``check_cuts`` reports.
    """
    from lhotse import CutSet

    utterances = list(utterances)
    headers = read_headers((u.audio for u in utterances if u.audio is not None), num_jobs)
    return CutSet.from_cuts(_make_cut(u, headers) for u in utterances)


def split_turn(tokens: Sequence[str]) -> list[list[str]]:
    """Pieces of a turn of at most about 15 s, cut after punctuation where there is any.

    >>> [len(piece) for piece in split_turn(["word"] * 30 + ["."] + ["word"] * 30)]
    [31, 30]
    """
    limit = MAX_SECONDS * CHARACTERS_PER_SECOND
    pieces: list[list[str]] = []
    current: list[str] = []
    for token in tokens:
        current.append(token)
        # The last mark before the limit, or the limit itself in a stretch without marks.
        if sum(map(len, current)) + len(current) > limit:
            marks = [i for i, t in enumerate(current[:-1], start=1) if t[-1] in _CLAUSE_END]
            cut = marks[-1] if marks else len(current) - 1
            pieces.append(current[:cut] if cut else current)
            current = current[cut:] if cut else []
    return [*pieces, current] if current else pieces


def split_by_speaker(
    cuts: CutSet, *, fraction: float, at_least: int, seed: int, never: Collection[str] = ()
) -> tuple[CutSet, CutSet]:
    """The rest, and the cuts of whole speakers that :func:`hold_out` chooses.

    Perturbed copies (:mod:`.perturbed`) of the speakers who are held out are in neither.
    """
    seconds: Counter[str] = Counter()
    for cut in cuts:
        seconds[cut.supervisions[0].speaker] += cut.duration
    held = hold_out(seconds, fraction=fraction, at_least=at_least, seed=seed, never=never)
    rest = cuts.filter(lambda cut: cut.supervisions[0].speaker not in held).to_eager()
    taken = cuts.filter(lambda cut: cut.supervisions[0].speaker in held and not is_copy(cut))
    return rest, taken.to_eager()


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
    id_, channel = utterance.id, utterance.channel
    recording_id = recording.id if recording is not None else id_
    said = dict(text=utterance.text, speaker=utterance.speaker)
    more = dict(utterance.custom) or None
    spoken = SupervisionSegment(id_, recording_id, 0.0, duration, channel, **said, custom=more)
    data = dict(features=utterance.features, recording=recording, custom=custom)
    return MonoCut(id_, start, duration, channel, supervisions=[spoken], **data)


def _duration(utterance: Utterance, header: AudioHeader) -> tuple[float, str | None]:
    """Seconds of the utterance, a whole number of samples; or 1 second and a problem."""
    if header.problem is not None:
        return 1.0, header.problem
    if utterance.channel >= header.num_channels:
        return 1.0, f"{header.num_channels} channels, but channel {utterance.channel} is wanted"
    rate, length = header.sampling_rate, header.num_samples
    first = round(utterance.start * rate)
    last = length if utterance.end is None else round(utterance.end * rate)
    if first < 0 or last > length + OVERSHOOT_SECONDS * rate or min(last, length) <= first:
        end = "its end" if utterance.end is None else f"{utterance.end:g}"
        return 1.0, f"{length / rate:.2f} s of audio, but {utterance.start:g} to {end} s are wanted"
    return (min(last, length) - first) / rate, None


def _recording(utterance: Utterance, header: AudioHeader) -> Any:
    from lhotse import Recording
    from lhotse.audio import AudioSource

    assert utterance.audio is not None
    whole = utterance.start == 0.0 and utterance.end is None
    id_ = utterance.id if whole else utterance.audio.stem
    source = AudioSource("file", list(range(header.num_channels)), str(utterance.audio))
    rate, length = header.sampling_rate, header.num_samples
    return Recording(id_, [source], rate, length, length / rate)
