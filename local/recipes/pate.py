"""PATE for end-to-end recognizers: teachers label a public pool by noisy votes (yang2022)."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

from annotated_types import Interval, MinLen

from local.stages import attacks
from local.stages.data import PhoneOptions
from local.stages.e2e import prepare_e2e, train_dpsgd, train_references
from local.stages.pate import Releases, check, plan, train_teachers
from local.stages.students import propose
from local.stages.word_graph import WordGraphOptions, decode_all
from privasr_k2.privacy.pate.mechanisms import all_mechanisms, mechanism
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import (
    Choices,
    Count,
    Counts,
    Positive,
    Positives,
    Share,
    Words,
    from_conf,
    option,
)

Unlabeled = Annotated[tuple[Literal["none", "self_training", "consistency"], ...], MinLen(1)]
Percent = Annotated[int, Interval(ge=1, le=100)]
Mechanisms = tuple[Annotated[str, Choices(all_mechanisms)], ...]


@dataclass(frozen=True)
class Options(PhoneOptions, WordGraphOptions):
    """Those of both recipes of yang2022, and those of PATE."""

    teachers: Annotated[Counts, MinLen(1)] = option((15,), "numbers of teachers")
    heads: bool = option(False, "teachers are heads on the public model's frozen lower layers")
    score_teachers: int = option(3, "teachers of each number that are decoded alone")
    score_ensemble: bool = option(True, "all teachers of each number are decoded together")
    epsilons: Positives = option((8.0, inf), "epsilons of the labels; inf: votes without noise")
    sweep_epsilons: Positives = option((), "further epsilons, for the first of --models")
    mechanisms: Mechanisms = option(("gnmax", "lnmax"), "aggregation mechanisms")
    published_scale: tuple[Literal["equation", "figures"], ...] = option(
        (), "students with the noise that the paper took for epsilon, too; no guarantee")
    vote: Literal["utterance", "token", "frame"] = option("utterance", "what teachers vote on")
    max_answers: Count | None = option(None, "answers, at most (default: by epsilon)")
    noise: Positive | None = option(None, "noise in votes (default: by epsilon and --max-answers)")
    min_answers: Count = option(10, "answers, whatever noise they take")
    threshold: Percent = option(60, "confident_gnmax: teachers that the largest count needs, in %")
    public_threshold: Share | None = option(None, "--vote token: public model decides if so sure")
    top_k: Count | None = option(None, "--vote token: likeliest tokens that are voted on")
    labeled_data: bool | None = option(None, "students learn public transcripts, too")
    unlabeled_data: Unlabeled = option(("none",), "uses of unanswered utterances")
    self_trained: bool = option(False, "control: the public model on its own guesses at the pool")
    student_epochs: Count | None = from_conf("am_finetune.epochs", "epochs of a student")
    dpsgd_epsilons: Positives = option((), "epsilons of DP-SGD beside PATE")
    words: Words = option((), "words to reconstruct by model inversion")
    attacks: tuple[Literal["white_box", "black_box"], ...] = option(("white_box",), "inversions")


def stages(r: Recipe, o: Options) -> None:
    """Teachers (stage 7) vote (9); noisy answers are labels (10); students learn them (11)."""
    check(r, o)
    e = prepare_e2e(r, o)                       # 0-3: data, split speakers, lang folder
    scratch = "_scratch" if o.init == "scratch" else ""
    kind = f"{e.name}_{o.privacy_unit}_{o.vote}{scratch}"
    r.exp = f"exp/pate_{kind}{'_heads' * o.heads}"
    plan(r, o, e)                               # 3: shards, queries per epsilon
    train_references(r, o, e)                   # 4-5: public model, model of all private data
    train_dpsgd(r, o, e, o.dpsgd_epsilons)      # 6
    releases = Releases(r, o, e)
    for model in o.models:
        for number in o.teachers:
            train_teachers(r, o, e, model, number)              # 7: a model or head for each shard
    if o.vote == "utterance" or o.self_trained or "self_training" in o.unlabeled_data:
        propose(r, o, e, 8)                     # 8: hypotheses of the public model
    if o.vote != "token":
        releases.cast_votes()                   # 9: votes or posteriors of all teachers, private
    for model in o.models:
        for number in o.teachers:
            for epsilon in (*o.epsilons, *(o.sweep_epsilons if model == o.models[0] else ())):
                if epsilon == inf:
                    releases.declare(model, number, "gnmax", inf, f"clean votes, {number} teachers")
                for name in o.mechanisms if epsilon < inf else ():
                    releases.declare(model, number, name, epsilon)
                    for scale in () if mechanism(name).needs_threshold else o.published_scale:
                        releases.declare(model, number, name, epsilon, published=scale)
    if o.vote == "token":
        releases.plan()                         # 6: answers, noise and what wins, beforehand
    releases.label()                            # 10: the noise: pate.noisy_answers.noisy_winners
    releases.train_students()                   # 11: the loss: pate.distillation.student_loss
    decode_all(r, o, e, 12)                     # in the graph of released words, too: 5, 7, 8
    if o.audit:
        attacks.infer_membership(r, o, e, releases)             # 13
    if o.words:
        attacks.invert_models(r, o, e, releases)                # 13
    r.sort_stages()
    r.report(14, manifests=e.data.manifests, phones=o.per)
