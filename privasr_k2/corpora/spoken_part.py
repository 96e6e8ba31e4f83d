"""Synthetic speech for a part of a corpus that has text only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora import voices
from privasr_k2.corpora.utterances import CHARACTERS_PER_SECOND, Utterance, make_cuts
from privasr_k2.randomness import derive_seed, stream
from privasr_k2.text.normalize import normalize_english

if TYPE_CHECKING:
    from lhotse.cut import Cut


@dataclass(frozen=True)
class SpokenPart:
    """How much of each role is spoken, and in which conditions.

    Attributes:
        corpus: its name, for the noises' seed.
        hours: role -> hours of speech, estimated from characters.
        conditions: ranges of noise and rooms.
        whole_speakers: speakers are drawn and say all of theirs; else utterances are drawn.
    """

    corpus: str
    hours: Mapping[str, float]
    conditions: voices.Ranges
    seed: int
    whole_speakers: bool = False

    def speak(
        self, by_role: Mapping[str, Sequence[Cut]], out_dir: Path, num_jobs: int
    ) -> dict[str, list[Cut]]:
        """A voice for each person, and audio for as many utterances as the hours allow."""
        people = sorted({cut.supervisions[0].speaker for cuts in by_role.values() for cut in cuts})
        voice_of = dict(zip(people, voices.draw_voices(len(people), self.seed)))
        spoken = {}
        for role, of_role in by_role.items():
            said = [cut.supervisions[0] for cut in self.chosen(of_role, role)]
            lines = [(s.id, normalize_english(s.text), voice_of[s.speaker]) for s in said]
            jobs = voices.plan(lines, self.conditions, derive_seed(self.seed, self.corpus, role))
            files = voices.speak(jobs, out_dir / role, num_jobs)
            heard = (
                Utterance(
                    s.id, s.text, s.speaker, role, f.path, custom=s.custom or {}, synthetic=True
                )
                for s, f in zip(said, files)
            )
            spoken[role] = [*make_cuts(heard, num_jobs)]
        return spoken

    def chosen(self, cuts: Sequence[Cut], role: str) -> list[Cut]:
        """A random sample of about the role's hours, in the given order."""
        left = self.hours[role] * 3600 * CHARACTERS_PER_SECOND
        units: dict[str, list[int]] = {}
        for index, cut in enumerate(cuts):
            unit = cut.supervisions[0].speaker if self.whole_speakers else str(index)
            units.setdefault(unit, []).append(index)
        groups, taken = [*units.values()], []
        for number in stream(self.seed, "hours", role).permutation(len(groups)):
            if left <= 0:
                break
            taken += groups[number]
            left -= sum(len(cuts[index].supervisions[0].text) for index in groups[number])
        return [cuts[index] for index in sorted(taken)]
