r"""Release the words that many speakers say: noisy votes for words of a public list.

    privasr verb vote_words --in-private-manifests data/sides_fbank/private \
        --in-lang data/lang_phone_public --out-dir exp/wordvotes/votes_8 \
        --out-privacy exp/wordvotes/votes_8_privacy.json --ledger privacy/ledger.json \
        --config conf/wordvotes.yaml#vote_words --set data=an4/train epsilon=8

Each speaker of the cuts of train votes for at most max_words candidates that they said; with
--in-private-text each user of tagged text. Candidates are the words of --in-lang, --in-public-words
and --in-public-lists (per.txt, org.txt, ...), which must be public. Every candidate's count
gets discrete Gaussian noise; words whose noisy counts exceed threshold standard deviations are
written to words.tsv. With max_bigrams above 0 speakers vote for bigrams of these words as well.
Noisy counts are written once; a run that was killed after that spends no more.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, spend, add noise, write."""
    args = cli.arguments(
        __doc__,
        in_private_manifests="[DIR]|--in-private-feats cuts_train.jsonl.gz, speakers and texts",
        in_private_text="[FILE...] tagged text of users, in place of cuts",
        in_lang="[DIR]|--in-public-lang a language folder, whose words are candidates",
        in_public_words="[FILE...] text whose words are candidates: a list, or sentences",
        in_public_lists="[DIR] name lists, whose words are candidates",
        out_dir="DIR words, bigrams and their noisy counts",
        out_privacy="FILE privacy.json",
        ledger="FILE of the private data",
        max_epsilon="[X] refuse to spend beyond it",
    )

    from privasr_k2.errors import ConfigError
    from privasr_k2.federated.word_release import write_release
    from privasr_k2.federated.word_votes import (
        WordVotes,
        WordVotesConfig,
        speakers_texts,
        users_texts,
    )
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.arpa import BOS, EOS, UNK
    from privasr_k2.lm.names import read_words
    from privasr_k2.privacy.people import People
    from privasr_k2.privacy.public_inputs import begin_release
    from privasr_k2.privacy.release import fingerprint_of
    from privasr_k2.privacy.spending import guarantees
    from privasr_k2.text.name_lists import read_name_lists, words_of
    from privasr_k2.text.normalize import normalize_english

    config = cli.load(WordVotesConfig, args)
    if not config.data:
        way_out = "name it: --set data=an4/train"
        raise ConfigError("data", "a corpus and its part", "nothing", way_out)
    private = [args.in_private_manifests] if args.in_private_manifests else args.in_private_text
    if not private or (args.in_private_manifests and args.in_private_text):
        expected = "--in-private-manifests or --in-private-text"
        found = "both" if private else "none"
        raise ConfigError("the command line", expected, found, "give one of them")
    words = list(load_lang(args.in_lang).word_ids) if args.in_lang is not None else []
    listed = [word for sentence in read_words(args.in_public_words) for word in sentence]
    if args.in_public_lists is not None:
        lists = read_name_lists(args.in_public_lists, normalize_english)
        listed += [word for of in words_of(lists, normalize_english).values() for word in of]
    candidates = list(dict.fromkeys([*words, *listed]))
    if not candidates:
        expected = "--in-lang, --in-public-words or --in-public-lists"
        way_out = "give public words"
        raise ConfigError("the command line", expected, "no candidate", way_out)
    if marks := {BOS, EOS, UNK}.intersection(candidates):
        expected, way_out = "words as candidates", "take it out of the list"
        raise ConfigError("--in-public-words", expected, min(marks), way_out)
    mechanism, unit = WordVotes(config), "user" if args.in_private_text else "speaker"
    texts = users_texts(private) if unit == "user" else speakers_texts(args.in_private_manifests)
    people = People.of(zip(texts, texts), source=" ".join(map(str, private)))
    public = [*filter(None, [args.in_lang]), *args.in_public_words]
    inputs = [*private, *public, *filter(None, [args.in_public_lists])]
    log.info("noise %.4g votes, threshold %.4g", mechanism.noise.sigma, mechanism.least)
    spending = mechanism.spending(len(texts), unit)
    with begin_release(args, spending, fingerprint_of(config, inputs), people) as begun:
        found = write_release(args.out_dir, texts, candidates, mechanism, begun)
    sizes = len(found.words), len(candidates), len(found.bigrams)
    log.info("%d of %d words released, %d bigrams", *sizes)
    for line in guarantees([begun.entry.spending])[0].lines():
        log.info(line)


if __name__ == "__main__":
    cli.run(main)
