r"""Compute word error rates of a decoded role by part, with intervals over speakers.

    privasr verb wer --in-hyps exp/ctc/decode_test --in-weights exp/ctc/weights.json \
        --in-manifests data/manifests --in-lang data/lang_bpe --out-dir exp/ctc/score_test \
        --config conf/common.yaml#wer --set role=test

    privasr verb wer --in-nbest exp/theirs/nbest_test --in-manifests data/manifests \
        --out-dir exp/theirs/score_test --config conf/common.yaml#wer

--in-nbest scores the first hypothesis of every list, such as lists that import has written.
--out-dir gets wer.json: errors of words or phones, of characters, of words inside and outside
entities where the corpus marks them, and of the groups that the corpus names. utterances.jsonl
holds the compared words. The files recogs-*, errs-* and wer-summary-* are those of icefall; the
summary lists the whole grid for dev only.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import replace

from privasr_k2 import config
from privasr_k2.bin import cli
from privasr_k2.decoding.tune import TUNING_ROLE, choose_point, grid_counts, read_weights
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import atomic_path, write_json, write_jsonl, write_text
from privasr_k2.scoring import icefall_files, names, results
from privasr_k2.scoring.corpus_info import WORD, read_corpus_info, read_vocabulary
from privasr_k2.scoring.counts import total
from privasr_k2.scoring.entities import read_entities
from privasr_k2.scoring.groups import read_groups
from privasr_k2.scoring.hints import hint
from privasr_k2.scoring.hypotheses import check_complete, read_decoded
from privasr_k2.scoring.nbest_lists import first_hypotheses, read_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, score, write."""
    args = cli.arguments(
        __doc__,
        in_hyps="[DIR] decode_<role>, with *.jsonl",
        in_nbest="[DIR] nbest_<role>, in place of --in-hyps: first hypotheses",
        in_weights="[FILE] weights.json; needed where there is a grid",
        in_lang="[DIR] with words.txt, to count unknown words",
        in_manifests="[DIR] to find lost utterances, and units to score",
        in_entity_cuts="[FILE...] more references with entities, to count false alarms",
        out_dir="DIR score_<role>",
    )
    options = cli.load(results.ScoreOptions, args)
    if (args.in_hyps is None) == (args.in_nbest is None):
        found = "neither" if args.in_hyps is None else "both"
        raise ConfigError("the command line", "--in-hyps or --in-nbest", found, "give one")
    if args.in_nbest is not None and args.in_weights is not None:
        found, way_out = "--in-weights with --in-nbest", "remove it"
        raise ConfigError("the command line", "weights of a grid", found, way_out)

    if args.in_hyps is not None:
        decoded = read_decoded(args.in_hyps)
    else:
        decoded = first_hypotheses(read_nbest(args.in_nbest))
    results.check_role(decoded, options.role)
    options = replace(options, role=decoded.role)  # so that scores without and with it compare
    if args.in_manifests is not None:
        check_complete(decoded, args.in_manifests)
    given = None if args.in_weights is None else read_weights(args.in_weights)
    weights = choose_point(decoded, given)
    corpus = read_corpus_info(args.in_manifests)
    units, entities, groups = corpus.scored_units, None, None
    if args.in_manifests is not None:
        groups = read_groups(args.in_manifests, decoded.role, corpus.all_groups)
        public = corpus.public_roles, args.in_entity_cuts
        entities = read_entities(args.in_manifests, decoded.role, units, *public)
    vocabulary = None if args.in_lang is None else read_vocabulary(args.in_lang)

    by_part = defaultdict(list)
    for utterance in decoded.utterances:
        by_part[utterance.part].append(utterance)
    parts = {}
    with atomic_path(args.out_dir) as folder:
        folder.mkdir()
        records = []
        for part, utterances in sorted(by_part.items()):
            scored = results.score_utterances(utterances, weights, units, groups, entities)
            refs, more = [u.ref for u in utterances], {}
            if corpus.unit == WORD:
                more["characters"] = results.score_characters(part, scored, options)
            if entities is not None:
                more["entities"] = names.score_names(part, scored, entities, options)
            of_part = results.score_part(
                part, scored, options, raw_refs=refs, vocabulary=vocabulary
            )
            parts[part] = replace(of_part, **more)
            settings = {weights: total(u.counts for u in scored)}
            if decoded.role == TUNING_ROLE:
                settings = grid_counts(replace(decoded, utterances=tuple(utterances)), units)
            for name, text in icefall_files.part_files(part, weights, scored, settings).items():
                write_text(folder / name, text)
            records += [u.to_dict() for u in scored]
            log.info("%s: %s", part, icefall_files.error_line(of_part.counts))
            lost, number = len(of_part.no_path), of_part.utterances
            if said := hint(of_part.counts, no_path=lost, utterances=number):
                log.warning("%s: %s", part, said)
        system = results.system_of(args.out_dir)
        settings = decoded.role, weights, options
        score = results.Score(args.out_dir, system, *settings, parts, corpus.unit)
        write_jsonl(folder / results.UTTERANCES_FILE, records)
        write_json(folder / results.WER_FILE, score.to_dict())
        config.save(options, folder / "config.yaml")


if __name__ == "__main__":
    cli.run(main)
