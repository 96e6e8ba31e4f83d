r"""Select the best hypothesis of each N-best list, by the weights that were chosen on dev.

    privasr verb select_nbest --in-nbest exp/x/nbest_test \
        --in-scores exp/x/lstm_test.safetensors --in-weights exp/x/rescoring.json \
        --out-hyps exp/x/lstm/decode_test/1.jsonl

Without --in-weights it selects the hypothesis with the fewest errors, the oracle. An utterance
without a path stays without one; its words count as deleted.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.decoding.lm_scores import candidates_of, read_lm_scores
from privasr_k2.decoding.rescoring import read_rescoring
from privasr_k2.decoding.selected_hyps import oracle_records, rescored_records
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.nbest_lists import check_nbest_complete, read_nbest


def main() -> None:
    """Parse, choose, write."""
    args = cli.arguments(
        __doc__,
        config=False,
        in_nbest="DIR nbest_<role>, with *.jsonl",
        in_scores="[FILE...] of lm_scores",
        in_weights="[FILE] rescoring.json; without it: the oracle",
        in_manifests="[DIR] references, and what is scored",
        out_hyps="FILE as decode writes them",
    )
    if (args.in_weights is None) != (not args.in_scores):
        expected = "--in-scores with --in-weights, or neither"
        raise ConfigError("the command line", expected, "one", "give the other")

    lists = read_nbest(args.in_nbest)
    scores = read_lm_scores(args.in_scores, lists)
    if args.in_manifests:
        role = args.in_nbest.name.removeprefix("nbest_")
        check_nbest_complete(lists, args.in_manifests / f"cuts_{role}.jsonl.gz")
    candidates = candidates_of(lists, scores, read_corpus_info(args.in_manifests).scored_units)
    if args.in_weights is None:
        records = oracle_records(lists, candidates)
    else:
        records = rescored_records(
            lists, candidates, *read_rescoring(args.in_weights), place=args.in_weights
        )
    write_jsonl(args.out_hyps, (record.to_dict() for record in records))


if __name__ == "__main__":
    cli.run(main)
