r"""Make a language folder: tokens, words and how they are spelled.

    privasr verb prepare_lang --in-manifests data/manifests --out-dir data/lang_phone \
        --config conf/common.yaml#lang --set units=phone

The vocabulary is the words of the training text, of --in-further-text and of the name lists, and
the most frequent ones of lm_text.txt.gz or --raw-lm-text. train_words=false leaves out those of the
training text, corpus_words=false those of lm_text.txt.gz, too. Without --in-manifests there is no
training text: give --raw-lm-text and --set train_words=false. Phones come from the corpus's own
lexicon.txt, then CMUdict, then espeak-ng. In another language than English (corpus.json says which)
they come from a lexicon, or with g2p=espeak:LANGUAGE from espeak-ng alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.data.manifests import load_cuts, roles
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines, read_yaml
from privasr_k2.graph.build_lang import LangConfig, build_lang
from privasr_k2.graph.lang import read_tokens
from privasr_k2.scoring.corpus_info import CORPUS_FILE, read_corpus_info
from privasr_k2.text.languages import ENGLISH
from privasr_k2.text.name_lists import read_name_lists, spread
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tagged_files import read_sentences, read_tagged

_MADE_UP_PERCENT = 5.0
log = logging.getLogger(__name__)


def main() -> None:
    """Parse, build, write."""
    args = cli.arguments(
        __doc__,
        in_manifests="[DIR]|--in-public-manifests cuts_<role>.jsonl.gz, maybe lexicon.txt",
        in_further_text="[FILE...]|--in-public-further-text tagged or plain text whose words join"
        " the vocabulary",
        raw_lm_text="[FILE]|--raw-public-lm-text a sentence a line, in place of lm_text.txt.gz",
        in_public_lists="[DIR]|--raw-public-lists name lists, whose words join the vocabulary",
        in_tokens="[FILE]|--raw-tokens tokens.txt of another language folder or model",
        in_bpe_model="[FILE]|--raw-bpe-model|--raw-public-bpe-model its SentencePiece model or"
        " tokenizer.json",
        out_dir="PATH the language folder",
    )
    config = cli.load(LangConfig, args)
    manifests, lexicon, lm_text, texts = args.in_manifests, None, args.raw_lm_text, {}
    if manifests is not None:
        lexicon, lm_text = manifests / "lexicon.txt", lm_text or manifests / "lm_text.txt.gz"
        texts = {
            role: [cut.supervisions[0].text for cut in load_cuts(manifests, role, lazy=True)]
            for role in roles(manifests)
            if role != "pool"  # its texts, where there are any, are not to be known
        }
    elif lm_text is None and not args.in_further_text and args.in_public_lists is None:
        expected = "--in-manifests, --raw-lm-text, --in-further-text or --in-public-lists"
        raise ConfigError("the command line", expected, "none of them", "give one")
    has_lm_text = args.raw_lm_text or (lm_text is not None and lm_text.exists())
    report = build_lang(
        args.out_dir,
        config,
        texts=texts,
        lm_text=(line for _, line in read_lines(lm_text)) if has_lm_text else (),
        further=_further(args.in_further_text, args.in_public_lists),
        corpus_lexicon=lexicon if lexicon is not None and lexicon.exists() else None,
        model_tokens=read_tokens(args.in_tokens) if args.in_tokens is not None else None,
        model_pieces=args.in_bpe_model,
        language=_language(manifests),
    )
    for role, counted in report.items():
        oov, words = counted["oov_words"], counted["words"]
        percent = 100 * oov / max(words, 1)
        log.info("%s: %d of %d words (%.2f %%) out of vocabulary", role, oov, words, percent)
        if digits := counted["digit_words"]:
            text = "%s: %d of %d words are figures that no lexicon has: better written as said"
            log.warning(f"{text} (oov.json)", role, digits, words)
    about = read_yaml(args.out_dir / "lang.yaml")
    if (share := about["made_up_percent"]) > _MADE_UP_PERCENT:
        text = "%.1f %% of %d words have pronunciations that no lexicon has, by %s: a lexicon "
        log.warning(f"{text}(--lexicon) serves better", share, about["num_words"], about["g2p"])


def _language(manifests: Path | None) -> str:
    """That of the corpus; English where nothing says another."""
    there = manifests is not None and (manifests / CORPUS_FILE).is_file()
    return read_corpus_info(manifests if there else None).language or ENGLISH


def _further(files: Iterable[Path], lists: Path | None) -> Iterator[str]:
    """Sentences and names, normalized."""
    for path in files:
        tagged = ".jsonl" in path.suffixes
        for text in read_tagged([path], nested=True) if tagged else read_sentences(path, _words):
            yield " ".join(text.words)
    if lists is not None:
        yield from map(normalize_english, spread(read_name_lists(lists, normalize_english)))


def _words(tokens: Sequence[str]) -> list[str]:
    return normalize_english(" ".join(tokens)).split()


if __name__ == "__main__":
    cli.run(main)
