r"""Put other names into some classes of a class LM's graph, in seconds: a user's contacts.

    privasr verb replace_names --in-graph data/graph_class --in-lang data/lang_phone \
        --in-names contacts/ --out-dir data/graph_user1 --config conf/classlm.yaml#replace_names

The names of each class come from a list (per.txt, org.txt, ...; a name a line, maybe with a tab and
its probability), or from the automaton that train_ngram wrote (CLASS.txt, with --in-sub-lms). Other
classes and the root model stay as they are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, ShareBelowOne, one_of
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import file_hash
from privasr_k2.graph.class_pieces import replace_names
from privasr_k2.graph.hlg import save_graph
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.names import check_spoken, list_places, read_lists
from privasr_k2.lm.sub_lm import KINDS, make_sub_lm, read_sub_lm

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReplaceNamesOptions(Checked):
    """Order of the names of a list; defaults in ``conf/classlm.yaml#replace_names``.

    Args:
        sub_lm: ``tree``, ``bigram`` or ``unigram``.
        unknown_mass: P(a name is none of a list), in [0, 1); heard where the graph has
            ``unknown_names``.
        with_tlg: whether to make the graph for Kaldi's decoders, too.
    """

    sub_lm: Annotated[str, one_of(*KINDS)]
    unknown_mass: ShareBelowOne
    with_tlg: bool


def main() -> None:
    """Parse, replace, write."""
    args = cli.arguments(
        __doc__,
        in_graph="PATH the graph folder of a class LM",
        in_lang="PATH the language folder it was compiled with",
        in_names="[DIR] lists of names: per.txt, org.txt, ...",
        in_sub_lms="[DIR] automata of names: PER.txt, ORG.txt, ...",
        out_dir="PATH the new graph folder",
    )
    config = cli.load(ReplaceNamesOptions, args)
    if (args.in_names is None) == (args.in_sub_lms is None):
        place = "replace_names"
        raise ConfigError(place, "--in-names or --in-sub-lms", "both or none", "give one of them")
    lang = load_lang(args.in_lang)
    if args.in_names is not None:
        lists = read_lists(args.in_names, lang.normalize)
        places = list_places(args.in_names, lang.normalize)
        names, sources = {}, {}
        for kind, given in lists.items():
            check_spoken(kind, given, lang.word_ids, places[kind])
            mass, place = config.unknown_mass, f"class {kind}"
            names[kind] = make_sub_lm(given, config.sub_lm, unknown_mass=mass, place=place)
    else:
        sources = {path.stem: path for path in sorted(args.in_sub_lms.glob("*.txt"))}
        names = {kind: read_sub_lm(path) for kind, path in sources.items()}
    if not names:
        expected = "automata of names: PER.txt ORG.txt ..."
        raise DataError(args.in_sub_lms, expected, "none", "name their folder")
    given = sorted((args.in_names or args.in_sub_lms).glob("*.txt"))
    more = {"with_tlg": config.with_tlg, "sources": sources}
    graphs, info = replace_names(args.in_graph, lang, names, **more)
    info["sha256"] |= {f"{path.stem.upper()}.txt": file_hash(path) for path in given}
    save_graph(graphs, lang, info, args.out_dir)
    seconds = sum(info["seconds"].values())
    log.info("%s: %.1f s without reading and writing", " ".join(names), seconds)


if __name__ == "__main__":
    cli.run(main)
