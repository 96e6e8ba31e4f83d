"""DP-SGD for end-to-end recognizers, the baseline of pate (yang2022)."""

from dataclasses import dataclass
from math import inf

from local.stages.data import PhoneOptions
from local.stages.e2e import E2eOptions, decode_all, prepare_e2e, train_dpsgd, train_references
from local.stages.students import begin_self_trained
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Natural, Positives, option


@dataclass(frozen=True)
class Options(PhoneOptions, E2eOptions):
    """Those of both recipes of yang2022, and the budgets."""

    dpsgd_epsilons: Positives = option((8.0, inf),
                                       "epsilons of DP-SGD; inf: clipped, without noise or claim")
    self_trained: bool = option(
        False, "DP-SGD begins at the public model that has learned the pool by its own guesses")
    people: Natural = option(0, "private speakers, drawn from all; 0: all")


def stages(r: Recipe, o: Options) -> None:
    """What recipe pate has made of the same corpus is reused, and the other way round."""
    e = prepare_e2e(r, o, people=o.people)
    r.exp = f"{e.dpsgd_exp}{'_self_trained' * o.self_trained}{e.below.replace('/', '_')}"
    train_references(r, o, e)
    if o.self_trained:
        begin_self_trained(r, o, e)
    train_dpsgd(r, o, e, o.dpsgd_epsilons)
    decode_all(r, e, 7)
    r.report(8, manifests=e.data.manifests, layout="pate", phones=o.per)
