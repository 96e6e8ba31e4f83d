"""Stage 8 of recipe redteam: LMs of the private text at the settings of the recognizers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from local.stages.e2e import E2e, shown
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.sampling import PoissonSampling
from privasr_k2.recipe.declare import Declared, Recipe


@dataclass
class Lms:
    """Neural LMs of the text that recognizers learn from, canaries included.

    Attributes:
        public: of public text alone; the others begin with it.
        not_private: of all private text, trained on a server.
        by_epsilon: trained by the speakers, with clipped updates; infinite: without noise.
        claims: releases, each with its audit.
    """

    public: str
    not_private: str
    by_epsilon: dict[float, str] = field(default_factory=dict)
    claims: dict[float, Declared] = field(default_factory=dict)


@cache
def noise_of(epsilon: float, delta: float, share: float, rounds: int) -> float:
    """The noise multiplier of so many rounds, rounded up; 0 for an infinite epsilon."""
    if math.isinf(epsilon):
        return 0.0
    relation = Relation.ADD_OR_REMOVE_ONE

    def event_of(noise: float) -> events.Event:
        return PoissonSampling(share).event(events.gaussian(noise), rounds, relation)

    noise = noise_for(event_of, epsilon=epsilon, delta=delta, relation=relation)
    return math.ceil(1e4 * noise) / 1e4


def train_lms(r: Recipe, o: Any, e: E2e) -> Lms:
    """An LM for each setting, and the audits of those that claim something."""
    folder = f"{r.exp}/lm"
    clients = r.stage(8, "clients of the LM", "make_clients", config="clients",
                      in_cuts=f"{e.private}/cuts_train.jsonl.gz",
                      out_clients=f"{folder}/clients.jsonl.gz", set={"text": "ref"})
    public = r.stage(8, "LM of public text", "train_lm", train=True,
                     config=("lm_lstm", "redteam_lm"), in_manifests=e.public, in_lang=e.lang,
                     out_dir=f"{folder}/public", set={"text": "train"})
    server = r.stage(8, "LM of private text, not private", "finetune_lm", train=True,
                     config="finetune_lm", in_clients=clients, in_init=public,
                     out_dir=f"{folder}/nonprivate")
    lms = Lms(public, server)
    for epsilon in o.dpsgd_epsilons:
        name, claims = shown(epsilon), epsilon < math.inf
        values: Mapping[str, Any] = {
            "data": f"{r.people}/train", "rounds": o.lm_rounds, "client_fraction": o.lm_share,
            "privacy.delta": o.delta,
            "privacy.noise": noise_of(epsilon, o.delta, o.lm_share, o.lm_rounds),
        }
        privacy = None
        if claims:
            lms.claims[epsilon] = system = r.system(
                f"lm_{name}", label=f"LM, epsilon {name}", method="fedlm",
                folder=f"{folder}/{name}", protects=f"each speaker of {r.people}/train")
            privacy = system.add("privacy", f"{folder}/{name}_privacy.json")
        lms.by_epsilon[epsilon] = r.stage(
            8, f"LM by speakers, epsilon {name}", "train_fedlm", train=True, config="fedlm",
            in_private_clients=clients, in_public_init=public, out_dir=f"{folder}/{name}",
            out_privacy=privacy, set=values, spends=claims)
        if o.audit and claims:
            r.stage(8, f"audit of the LM, epsilon {name}", "audit", train=True,
                    config=("fedlm", "fedlm_audit"), in_clients=clients, in_init=public,
                    out_audit=system.add("audit", f"{folder}/{name}_audit.json"), set=values)
    return lms
