"""Reader of AMI's manual annotations, standoff files of the NITE XML toolkit.

``segments/`` and ``namedEntities/`` (typed by ``ontologies/ne-types.xml``) name runs of words of
``words/``; ``corpusResources/meetings.xml`` gives each agent's speaker and headset.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.corpora.utterances import Utterance
from privasr_k2.errors import DataError

_ID = "{http://nite.sourceforge.net/}id"
_CHILD = "{http://nite.sourceforge.net/}child"
_POINTER = "{http://nite.sourceforge.net/}pointer"
_WAY_OUT = "unpack the annotations again"
_HREF = re.compile(r"#id\(([^)]*)\)(?:\.\.id\(([^)]*)\))?")

_Run = tuple[int, int, str]
"""First node of a channel, the one after its last, and a label."""
Key = tuple[str, int]
"""Meeting and headset."""
Timed = tuple[float, float, str]
"""Start and end in seconds, and a label."""


@dataclass(frozen=True)
class _Agent:
    speaker: str
    headset: int


def read_annotations(
    raw_dir: Path, normalize: Callable[[str], str], part_of: Callable[[str], str]
) -> Iterator[Utterance]:
    """One utterance for each segment with a word, without its audio.

    Args:
        normalize: a segment without words after it is left out.
        part_of: meeting -> part.

    ``custom["entities"]`` counts tokens of the text, in which marks are separate tokens.

    Raises:
        DataError: a file that is not XML, or has an unresolved reference.
    """
    agents = _agents(raw_dir / "corpusResources" / "meetings.xml")
    types = _entity_types(raw_dir / "ontologies" / "ne-types.xml")
    for path in sorted((raw_dir / "segments").glob("*.segments.xml")):
        meeting, agent = path.name.split(".")[:2]
        if (meeting, agent) not in agents:
            expected = f"agent {agent} of {meeting} in meetings.xml"
            raise DataError(path, expected, "none", "complete the annotations")
        who = agents[meeting, agent]
        words = _Words(raw_dir / "words" / f"{meeting}.{agent}.words.xml")
        entities = _entities(raw_dir / "namedEntities" / f"{meeting}.{agent}.ne.xml", words, types)
        for number, segment in enumerate(_parse(path).iter("segment")):
            first, last = words.span(segment, path)
            text, spans = words.text(first, last, entities)
            if normalize(text):
                yield Utterance(
                    id=f"{meeting}-{agent}-{number:04d}",
                    text=text,
                    speaker=who.speaker,
                    part=part_of(meeting),
                    custom={"entities": spans} if entities is not None else {},
                    place=f"{path}: {segment.get(_ID)}",
                )


def entity_times(raw_dir: Path) -> dict[Key, list[Timed]]:
    """The named entities of everybody whose words were annotated, with their times."""
    agents = _agents(raw_dir / "corpusResources" / "meetings.xml")
    types = _entity_types(raw_dir / "ontologies" / "ne-types.xml")
    times = {}
    for (meeting, agent), who in agents.items():
        path = raw_dir / "namedEntities" / f"{meeting}.{agent}.ne.xml"
        if path.is_file():
            words = _Words(raw_dir / "words" / f"{meeting}.{agent}.words.xml")
            runs = _entities(path, words, types) or []
            timed = ((words.times(first, last), label) for first, last, label in runs)
            times[meeting, who.headset] = [(*span, label) for span, label in timed if span]
    return times


def _parse(path: Path) -> xml.Element:
    try:
        return xml.parse(path).getroot()
    except FileNotFoundError as error:
        raise DataError(path, "a file of the annotations", "nothing", _WAY_OUT) from error
    except xml.ParseError as error:
        raise DataError(f"{path}:{error.position[0]}", "XML", str(error), _WAY_OUT) from error


def _agents(path: Path) -> dict[tuple[str, str], _Agent]:
    agents = {}
    for meeting in _parse(path).iter("meeting"):
        for speaker in meeting.iter("speaker"):
            agent = _Agent(speaker.get("global_name", ""), int(speaker.get("channel", "0")))
            agents[meeting.get("observation", ""), speaker.get("nxt_agent", "")] = agent
    return agents


def _entity_types(path: Path) -> dict[str, str]:
    nodes = _parse(path).iter("ne-type") if path.is_file() else ()
    return {node.get(_ID, ""): node.get("name", "").upper() for node in nodes}


class _Words:
    """The words of one person in one meeting, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Noises, gaps and broken words stand between the words as elements of their own.
        self._nodes = list(_parse(path))
        self._index = {node.get(_ID, ""): number for number, node in enumerate(self._nodes)}

    def span(self, node: xml.Element, place: Path) -> tuple[int, int]:
        """First and last (exclusive) of the elements that a node's children name."""
        firsts, lasts = [], []
        for child in node.iter(_CHILD):
            match = _HREF.search(child.get("href", ""))
            names = (match[1], match[2] or match[1]) if match else ("", "")
            if names[0] not in self._index or names[1] not in self._index:
                found = f"{child.get('href')!r} in {node.get(_ID)}"
                raise DataError(place, f"words of {self.path.name}", found, _WAY_OUT)
            firsts.append(self._index[names[0]])
            lasts.append(self._index[names[1]] + 1)
        return (min(firsts), max(lasts)) if firsts else (0, 0)

    def times(self, first: int, last: int) -> tuple[float, float] | None:
        """Start of the first and end of the last word of a run that have times."""
        words = [n for n in self._nodes[first:last] if n.tag == "w" and n.get("starttime")]
        if not words:
            return None
        return float(words[0].get("starttime", "")), float(words[-1].get("endtime", "inf"))

    def text(self, first: int, last: int, entities: list[_Run] | None) -> tuple[str, list[list]]:
        """Words and marks of a run, and its entities in tokens of that text."""
        starts, tokens = {}, []
        for number in range(first, last):
            node = self._nodes[number]
            starts[number] = len(tokens)
            if node.tag == "w" and node.text:
                tokens += node.text.split()
        starts[last] = len(tokens)
        inside = ((a, b, label) for a, b, label in entities or () if first <= a and b <= last)
        spans = [[starts[a], starts[b], label] for a, b, label in inside]
        return " ".join(tokens), [span for span in spans if span[0] != span[1]]


def _entities(path: Path, words: _Words, types: dict[str, str]) -> list[_Run] | None:
    """Runs of words with their types; ``None`` where a meeting was not annotated."""
    if not path.is_file():
        return None
    runs = []
    for node in _parse(path).iter("named-entity"):
        first, last = words.span(node, path)
        pointer = node.find(_POINTER)
        match = _HREF.search(pointer.get("href", "")) if pointer is not None else None
        if match is not None and first < last:
            runs.append((first, last, types.get(match[1], match[1])))
    return runs
