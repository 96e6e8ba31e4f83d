"""Attacks upon recognizers at four settings: no protection, clip alone, epsilon 8, epsilon 1."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

from annotated_types import MinLen

from local.stages import redteam
from local.stages.data import PhoneOptions
from local.stages.e2e import E2eOptions, decode_all, prepare_e2e, train_dpsgd, train_references
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Positives, Share, option


@dataclass(frozen=True)
class Options(PhoneOptions, E2eOptions):
    """Those of recipe dpsgd; canaries and attacks are in conf/redteam.yaml."""

    models: Annotated[tuple[Literal["ctc"], ...], MinLen(1)] = option(
        ("ctc",), "models to train; ctc aligns the names")
    dpsgd_epsilons: Positives = option((inf, 8.0, 1.0),
                                       "epsilons of DP-SGD; inf: clipped, without noise or claim")
    dpsgd_whole: bool = option(True, "DP-SGD of all weights (section dpsgd), not of dpsgd_norms")
    lm_rounds: Count = option(60, "rounds in which the private speakers train an LM")
    lm_share: Share = option(0.3, "probability of each speaker in a round")


def stages(r: Recipe, o: Options) -> None:
    """Canaries join the private speakers (3); all settings learn the same data (5, 6)."""
    if r.data.token_type == "phone":
        r.refuse("--token-type", "char or bpe_N: names are written without a graph", "phone",
                 "add --token-type char")
    e = prepare_e2e(r, o)                       # 0-3: data, split speakers, lang folder
    r.exp = f"exp/redteam_{e.name}_{o.privacy_unit}"
    e.tuned = e.dpsgd_exp = f"{r.exp}{'_scratch' * (o.init == 'scratch')}"
    private = redteam.plant(r, e)               # 3: the private side with canaries
    train_references(r, o, e)                   # 4-5: public model, model of all private data
    train_dpsgd(r, o, e, o.dpsgd_epsilons)      # 6: with the audit of each claim
    decode_all(r, o, e, 7)
    redteam.attack(r, o, e, private)            # 8
    r.sort_stages()
    r.report(9, manifests=e.data.manifests, phones=o.per)
