r"""Train a teacher for each shard as a head on the frozen lower layers of one public model.

    privasr verb train_heads --in-shards exp/pate/shards --in-model exp/pate/public/am \
        --in-lang data/lang_char --out-dir exp/pate/heads --config conf/pate.yaml#heads \
        --set trained=last_block

Hundreds of heads are trained at once. --out-dir gets heads.safetensors, encoder/ (the public
model), shards.json and heads.yaml. An interrupted run continues with the unfinished heads. The
folder is private: do not publish any of it.
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse and train."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_shards="DIR what make_shards wrote",
        in_model="DIR the public model's folder",
        in_lang="DIR its language folder",
        out_dir="DIR the folder of heads",
    )

    import torch

    from privasr_k2.pate.heads import HeadConfig
    from privasr_k2.pate.heads_training import train_heads
    from privasr_k2.training.distributed import choose_device

    torch.set_num_threads(args.num_jobs)
    config = cli.load(HeadConfig, args)
    folders = args.in_shards, args.in_model, args.in_lang, args.out_dir
    train_heads(*folders, config, choose_device(args.device))


if __name__ == "__main__":
    cli.run(main)
