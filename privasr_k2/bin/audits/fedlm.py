"""Attack federated training: exposure of canaries, membership, and marks that bound epsilon.

Trains five times: with the canaries, without and with clip and noise; and with marks, as it is,
with the noise divided and with next to none.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    import torch

    from privasr_k2.federated import fedlm_audit
    from privasr_k2.federated.client import LocalTrainer
    from privasr_k2.federated.clients import read_clients
    from privasr_k2.federated.fedlm import Federation, rounds
    from privasr_k2.federated.fedlm_tuning import read_rates
    from privasr_k2.federated.train import load_initial
    from privasr_k2.federated.weighting import prepare
    from privasr_k2.lm.neural.files import load_lm
    from privasr_k2.lm.neural.scoring import NeuralScorer
    from privasr_k2.privacy.streams import Drawn
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    if args.in_rates is not None:
        args.set += read_rates(args.in_rates)
    config = cli.load(fedlm_audit.AuditedConfig, args)
    if not config.claims:
        place = "privacy.noise"
        raise ConfigError(place, "a number above 0", "0", "name the claim that is audited")
    clients = read_clients(args.in_clients)
    before = NeuralScorer(*load_lm(args.in_init))
    vocabulary = before.vocabulary
    canaries = fedlm_audit.draw_canaries(vocabulary.words, config, config.seed)
    members, others = fedlm_audit.split_members(clients, config.seed)
    planted = prepare(
        fedlm_audit.plant(members, canaries, config.repeats), vocabulary, config.confidences
    )
    bare = dataclasses.replace(
        config, privacy=dataclasses.replace(config.privacy, clip=None, noise=0.0, quantile=None)
    )
    with join(args.device) as process:

        def make_trainer() -> LocalTrainer:
            model = load_initial(args.in_init, config)[0].to(process.device)
            return LocalTrainer(model, config.client, config.seed)

        audits = {}
        for name, setting in {"without_privacy": bare, "with_privacy": config}.items():
            trainer = make_trainer()
            for _ in rounds(
                Federation(planted, trainer), setting, process, Drawn("cohorts", None), None
            ):
                pass
            after = NeuralScorer(trainer.model, vocabulary)
            audits[name] = {
                "exposure": fedlm_audit.exposure_of(after, canaries, config, config.privacy.delta),
                "membership": fedlm_audit.membership_of(before, after, members, others, config),
            }
        data = prepare(clients, vocabulary, config.confidences)
        audits["marks"] = fedlm_audit.marks(make_trainer, data, config, config, process)
        if process.leads:
            write_json(args.out_audit, audits)
            log.info("%s", audits["marks"])
