"""Problems of a corpus, collected, counted by kind, and reported in one error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text

SHOWN = 20
"""So many problems are shown in full; of more, the first :data:`EXAMPLES` of each kind."""
EXAMPLES = 3
FILE = "problems.tsv"
"""Where all of them stand, beside the manifests folder."""

PIPE = "command in wav.scp"
FAILED_PIPE = "command that failed"
MISSING_AUDIO = "missing audio"
UNREADABLE = "unreadable audio"
TRUNCATED = "truncated audio"
RATE = "other sampling rate"
CHANNELS = "several channels"
TIMES = "times outside the audio"
NO_WORDS = "no words"
NO_SPEAKER = "no speaker"
NO_FRAMES = "neither features nor audio"
DENSE = "text too long for its audio"
SPEAKERS = "speaker in two roles"
DOUBLE = "id twice"
ORDER = "line out of order"
FORM = "malformed line"
NO_FILE = "missing file"
NO_LINE = "no line in another file"
OTHER = "other"

ADVICE = {
    PIPE: "run them once with --allow-pipes true, if you trust who wrote them",
    FAILED_PIPE: "install the programs that they call (flac, sox, sph2pipe), or write audio files",
    MISSING_AUDIO: "correct the paths, or take these utterances out",
    UNREADABLE: "convert it: flac, wav, ogg and mp3 are read, as far as your libsndfile has the "
    "codec (ffmpeg -i IN OUT.flac; sph2pipe for SPHERE with shorten)",
    TRUNCATED: "copy or unpack these files again",
    RATE: "resample (sox IN -r RATE OUT), or, if all audio has that rate, "
    "--corpus-options sampling_rate=HZ",
    CHANNELS: "write one file a channel (sox IN OUT remix 1)",
    TIMES: "correct the times, which are in seconds",
    NO_WORDS: "leave them out with --corpus-options drop_empty=true",
    NO_SPEAKER: "name them; or, if each recording is a person of its own, "
    "--corpus-options speaker=recording",
    NO_FRAMES: "store cuts with their features or with their recording",
    DENSE: "correct text or times, or --corpus-options max_characters_per_second=N",
    SPEAKERS: "give each speaker to one role; as ids of speakers count over all of them",
    DOUBLE: "rename or remove one of the two",
    ORDER: "sort by LC_ALL=C sort, or run utils/fix_data_dir.sh",
    FORM: "mend the lines",
    NO_FILE: "write it; utt2spk has lines UTTERANCE SPEAKER, and guarantees are for its speakers",
    NO_LINE: "add the lines, or run utils/fix_data_dir.sh",
}
"""What to do about the problems of a kind."""


@dataclass(frozen=True, order=True)
class Problem:
    """A problem at ``place`` (file, ``file:line`` or utterance), maybe of a kind of ADVICE.

    >>> Problem("a.wav", "audio", "no such file").sort
    'missing audio'
    """

    place: str
    expected: str
    found: str
    kind: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found}"

    @property
    def sort(self) -> str:
        """Its kind; what says no kind and is about audio has that of :func:`audio_kind`."""
        return self.kind or (audio_kind(self.found) if self.expected[:5] == "audio" else OTHER)


class CorpusProblems(DataError):
    """All ``problems`` of a corpus.

    Args:
        listed: the file that holds them; None: no such file.
    """

    def __init__(
        self, problems: Sequence[Problem], place: str, way_out: str, listed: Path | None = None
    ) -> None:
        self.problems, self.general = tuple(problems), (place, way_out)
        if len(problems) == 1:
            first = problems[0]
            about = (first.place, first.expected, first.found)
            super().__init__(*about, ADVICE.get(first.sort, way_out))
            return
        where = f" all stand in {listed}" if listed is not None else ""
        found = "\n  ".join([f"{len(problems)}:{where}", *_lines(problems)])
        super().__init__(place, "a corpus without problems", found, way_out)

    def write(self, path: Path) -> CorpusProblems:
        """Write all problems to a file (``docs/formats.md``); the same error, which names it."""
        rows = [("kind", "place", "expected", "found")]
        rows += [(p.sort, p.place, p.expected, p.found) for p in self.problems]
        lines = ("\t".join(" ".join(value.split()) for value in row) for row in rows)
        write_text(path, "".join(f"{line}\n" for line in lines))
        return CorpusProblems(self.problems, *self.general, listed=path)


def _lines(problems: Sequence[Problem]) -> list[str]:
    """Of each kind its number, what to do, and examples."""
    most = len(problems) if len(problems) <= SHOWN else EXAMPLES
    lines = []
    for kind in dict.fromkeys(problem.sort for problem in problems):
        of_kind = [problem for problem in problems if problem.sort == kind]
        advice = f": {ADVICE[kind]}" if kind in ADVICE else ""
        lines.append(f"{len(of_kind)} x {kind}{advice}")
        lines += [f"  {problem}" for problem in of_kind[:most]]
        if len(of_kind) > most:
            lines.append(f"  ... and {len(of_kind) - most} more")
    return lines


def report(problems: Sequence[Problem], *, place: str | Path, way_out: str) -> None:
    """Raise one error for all ``problems``, if any.

    Raises:
        CorpusProblems: one problem as it is; several counted by kind, each with its way out.

    >>> report([Problem("text:3", "words", "nothing")], place="corpus", way_out="mend it")
    Traceback (most recent call last):
    privasr_k2.data.problems.CorpusProblems: text:3: expected words, found nothing
      way out: mend it
    """
    if problems:
        raise CorpusProblems(problems, str(place), way_out)


def audio_kind(found: str) -> str:
    """The kind of a problem of an audio file, by :class:`privasr_k2.data.audio.AudioHeader`."""
    signs = {
        "no such file": MISSING_AUDIO,
        "truncated": TRUNCATED,
        "samples are missing": TRUNCATED,
        "channel": CHANNELS,
        "are wanted": TIMES,
    }
    return next((kind for sign, kind in signs.items() if sign in found), UNREADABLE)
