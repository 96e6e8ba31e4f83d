r"""Train an acoustic model, or continue an interrupted training.

    privasr verb train_am --in-feats data/feats_fbank --in-lang data/lang_char \
        --out-dir exp/ctc/am --config conf/ctc.yaml#am_ctc

--in-feats has the roles train and dev, --in-lang tokens and pronunciations. --out-dir gets
checkpoints/, train_log.jsonl, tensorboard/, config.yaml and, last, the averaged model. The key kind
of the configuration selects the model: section am_ctc, am_rnnt, am_ctc_attention, am_las or
am_whisper, which only goes on from --in-init (privasr import --in-public-whisper). With
--in-shards, --in-feats is one of these shards: where it holds nothing to learn from, the model
stays as it begins, and does not vote. With --in-public-encoder, --in-feats are the outputs of one
of its layers (kind=encoder, encoder.layers=[0]) and --in-init was trained on those of its last; the
layers between both are put into the model, and the key trained says what of it is trained.

For several GPUs or machines start it with torchrun (torch 1.13 on Python 3.11 needs --redirects and
--tee):

    torchrun --redirects 1 --tee 1 --nproc_per_node 4 -m privasr_k2.bin.train_am ...
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse and train."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_feats="PATH features folder",
        in_lang="PATH language folder",
        in_init="[DIR] train this model further: of the same form and tokens",
        in_public_encoder="[PATH] train its layers above --in-feats, below --in-init",
        in_shards="[FILE] shards.json of make_shards, where --in-feats is a shard",
        out_dir="PATH the model's folder",
    )

    import torch

    from privasr_k2.am.kinds import kind_of
    from privasr_k2.am.train import train_am
    from privasr_k2.pate.shards import check_shard
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    config = cli.load(kind_of(args.config).config, args)
    if args.in_shards is not None:
        check_shard(args.in_feats, args.in_shards)
    with join(args.device) as process:
        folders = args.in_feats, args.in_lang, args.out_dir
        begin = {"init": args.in_init, "public_encoder": args.in_public_encoder}
        empty = {"may_be_empty": args.in_shards is not None}
        train_am(*folders, config, process, args.num_jobs, **begin, **empty)


if __name__ == "__main__":
    cli.run(main)
