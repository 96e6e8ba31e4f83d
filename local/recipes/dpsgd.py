"""DP-SGD for end-to-end recognizers, the baseline of pate (yang2022)."""

from dataclasses import dataclass
from math import inf
from typing import Annotated

from annotated_types import MinLen

from local.stages.data import PhoneOptions
from local.stages.e2e import (
    prepare_e2e,
    train_dpsgd,
    train_not_private,
    train_public_models,
)
from local.stages.students import begin_self_trained
from local.stages.word_graph import WordGraphOptions, check_word_votes, decode_all
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Natural, Positives, option


@dataclass(frozen=True)
class Options(PhoneOptions, WordGraphOptions):
    """Those of both recipes of yang2022, and the budgets."""

    dpsgd_epsilons: Positives = option((8.0, inf),
                                       "epsilons of DP-SGD; inf: clipped, without noise or claim")
    self_trained: bool = option(
        False, "DP-SGD begins at the public model that has learned the pool by its own guesses")
    people: Annotated[tuple[Natural, ...], MinLen(1)] = option(
        (0,), "numbers of private speakers, drawn from all; 0: all; models of each")


def stages(r: Recipe, o: Options) -> None:
    """What recipe pate has made of the same corpus is reused, and the other way round."""
    check_word_votes(r, o)
    e = prepare_e2e(r, o, people=o.people)              # 0-3: data, split speakers, lang folder
    search = e.below.replace("/", "_")
    if o.self_trained:                                  # by guesses of that search
        e.dpsgd_exp, search = f"{e.dpsgd_exp}_self_trained{search}", ""
    groups = [e.protecting(people) for people in o.people]
    r.exp = (f"{e.dpsgd_exp}_people" if e.several else groups[0].dpsgd_exp) + search
    train_public_models(r, o, e)                        # 4
    if o.self_trained:
        begin_self_trained(r, o, e)                     # 5
    for group in groups:
        train_not_private(r, o, group)                  # 5
    for group in groups:
        train_dpsgd(r, o, group, o.dpsgd_epsilons)      # 6
    decode_all(r, o, e, 7, groups)                      # 7; words by votes: 5, 7, 8
    r.sort_stages()
    r.report(9, manifests=e.data.manifests, phones=o.per)
