r"""Compute the log-probability of every word of N-best lists by a language model.

    privasr verb lm_scores --in-nbest exp/x/nbest_dev --in-lm exp/lm_lstm \
        --out-scores exp/x/lstm_dev.safetensors

The model is an ARPA file, a neural model or a mixture. ARPA files are queried exactly (kenlm).
name= replaces the name of the file.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, Share
from privasr_k2.decoding.lm_scores import sentences_of, write_lm_scores
from privasr_k2.scoring.nbest_lists import check_vocabulary, read_nbest, unknown_words

log = logging.getLogger(__name__)

_LISTED = 10


@dataclass(frozen=True)
class LmScoresOptions(Checked):
    """Name of the LM in tables and weights; defaults in ``conf/common.yaml#lm_scores``.

    Args:
        name: empty takes the name of the LM's folder or file.
        max_unknown: share of the hypotheses' words that the LM may lack; with more it is another
            language's, or another normalization's.
    """

    name: str
    max_unknown: Share


def main() -> None:
    """Parse, score, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_nbest="DIR nbest_<role>, with *.jsonl",
        in_lm="LM an ARPA file, a folder of train_lm",
        out_scores="FILE *.safetensors",
    )
    options = cli.load(LmScoresOptions, args)
    from privasr_k2.lm.mixtures import open_lm

    lists, started = read_nbest(args.in_nbest), time.perf_counter()
    lm, nbests = open_lm(args.in_lm, args.device), sentences_of(lists)
    unknown = unknown_words(lists, lm.words)
    total = sum(len(hyp) for nbest in nbests for hyp in nbest)
    share = unknown.total() / max(1, total)
    if not lm.scores_unknown or share > options.max_unknown:
        way_out = (
            f"write both in one case and form; if they are right, {100 * share:.0f} % of the words"
            f" can count as <unk>: --set max_unknown={min(1.0, share + 0.01):.2f}"
        )
        if not lm.scores_unknown:
            way_out = "write both in one case and form, or take an LM with <unk>"
        check_vocabulary(lists, lm.words, args.in_lm, way_out)
    elif unknown:
        text = "%d of %d words of the hypotheses are not in %s, scored as <unk>; %d different: %s"
        words = " ".join(word for word, _ in unknown.most_common(_LISTED))
        log.warning(text, unknown.total(), total, args.in_lm, len(unknown), words)
    log_probs = lm.nbest_token_log_probs(nbests)
    name = options.name or args.in_lm.name.split(".")[0]
    write_lm_scores(args.out_scores, name, lists, log_probs)
    counts = sum(map(len, nbests)), len(log_probs)
    log.info("%s: %d hypotheses, %d words, %.1f s", name, *counts, time.perf_counter() - started)


if __name__ == "__main__":
    cli.run(main)
