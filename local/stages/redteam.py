"""Stages 3 and 8 of recipe redteam: canaries in the private speech, and attacks upon all models."""

from math import inf
from pathlib import Path
from typing import Any

from local.stages.data import feature_name
from local.stages.e2e import E2e
from local.stages.redteam_lms import train_lms
from privasr_k2.recipe.declare import Declared, Recipe


def plant(r: Recipe, e: E2e) -> str:
    """Stage 3: canaries become speakers of the private side; returns that side without them."""
    private = e.private
    e.planted = r.stage(3, "canaries", "plant_canaries", config="plant_canaries", num_jobs=True,
                        in_feats=private, in_lang=e.lang,
                        out_dir=f"data/canaries_{r.data.token_type}_{feature_name(r)}")
    return private


def attack(r: Recipe, o: Any, e: E2e, private: str) -> None:
    """Stage 8: membership, exposure of canaries and noise masking, a file each for all models.

    Args:
        private: features of the private side without canaries.
    """
    lms = train_lms(r, o, e)
    for model in o.models:
        public = e.public_model[model]
        dpsgd = {epsilon: system for (of, epsilon), system in e.dpsgd.items() if of == model}
        trained: list[Declared] = [e.not_private[model], *dpsgd.values()]
        folders = [f"{system.folder}/am" for system in trained]
        common: dict[str, Any] = {"in_models": folders, "in_reference": e.public_am(model),
                                  "in_feats": private, "in_others": e.data.feats,
                                  "in_lang": e.lang, "device": True, "num_jobs": True}
        members = r.stage(8, f"membership, {model}", "infer_membership", config="membership",
                          out_membership=f"{r.exp}/{model}/membership.json",
                          set={"unit": o.privacy_unit}, **common)
        found = r.stage(8, f"canaries and names, {model}", "attack_recognizer",
                        config="attack_recognizer", in_canaries=e.planted,
                        in_lms=[lms.not_private, *(lms.by_epsilon[epsilon] for epsilon in dpsgd)],
                        in_public_lm=lms.public, out_attacks=f"{r.exp}/{model}/attacks.json",
                        **common)
        for epsilon, system in dpsgd.items():
            system.values["headline"] = False  # models that learned canaries are for audits alone
            if epsilon == inf:
                system.values["label"] = "clip only, no noise"
            if "audit" in system.artifacts:
                system.add("canary_audit", system.artifacts["audit"])
                system.add("lm_audit", lms.claims[epsilon].artifacts["audit"])
        for system in (*trained, public):
            key = f"{Path(system.folder).name}/am"
            system.add("recognizer", f"{found}#{key}")
            if system is not public:
                system.add("membership", f"{members}#{key}")
