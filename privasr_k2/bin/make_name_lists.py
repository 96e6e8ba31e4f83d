r"""Collect public name lists from public tagged text: per.txt org.txt loc.txt misc.txt.

    privasr verb make_name_lists --in-tagged data/public/wikigold.jsonl.gz \
        --out-lists data/public_lists --config conf/classlm.yaml#name_lists

The text must be public: a list from private text is a release. Names are normalized and in
alphabetical order, so that the lists hold no counts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, Count
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
    """

    at_least: Count
    most_words: Count
    dates: bool


def main() -> None:
    """Parse, collect, write."""
    args = cli.arguments(
        __doc__,
        in_tagged="FILE... public text, in four classes",
        out_lists="DIR a file for each class",
    )
    config = cli.load(NameListConfig, args)
    texts = read_tagged(args.in_tagged)
    needs_entities(texts, "--in-tagged")
    counts = names_of(texts)
    with atomic_path(args.out_lists) as folder:
        folder.mkdir()
        for label in sorted({*CLASSES, *counts}):
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
