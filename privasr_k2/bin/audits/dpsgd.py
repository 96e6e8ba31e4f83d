"""Audit DP-SGD by canaries.

The audit trains three times with the code and the flags of train_dpsgd: with its noise, with the
noise divided, and with almost none. The second must exceed the claim.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    import numpy as np
    import torch

    from privasr_k2.attack.settings import CanaryAuditConfig
    from privasr_k2.attack.vote_audit import audit_lines
    from privasr_k2.dpsgd.settings import RELATION, DpSgdConfig, noise_multiplier, spending
    from privasr_k2.dpsgd.train import read_inputs
    from privasr_k2.dpsgd.trainer import PrivateData, Trainer
    from privasr_k2.dpsgd.units import Unit
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.privacy.audit.canaries import audit_canaries, log_likelihood_ratio
    from privasr_k2.privacy.audit.one_run_curve import Claim
    from privasr_k2.privacy.events import Event
    from privasr_k2.privacy.streams import Drawn
    from privasr_k2.training.canaries import CanaryGradients, layers_for
    from privasr_k2.training.distributed import choose_device

    @dataclasses.dataclass(frozen=True)
    class Audited(CanaryAuditConfig, DpSgdConfig):
        def __post_init__(self) -> None:
            CanaryAuditConfig.__post_init__(self)
            DpSgdConfig.__post_init__(self)

    torch.set_num_threads(args.num_jobs)
    config, device = cli.load(Audited, args), choose_device(args.device)
    if not config.claims or config.clip is None:
        place = "epsilon and noise"
        raise ConfigError(place, "one of them", "neither", "name the claim that is audited")
    inputs = read_inputs(
        args.in_private_feats, args.in_public_dev, load_lang(args.in_lang), args.in_init, config
    )
    noise = noise_multiplier(config)
    speech = inputs.data.speech
    real = list(inputs.data.units) if config.speech else []

    def trainer_of(data: PrivateData, share: float) -> Trainer:
        return Trainer(copy.deepcopy(inputs.model).to(device), data, config, noise * share)

    def run(inside: np.ndarray, coordinates: np.ndarray, share: float) -> np.ndarray:
        length = 2.0 * (config.clip or 0.0)
        canaries = CanaryGradients(inside.tolist(), sum(layers), length, starts)
        units = sorted([*real, *(Unit(name, ()) for name in canaries)], key=lambda unit: unit.name)
        trainer = trainer_of(PrivateData(units, speech, canaries), share)
        places = (torch.from_numpy(coordinates).unsqueeze(1) + torch.tensor(starts)).to(device)
        # A canary has its part of the clip in each of several layers.
        scale = trainer.optimizer.expected_batch_size / len(starts) ** 0.5
        seen = dict(rate=config.rate, noise=noise * share, clip=config.clip)
        scores = np.zeros(len(coordinates))
        for one in trainer.steps(Drawn("batches", None), 0):
            sums = one.gradient[places].double().sum(dim=1).cpu().numpy() * scale
            scores += log_likelihood_ratio(sums, **seen)
        return scores

    layers = [*map(sum, trainer_of(PrivateData([], speech), 1.0).optimizer.layers)]
    starts, size = layers_for(config.marks, layers)
    many = len(inputs.data.units) + config.marks

    def event_of(factor: float) -> Event:
        return spending(config, many, noise * factor).event

    claim = Claim(event_of, RELATION, config.delta)
    found = audit_canaries(run, size=size, claim=claim, seed=config.seed, config=config)
    write_json(args.out_audit, {"unit": config.unit, "noise_multiplier": noise, **found})
    for line in audit_lines(f"DP-SGD, {config.unit}", found):
        log.info(line)
