"""Write N-best lists for other toolkits: Kaldi's text archives, and of the best hypotheses CTM and trn.

    python -m privasr_k2.bin.export_nbest --in-nbest exp/ctc/nbest_test \\
        --out-kaldi exp/ctc/kaldi_nbest_test --out-ctm exp/ctc/test.ctm \\
        --out-trn exp/ctc/test.trn --out-ref-trn exp/ctc/test.ref.trn

Any of the outputs may be left out. CTM needs lists with word times. With --in-scores, what score_nbest wrote,
the archives have the costs of these LMs too: lm_cost.NAME.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.lm_scores import read_lm_scores, with_lm_scores
from privasr_k2.errors import ConfigError
from privasr_k2.scoring.nbest_formats import write_ctm, write_kaldi, write_trn
from privasr_k2.scoring.nbest_lists import read_nbest


def main() -> None:
    """Parse, read, write."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-nbest", type=Path, required=True, metavar="DIR", help="nbest_<role>, with *.jsonl"
    )
    made.add_argument("--in-scores", type=Path, nargs="*", default=[], metavar="FILE", help="of score_nbest")
    made.add_argument("--out-kaldi", type=Path, metavar="DIR", help="words, ac_cost and lm_cost as text")
    made.add_argument("--out-ctm", type=Path, metavar="FILE", help="the best words with times")
    made.add_argument("--out-trn", type=Path, metavar="FILE", help="the best words")
    made.add_argument("--out-ref-trn", type=Path, metavar="FILE", help="the references")
    args = cli.parse(made)
    if not (args.out_kaldi or args.out_ctm or args.out_trn or args.out_ref_trn):
        raise ConfigError("export_nbest", "an --out-* option", "none", "choose a format, see --help")
    lists = read_nbest(args.in_nbest)
    lists = with_lm_scores(lists, read_lm_scores(args.in_scores, lists))
    if args.out_kaldi:
        write_kaldi(lists, args.out_kaldi)
    if args.out_ctm:
        write_ctm(lists, args.out_ctm)
    if args.out_trn:
        write_trn(lists, args.out_trn)
    if args.out_ref_trn:
        write_trn(lists, args.out_ref_trn, references=True)


if __name__ == "__main__":
    cli.run(main)
