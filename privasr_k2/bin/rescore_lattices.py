r"""Rescore lattices with a language model and write N-best lists with its scores.

    privasr verb rescore_lattices --in-lattices exp/x/lattices_dev --in-lm exp/lm/lstm \
        --out-nbest exp/x/lattice_lstm/nbest_dev/1.jsonl \
        --config conf/rescore.yaml#rescore_lattices

The search mixes the scores of the LM and of the graph (neural_share), at the LM weight and the
insertion penalty of the lattices. Merged histories make the LM scores approximate; lm_scores
computes the exact ones. tune_weights then chooses the weights for the lists on dev.
"""

from __future__ import annotations

import logging
import time

from privasr_k2.bin import cli
from privasr_k2.decoding.lattice_files import read_lattices
from privasr_k2.decoding.lattice_lists import RescoreLatticesConfig, rescored_lists
from privasr_k2.scoring.nbest_lists import write_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, search, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_lattices="DIR lattices_<role>, with *.safetensors",
        in_lm="LM an ARPA file, a folder of train_lm",
        out_nbest="FILE the lists, JSON Lines",
    )
    config = cli.load(RescoreLatticesConfig, args)
    from privasr_k2.decoding.lattice_lms import stepping
    from privasr_k2.lm.mixtures import open_lm

    lattices, started = read_lattices(args.in_lattices), time.perf_counter()
    name = config.name or args.in_lm.name.split(".")[0]
    lm = stepping(open_lm(args.in_lm, args.device))
    write_nbest(args.out_nbest, rescored_lists(lattices, lm, name, config))
    log.info("%s: %.1f s", name, time.perf_counter() - started)


if __name__ == "__main__":
    cli.run(main)
