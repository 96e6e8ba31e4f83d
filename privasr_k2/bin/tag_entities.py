r"""Find the named entities of a corpus or a text: PER, ORG, LOC and MISC.

    privasr verb tag_entities --in-text data/gold/dev.jsonl.gz \
        --out-text data/tagged/dev.jsonl.gz --config conf/classlm.yaml#tag_entities \
        --set normalize=spoken
    privasr verb tag_entities --in-manifests data/manifests --out-manifests data/tagged \
        --config conf/classlm.yaml#tag_entities
    privasr verb tag_entities --raw-conll wikigold.conll.txt.gz --out-text data/public.jsonl.gz \
        --config conf/classlm.yaml#tag_entities --set taggers=[gold]

--in-text reads tagged text (*.jsonl, *.jsonl.gz, also cuts), or plain text with a sentence a line.
--raw-conll reads CoNLL files, or all *.conll and *.conll.txt below a folder, gzipped or not.
taggers=[gold] maps their labels to four classes. Taggers read the written form where it is known;
entities refer to normalized words. --out-manifests gets the cuts of all roles with new entities,
and corpus.json. Nothing is released: the result is as private as the text.
"""

from __future__ import annotations

import argparse
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.corpora.base import load_corpus
from privasr_k2.corpora.spoken_numbers import spoken_words
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import atomic_path, read_json, read_jsonl, write_json, write_jsonl
from privasr_k2.text.entities import TaggedText, Tagger
from privasr_k2.text.gazetteer import Gazetteer
from privasr_k2.text.name_lists import read_name_lists, spread
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tag_gold import conll_files, read_conll
from privasr_k2.text.tag_gold import tagged as tagged_texts
from privasr_k2.text.tagged_files import read_sentences, read_tagged, with_entities, write_tagged
from privasr_k2.text.tagging import TagConfig, tag_texts
from privasr_k2.text.truecase import Truecaser

log = logging.getLogger(__name__)
Normalize = Callable[[Sequence[str]], Sequence[str]]


def main() -> None:
    """Parse, tag, write."""
    args = cli.arguments(
        __doc__,
        in_text="[FILE...] tagged or plain text",
        raw_conll="[PATH...] files, folders: a token a line",
        out_text="[FILE] *.jsonl.gz, tagged",
        in_manifests="[DIR] cuts_<role>.jsonl.gz and corpus.json",
        out_manifests="[DIR] a folder beside it, with entities",
        in_public_lists="[DIR] name lists, for the gazetteer",
        in_public_cased="[FILE...] cased public text, from which capitals are learned",
        in_definition="[FILE] the corpus, for how it normalizes",
    )
    config = cli.load(TagConfig, args)
    texts, manifests = bool(args.in_text or args.raw_conll), bool(args.in_manifests)
    if texts != bool(args.out_text) or manifests != bool(args.out_manifests):
        raise ConfigError("the command line", "an --out- for each --in-", "one alone", "give both")
    if not (args.out_text or args.in_manifests):
        expected = "--in-text, --raw-conll or --in-manifests"
        raise ConfigError("the command line", expected, "none of them", "name one")
    normalize = _normalize(args.in_definition, config)
    public = [line.cased.split() for line in _read(args.in_public_cased, normalize)]
    lists = read_name_lists(args.in_public_lists, normalize_english) if args.in_public_lists else {}
    unknown = config.capital_unknown
    truecaser = Truecaser(public, spread(lists), capital_unknown=unknown) if public else None
    taggers = _taggers(args, config, lists, truecaser)

    def tag(texts: Sequence[TaggedText]) -> list[TaggedText]:
        return tag_texts(texts, taggers, config, normalize, truecaser)

    if args.out_text:
        files = sorted(conll_files(args.raw_conll).items())
        kept = (path for name, path in files if name not in config.leave_out)
        annotated = [gold for path in kept for gold in read_conll(path)]
        tagged = tag([*_read(args.in_text, normalize), *tagged_texts(annotated, normalize)])
        write_tagged(args.out_text, tagged)
        _say(args.out_text, tagged)
    if args.in_manifests:
        _tag_manifests(args.in_manifests, args.out_manifests, tag, " and ".join(config.taggers))


def _normalize(definition: Path | None, config: TagConfig) -> Normalize:
    if definition is None and config.normalize == "spoken":
        return spoken_words
    change = normalize_english if definition is None else load_corpus(definition).normalize
    return lambda tokens: change(" ".join(tokens)).split()


def _read(paths: Iterable[Path], normalize: Normalize) -> list[TaggedText]:
    texts: list[TaggedText] = []
    for path in (file for given in paths for file in _files(given)):
        plain = ".jsonl" not in path.suffixes
        texts += read_sentences(path, normalize) if plain else read_tagged([path], nested=True)
    return texts


def _files(given: Path) -> list[Path]:
    return sorted(given.glob("*.jsonl*")) if given.is_dir() else [given]


def _taggers(
    args: argparse.Namespace, config: TagConfig, lists: dict, truecaser: Truecaser | None
) -> dict[str, Tagger | None]:
    taggers: dict[str, Tagger | None] = {}
    if "spacy" in config.taggers:
        from privasr_k2.text.tag_spacy import SpacyTagger

        taggers["spacy"] = SpacyTagger(config.spacy_models, args.num_jobs)
    if "presidio" in config.taggers:
        from privasr_k2.text.tag_presidio import PresidioTagger

        taggers["presidio"] = PresidioTagger(config.spacy_models)
    if "gazetteer" in config.taggers:
        if not lists:
            expected = "--in-public-lists for the gazetteer"
            raise ConfigError("taggers", expected, "none", "name the folder")
        names = {label: of_class.names for label, of_class in lists.items()}
        small = truecaser.small if truecaser else {}
        gazetteer = Gazetteer(names, ignore_case=config.ignore_case, small=small)
        text = "%d names are on the lists of several classes and count for the first"
        log.info(text, gazetteer.ambiguous)
        taggers["gazetteer"] = gazetteer
    return taggers


def _tag_manifests(
    manifests: Path, out: Path, tag: Callable[[Sequence[TaggedText]], list[TaggedText]], by: str
) -> None:
    if manifests.absolute().parent != out.absolute().parent:
        expected = f"a folder beside {manifests}"
        raise ConfigError("--out-manifests", expected, str(out), "paths of audio are relative")
    with atomic_path(out) as folder:
        folder.mkdir()
        for path in sorted(manifests.glob("cuts_*.jsonl.gz")):
            tagged = tag(read_tagged([path], nested=True))
            write_jsonl(folder / path.name, map(with_entities, read_jsonl(path), tagged))
            _say(path, tagged)
        for path in sorted(manifests.glob("l*.*")):  # lexicon.txt, lm_text.txt.gz
            shutil.copyfile(path, folder / path.name)
        about = read_json(manifests / "corpus.json")
        write_json(folder / "corpus.json", {**about, "entities": by})


def _say(path: Path, texts: Sequence[TaggedText]) -> None:
    counts = Counter(entity.label for text in texts for entity in text.entities or ())
    labels = ", ".join(f"{count} {label}" for label, count in sorted(counts.items()))
    log.info("%s: %d texts; %s", path, len(texts), labels or "no entity")


if __name__ == "__main__":
    cli.run(main)
