r"""Collect public lists: names of public tagged text (per.txt org.txt loc.txt misc.txt), grammars.

    privasr verb make_name_lists --in-tagged data/public/wikigold.jsonl.gz \
        --out-lists data/public_lists --config conf/classlm.yaml#name_lists

The text must be public: a list from private text is a release. Names are normalized and in
alphabetical order, so that the lists hold no counts.

    privasr verb make_name_lists --out-lists data/grammars --config conf/classlm.yaml#name_lists \
        --set grammars=[letters,number,date]

grammars: the phrases of small grammars that are written by hand.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, Count, one_of
from privasr_k2.corpora.spoken_grammars import GRAMMARS
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import atomic_path, write_text
from privasr_k2.text.entities import CLASSES
from privasr_k2.text.name_lists import choose_names, date_words, names_of
from privasr_k2.text.tagged_files import needs_entities, read_tagged

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NameListConfig(Checked):
    """Limits on the names taken; defaults in ``conf/classlm.yaml#name_lists``.

    Args:
        at_least: how often a name must stand in the text.
        most_words: longer names are left out.
        dates: whether words of dates and times are added to ``MISC``.
        grammars: of :data:`privasr_k2.corpora.spoken_grammars.GRAMMARS`, a list each.
    """

    at_least: Count
    most_words: Count
    dates: bool
    grammars: list[Annotated[str, one_of(*GRAMMARS)]]


def main() -> None:
    """Parse, collect, write."""
    args = cli.arguments(
        __doc__,
        in_tagged="[FILE...] public text, in four classes",
        out_lists="DIR a file for each class",
    )
    config = cli.load(NameListConfig, args)
    if not args.in_tagged and not config.grammars:
        expected = "--in-tagged or grammars"
        raise ConfigError("the command line", expected, "neither", "give public text")
    texts = read_tagged(args.in_tagged) if args.in_tagged else []
    if texts:
        needs_entities(texts, "--in-tagged")
    counts = names_of(texts)
    with atomic_path(args.out_lists) as folder:
        folder.mkdir()
        for name in config.grammars:
            phrases = GRAMMARS[name]()
            write_text(folder / f"{name}.txt", "".join(f"{phrase}\n" for phrase in phrases))
            log.info("%s: %d phrases", name.upper(), len(phrases))
        for label in sorted({*CLASSES, *counts} if args.in_tagged else ()):
            names = choose_names(
                counts.get(label, {}), at_least=config.at_least, most_words=config.most_words
            )
            if label == "MISC" and config.dates:
                names = sorted({*names, *date_words()})
            if names:
                write_text(folder / f"{label.lower()}.txt", "".join(f"{name}\n" for name in names))
            log.info("%s: %d names", label, len(names))


if __name__ == "__main__":
    cli.run(main)
