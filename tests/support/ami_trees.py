"""AMI in its official layout, made of noise: four meetings, of train twice, dev and test."""

from __future__ import annotations

from pathlib import Path

from tests.support import trees

NITE = 'xmlns:nite="http://nite.sourceforge.net/"'
MEETINGS = {"ES2002a": "FEE005", "ES2003a": "MEO015", "ES2011a": "FEE041", "ES2004a": "MEO069"}


def headsets(root: Path) -> Path:
    """Two people, of whom the second one speaks."""
    for meeting in MEETINGS:
        for number, seconds in enumerate((2.1, 2.0)):
            name = f"{meeting}/audio/{meeting}.Headset-{number}.wav"
            trees.noise(root / name, seconds, file_format="WAV")
    return root


def annotations(root: Path) -> Path:
    trees.lines(
        root / "corpusResources" / "meetings.xml",
        f"<meetings {NITE}>",
        *(
            f'<meeting observation="{m}"><speaker nxt_agent="B" channel="1"'
            f' global_name="{s}"/></meeting>'
            for m, s in MEETINGS.items()
        ),
        "</meetings>",
    )
    trees.lines(
        root / "ontologies" / "ne-types.xml",
        f'<ne-type nite:id="ne_0" {NITE}><ne-type nite:id="ne_1" name="Person"/></ne-type>',
    )
    for meeting in MEETINGS:
        words = f"{meeting}.B.words.xml"
        trees.lines(
            root / "words" / words,
            f'<nite:root {NITE}><vocalsound nite:id="v0"/><w nite:id="w0" {at(0.5, 0.75)}>Hi</w>',
            f'<w nite:id="w1" punc="true" {at(0.75, 0.75)}>,</w>',
            f'<w nite:id="w2" {at(0.8, 1.25)}>Mary-Ann</w><disfmarker nite:id="d0"/>',
            f'<w nite:id="w3" {at(1.25, 1.625)}>O\'Brien</w>',
            f'<w nite:id="w4" punc="true" {at(1.625, 1.625)}>.</w>',
            '<vocalsound nite:id="v1"/></nite:root>',
        )
        trees.lines(
            root / "segments" / f"{meeting}.B.segments.xml",
            f'<nite:root {NITE}><segment nite:id="s0" transcriber_start="0.5"'
            ' transcriber_end="1.75">',
            f'<nite:child href="{words}#id(v0)..id(w4)"/></segment>',
            '<segment nite:id="s1" transcriber_start="1.75" transcriber_end="2.0">',
            f'<nite:child href="{words}#id(v1)"/></segment></nite:root>',
        )
        trees.lines(
            root / "namedEntities" / f"{meeting}.B.ne.xml",
            f'<nite:root {NITE}><named-entity nite:id="n0">',
            '<nite:pointer role="type" href="ne-types.xml#id(ne_1)"/>',
            f'<nite:child href="{words}#id(w2)..id(w3)"/></named-entity></nite:root>',
        )
    return root


def at(start: float, end: float) -> str:
    """The times of a word."""
    return f'starttime="{start}" endtime="{end}"'
