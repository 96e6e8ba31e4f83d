r"""Train an acoustic model, or continue an interrupted training.

    privasr verb train_am --in-feats data/feats_fbank --in-lang data/lang_char --out-dir exp/ctc/am \
        --config conf/ctc.yaml#am_ctc

--in-feats has the roles train and dev, --in-lang tokens and pronunciations. --out-dir gets
checkpoints/, train_log.jsonl, tensorboard/, config.yaml and, last, the averaged model. The key kind
of the configuration selects the model: section am_ctc, am_rnnt, am_ctc_attention or am_las. For
several GPUs or machines start it with torchrun (torch 1.13 on Python 3.11 needs --redirects, --tee):

    torchrun --redirects 1 --tee 1 --nproc_per_node 4 -m privasr_k2.bin.train_am ...
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli


def main() -> None:
    """Parse and train."""
    parser = cli.parser(__doc__)
    parser.add_argument("--in-feats", type=Path, required=True, help="features folder")
    parser.add_argument("--in-lang", type=Path, required=True, help="language folder")
    parser.add_argument(
        "--in-init", type=Path, metavar="DIR", help="initial model of the same form and tokens"
    )
    parser.add_argument("--out-dir", type=Path, required=True, help="the model's folder")
    cli.add_config(parser)
    cli.add_device(parser)
    args = cli.parse(parser)

    import torch

    from privasr_k2.am.kinds import kind_of
    from privasr_k2.am.train import train_am
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    config = cli.load(kind_of(args.config).config, args)
    with join(args.device) as process:
        train_am(args.in_feats, args.in_lang, args.out_dir, config, process, args.num_jobs, init=args.in_init)


if __name__ == "__main__":
    cli.run(main)
