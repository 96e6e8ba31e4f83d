r"""Adapt a neural language model on the server, on the text of all clients; nothing is private.

    privasr verb finetune_lm --in-clients exp/fedlm/clients.jsonl.gz --in-init exp/lm/char_lstm \
        --out-dir exp/fedlm/server --config conf/fedlm.yaml#finetune_lm \
        --set confidences.use=token

The optimizer is Adam on batches of sentences. The loss is that of the clients of train_fedlm, so
that both use confidences alike.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_lines, write_text


def main() -> None:
    """Parse and train."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_clients="FILE clients.jsonl.gz",
        in_init="DIR the model to begin with",
        in_dev_text="[FILE] a sentence a line: which epoch is kept",
        out_dir="DIR the model's folder",
        out_held_out="[FILE] with select_epoch=held_out: sentences that chose the epoch",
    )

    import torch

    from privasr_k2.federated.clients import read_clients
    from privasr_k2.federated.server_training import HELD_OUT, FinetuneConfig, finetune
    from privasr_k2.training.distributed import choose_device

    torch.set_num_threads(args.num_jobs)
    config = cli.load(FinetuneConfig, args)
    text = read_lines(args.in_dev_text) if args.in_dev_text is not None else ()
    dev = [line.split() for _, line in text if line.strip()]
    if config.select_epoch == "best" and not dev:
        expected = "text to choose an epoch by"
        raise ConfigError("--in-dev-text", expected, "none", "give it, or --set select_epoch=last")
    if args.out_held_out is not None and config.select_epoch != HELD_OUT:
        expected = f"select_epoch={HELD_OUT}, which holds sentences out"
        raise ConfigError("--out-held-out", expected, config.select_epoch, "set it, or write none")
    clients = read_clients(args.in_clients)
    dev = finetune(clients, dev, args.in_init, args.out_dir, config, choose_device(args.device))
    if args.out_held_out is not None:
        write_text(args.out_held_out, "".join(f"{' '.join(words)}\n" for words in dev))


if __name__ == "__main__":
    cli.run(main)
