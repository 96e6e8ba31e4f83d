r"""Train an n-gram model: of words, of words and name classes, or to approximate another LM.

    privasr verb train_ngram --in-manifests data/manifests --in-lang data/lang_phone \
        --out-lm data/lm/phone.arpa.gz --config conf/common.yaml#lm_ngram --set order=3

--out-lm: a word n-gram model, pruned by entropy. Its text is that of a corpus (the cuts of the role
train, lm_text.txt.gz; --set text=), or that of the files of --in-text. Its vocabulary is closed:
that of the language folder. Other words count as <unk>. --raw-arpa checks and takes over an ARPA
file.

    privasr verb train_ngram --in-lm exp/lm_lstm --in-text data/sanitized/train.jsonl.gz \
        --in-lang data/lang_phone --out-lm exp/lstm_3gram.arpa.gz \
        --config conf/common.yaml#approximate

--in-lm: this model reads the text; --out-lm has the n-grams that the model expects after the text's
histories. It is a model of train_lm or an ARPA file; with --set estimate=average any model.

    privasr verb train_ngram --in-votes exp/wordvotes/votes_8 --in-lang data/lang_phone \
        --out-lm exp/wordvotes/voted.arpa.gz --config conf/wordvotes.yaml#voted_lm

--in-votes: the counts are numbers of speakers, as vote_words has released them.

    privasr verb train_ngram --in-text data/sanitized/train.jsonl.gz --in-public-lists data/lists \
        --in-lang data/lang_phone --out-class-lm exp/class_lm --config conf/common.yaml#class_lm

--out-class-lm: a root model of text with tags, and a sub-model of each class's names. The text is
JSON Lines with marked names (tag_entities), or plain text with tags such as <PER>. Names come from
the marks and from lists (per.txt, org.txt, ... in one folder; a name a line, maybe with a tab and
its probability).

--raw-words is words.txt of a Kaldi language folder in place of --in-lang.
"""

from __future__ import annotations

import argparse
import logging
import time

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.graph.kaldi_lang import lang_of_words
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.lm.arpa import write_arpa

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, estimate, write."""
    parser = cli.parser(
        __doc__,
        in_manifests="[PATH]|--in-public-manifests cuts of train and dev, maybe lm_text.txt.gz",
    )
    source = parser.add_mutually_exclusive_group()
    cli.add_flags(
        source, in_text="[FILE+]|--in-public-text *.jsonl(.gz) or plain, not the corpus's"
    )
    cli.add_flags(
        source, raw_arpa="[PATH]|--raw-public-arpa an ARPA file to take instead of estimating one"
    )
    cli.add_flags(source, in_votes="[DIR] released words and bigrams: of vote_words")
    cli.add_flags(
        parser,
        raw_lm_text="[FILE]|--raw-public-lm-text a sentence a line, in place of lm_text.txt.gz",
        in_lm="[LM] the model to approximate: of train_lm",
        in_public_lists="[DIR] for classes: per.txt, org.txt, ...",
        in_dev="[FILE]|--in-public-dev-text text whose perplexity is logged, in place of the cuts'",
    )
    vocabulary = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        vocabulary,
        in_lang="[PATH] the language folder, whose words are the vocabulary",
        raw_words="[FILE] Kaldi's words.txt in its place",
    )
    out = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        out,
        out_lm="[FILE] ARPA; gzipped if the name ends in .gz",
        out_class_lm="[DIR] a class LM's folder",
    )
    args = cli.parse(parser, device=True)
    of_text = args.out_class_lm or args.in_lm
    wrong = (
        (args.in_lm and args.out_class_lm)
        or (args.in_public_lists and not args.out_class_lm)
        or (of_text and (args.in_manifests or not args.in_text))
        or (args.in_votes and (args.in_manifests or not args.out_lm))
    )
    if wrong:
        wanted = (
            "--in-text without --in-manifests for --out-class-lm and for --in-lm; "
            "--in-public-lists for --out-class-lm; --in-lm for --out-lm; --in-votes for --out-lm"
            " without --in-manifests"
        )
        raise ConfigError("the command line", wanted, "something else", "see --help")
    lang = lang_of_words(args.raw_words) if args.raw_words else load_lang(args.in_lang)
    words = list(lang.word_ids)
    if args.out_class_lm:
        _classes(args, lang)
    elif args.in_lm:
        _approximate(args, words)
    elif args.in_votes:
        _of_votes(args, words)
    else:
        _estimate(args, words)


def _estimate(args: argparse.Namespace, words: list[str]) -> None:
    from privasr_k2.lm.train import NgramConfig, dev_text, import_arpa, train_ngram, training_text

    config, held_out = cli.load(NgramConfig, args), dev_text(args.in_manifests, args.in_dev)
    if args.raw_arpa is not None:
        model = import_arpa(args.raw_arpa, words, config, held_out=held_out)
    else:
        sentences = training_text(config, args.in_manifests, args.in_text, args.raw_lm_text)
        model = train_ngram(sentences, words, config, held_out=held_out)
    write_arpa(model, args.out_lm)


def _of_votes(args: argparse.Namespace, words: list[str]) -> None:
    from privasr_k2.federated.word_release import read_released
    from privasr_k2.lm.train import dev_text, log_figures
    from privasr_k2.lm.voted import VotedLmConfig, train_on_votes

    config, found = cli.load(VotedLmConfig, args), read_released(args.in_votes)
    model = train_on_votes(found.words, found.bigrams, words, config)
    log_figures("of votes", model, dev_text(None, args.in_dev))
    write_arpa(model, args.out_lm)


def _classes(args: argparse.Namespace, lang: Lang) -> None:
    from privasr_k2.lm.class_files import ClassLmConfig, save_class_lm, train_class_lm
    from privasr_k2.lm.names import list_places, read_lists, read_text, read_texts
    from privasr_k2.text.tags import is_tag

    config = cli.load(ClassLmConfig, args)
    texts = read_texts(args.in_text, config.classes)
    dev = read_text(args.in_dev, config.classes) if args.in_dev is not None else []
    lists, places = {}, {}
    if args.in_public_lists is not None:
        lists = read_lists(args.in_public_lists, lang.normalize)
        places = list_places(args.in_public_lists, lang.normalize)
    # icefall's <SPOKEN_NOISE> is a word that looks like a class.
    words = [word for word in lang.word_ids if not is_tag(word)]
    save_class_lm(
        args.out_class_lm, train_class_lm(texts, words, lists, config, places=places, dev=dev)
    )


def _approximate(args: argparse.Namespace, words: list[str]) -> None:
    from privasr_k2.lm.approximate import ApproximationConfig, approximate, expected, probs_of_text
    from privasr_k2.lm.distributions import open_distributions
    from privasr_k2.lm.mixtures import open_lm
    from privasr_k2.lm.names import read_words
    from privasr_k2.lm.pruning import prune_to
    from privasr_k2.lm.train import log_figures

    config, sentences = cli.load(ApproximationConfig, args), read_words(args.in_text)
    dev = read_words([args.in_dev]) if args.in_dev is not None else []
    started = time.perf_counter()
    if config.estimate == "expected":
        lm = open_distributions(args.in_lm, args.device)
        model = expected(lm, sentences, words, config, dev)
    else:
        probs = probs_of_text(open_lm(args.in_lm, args.device), sentences, config.block_words)
        model = approximate(sentences, probs, words, order=config.order, unigrams=config.unigrams)
    log.info(
        "%s of %d sentences in %.1f s",
        config.estimate,
        len(sentences),
        time.perf_counter() - started,
    )
    log_figures("approximated", model, dev)
    if 0 < config.max_ngrams < len(model.keys):
        model, threshold = prune_to(model, config.max_ngrams)
        log_figures(f"pruned at threshold {threshold:.2e}", model, dev)
    write_arpa(model, args.out_lm)


if __name__ == "__main__":
    cli.run(main)
