r"""Train a teacher for every shard as a head of one public model: hundreds at once, on frozen layers.

    python -m privasr_k2.bin.train_heads --in-shards exp/pate/shards --in-model exp/pate/public/am \
        --in-lang data/lang_char --out-dir exp/pate/heads \
        --config conf/pate.yaml#heads --set trained=last_block

Writes heads.safetensors, encoder/ (the public model), shards.json and heads.yaml. A run that was killed goes
on with the heads that it has not finished. The folder is private: nothing of it is to be published.
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse and train."""
    made = cli.parser(
        __doc__,
        in_shards="DIR what make_shards wrote",
        in_model="DIR the public model's folder",
        in_lang="DIR its language folder",
        out_dir="DIR the folder of heads",
    )
    cli.add_config(made)
    cli.add_device(made)
    args = cli.parse(made)

    import torch

    from privasr_k2.pate.heads import HeadConfig
    from privasr_k2.pate.heads_training import train_heads
    from privasr_k2.training.distributed import choose_device

    torch.set_num_threads(args.num_jobs)
    config = cli.load(HeadConfig, args)
    train_heads(args.in_shards, args.in_model, args.in_lang, args.out_dir, config, choose_device(args.device))


if __name__ == "__main__":
    cli.run(main)
