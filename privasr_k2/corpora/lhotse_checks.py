"""Checks of lhotse's recordings and supervisions before they become cuts.

lhotse leaves out supervisions without a recording, and says nothing of audio until it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.corpora.utterances import OVERSHOOT_SECONDS
from privasr_k2.data.audio import read_headers
from privasr_k2.data.problems import NO_FRAMES, NO_SPEAKER, Problem, report

if TYPE_CHECKING:
    from lhotse import Recording, SupervisionSegment
    from lhotse.cut import Cut

_SHORT_SECONDS = 0.025
"""What audio may lack of its manifest, as in lhotse."""


@dataclass
class Checks:
    """What is wrong with a corpus, collected while it is read.

    Attributes:
        commands: whether recordings that are made by shell commands are accepted.
        speaker: of a supervision without one: ``given`` is a problem; ``recording`` takes each
            recording for a person of its own.
        files: the audio that recordings name.
    """

    commands: bool = False
    speaker: str = "given"
    problems: list[Problem] = field(default_factory=list)
    files: dict[str, Recording] = field(default_factory=dict)

    def problem(self, place: str, expected: str, found: str, kind: str = "") -> None:
        """Add a problem."""
        self.problems.append(Problem(place, expected, found, kind))

    def cut(self, cut: Cut, place: str) -> None:
        """A cut's recording and supervisions, which get a speaker where that is asked for."""
        if cut.has_recording:
            self.recording(cut.recording, place)
        for said in cut.supervisions:
            if said.speaker is None and self.speaker == "recording":
                said.speaker = said.recording_id
            if said.speaker is None:
                self.problem(place, f"a speaker of {said.id}", "none", NO_SPEAKER)

    def recording(self, recording: Recording, place: str) -> None:
        """One recording, whose audio :meth:`report` looks at."""
        for source in recording.sources:
            if source.type == "file":
                self.files.setdefault(str(source.source), recording)
            elif source.type == "command" and not self.commands:
                expected = f"{recording.id} as a file (a command is run only with allow_pipes=true)"
                self.problem(place, expected, repr(source.source))
            elif source.type != "command":
                self.problem(place, f"{recording.id} as a file", f"type {source.type}")

    def paired(
        self,
        recordings: Sequence[Recording],
        supervisions: Sequence[tuple[str, SupervisionSegment]],
    ) -> Iterable[tuple[Cut, str]]:
        """A cut of the whole recording for each supervision that has one, with its place.

        Args:
            supervisions: with ``file:line``, or another place for messages.
        """
        known: dict[str, Recording] = {}
        for recording in recordings:
            if recording.id in known:
                self.problem(f"recording {recording.id}", "an id that stands once", "it twice")
            known[recording.id] = recording
        for place, said in supervisions:
            recording = known.get(said.recording_id)
            if recording is None:
                self.problem(place, f"a recording {said.recording_id!r} of {said.id}", "none")
                continue
            length = recording.duration
            if said.start < 0 or said.start >= length or said.end > length + OVERSHOOT_SECONDS:
                found = f"{length:.2f} s of audio, but {said.start:g} to {said.end:g} s are wanted"
                self.problem(place, f"audio for {said.id}", found)
                continue
            channels = {*([said.channel] if isinstance(said.channel, int) else said.channel)}
            if len(channels) != 1 or not channels <= {*recording.channel_ids}:
                found = f"channels {sorted(channels)} of {recording.channel_ids}"
                self.problem(place, f"one channel of audio for {said.id}", found)
                continue
            yield _whole(recording, said, channels.pop()), place

    def cuts(self, manifests: Mapping[str, Any], part: str) -> Iterator[Cut]:
        """The cuts of what a recipe of lhotse returns for a part, one for each supervision.

        Args:
            manifests: ``recordings`` and ``supervisions``, or ``cuts``.
        """
        recordings, supervisions = (
            manifests.get("recordings", ()),
            manifests.get("supervisions", ()),
        )
        placed = [(f"{part}: {said.id}", said) for said in supervisions]
        whole = [(cut, f"{part}: {cut.id}") for cut in manifests.get("cuts", ())]
        whole = whole or [*self.paired([*recordings], placed)]
        for cut, place in sorted(whole, key=lambda pair: pair[0].id.encode()):
            yield from self.trimmed(cut, part, place)

    def trimmed(self, cut: Cut, part: str, place: str) -> Iterator[Cut]:
        """A cut for each supervision, named by its id; ``part`` where it has none."""
        self.cut(cut, place)
        if not cut.has_features and not cut.has_recording:  # lhotse cannot even cut it
            self.problem(place, f"features or a recording of {cut.id}", "neither", NO_FRAMES)
            return
        for piece in cut.trim_to_supervisions(keep_overlapping=False):
            supervision = piece.supervisions[0]
            supervision.alignment = None  # no recipe reads it, and it is longer than all the rest
            custom = piece.custom or {}
            piece.custom = {**custom, "part": custom.get("part", part), "place": place}
            yield piece.with_id(supervision.id)

    def report(self, place: str | Path, num_jobs: int, way_out: str) -> None:
        """Look at the audio, then raise one error for all problems, if any.

        Raises:
            DataError: all problems.
        """
        for path, header in read_headers(map(Path, self.files), num_jobs).items():
            recording = self.files[str(path)]
            if header.problem is not None:
                self.problem(str(path), f"audio for {recording.id}", header.problem)
            elif not recording.transforms:
                rate, length = header.sampling_rate, header.num_samples
                missing = recording.num_samples - length
                if rate != recording.sampling_rate or missing > _SHORT_SECONDS * rate:
                    expected = f"{recording.num_samples} samples of {recording.sampling_rate} Hz"
                    self.problem(str(path), expected, f"{length} of {rate} Hz")
        report(self.problems, place=place, way_out=way_out)


def _whole(recording: Recording, said: SupervisionSegment, channel: int) -> Cut:
    """A cut of the whole recording with one supervision, which ends with it at the latest."""
    from lhotse import MonoCut
    from lhotse.utils import fastcopy

    duration = min(said.duration, recording.duration - said.start)
    said = fastcopy(said, duration=duration, channel=channel)
    whole = dict(recording=recording, supervisions=[said])
    return MonoCut(said.id, 0.0, recording.duration, channel, **whole)
