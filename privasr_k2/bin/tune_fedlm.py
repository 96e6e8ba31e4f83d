r"""Choose learning rates of federated training on clients of dev.

    privasr verb tune_fedlm --in-clients exp/fedlm/dev/recognized.jsonl.gz \
        --in-scored exp/fedlm/dev/clients.jsonl.gz --in-init exp/lm/pretrained \
        --out-rates exp/rates.json --config conf/fedlm.yaml#fedlm conf/fedlm.yaml#fedlm_tune \
        --set rounds=50

Half of the clients train; the text of the others is scored. train_fedlm --in-public-rates reads the
rates. privacy.clip and privacy.noise apply, so that the rates fit a private training. The text of
the clients of that training is not read, and nothing is released.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json


def main() -> None:
    """Parse, try, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_clients="FILE who trains, of dev",
        in_scored="FILE what the clients of dev said",
        in_init="DIR the model to begin with",
        out_rates="FILE rates and grid, JSON",
    )

    import torch

    from privasr_k2.federated import fedlm_tuning
    from privasr_k2.federated.client import LocalTrainer
    from privasr_k2.federated.clients import read_clients
    from privasr_k2.federated.settings import FedLmConfig
    from privasr_k2.federated.train import load_initial
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    config = cli.load(fedlm_tuning.TunedConfig, args)
    clients, dev = fedlm_tuning.divide(
        read_clients(args.in_clients), read_clients(args.in_scored), config.by, config.seed
    )
    vocabulary = load_initial(args.in_init, config)[1]
    with join(args.device) as process:

        def make_trainer(chosen: FedLmConfig) -> LocalTrainer:
            model = load_initial(args.in_init, chosen)[0].to(process.device)
            return LocalTrainer(model, chosen.client, chosen.seed)

        tuned = fedlm_tuning.tune(make_trainer, clients, dev, vocabulary, config, process)
        if process.leads:
            write_json(args.out_rates, tuned)


if __name__ == "__main__":
    cli.run(main)
