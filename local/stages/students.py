"""Students: the public model trained on the pool, by labels of teachers or its own."""

from typing import Any

from local.stages.data import part_values
from local.stages.e2e import E2e, am_config, public_init
from privasr_k2.recipe.declare import Declared, Recipe


def propose(r: Recipe, o: Any, e: E2e, number: int) -> None:
    """N-best lists of the pool by the public model."""
    for model in o.models:
        flags: dict[str, Any] = dict(in_model=e.public_am(model), in_feats=e.pool)
        if e.graph:
            flags |= dict(config=("decode", "nbest", "nbest_pool"), in_graph=e.graph,
                          in_weights=e.weights(model))
        else:
            folder = f"{e.base}/{model}/public{e.below}/decode_pool"
            flags |= dict(config="decode_e2e", out_hyps=f"{folder}/JOB.jsonl")
        r.stage(number, f"N-best lists of the pool, public {model}", "decode", jobs=r.run.nj,
                device=True, out_nbest=f"{nbest(e, model)}/JOB.jsonl", set={"role": "pool"},
                **flags)


def nbest(e: E2e, model: str) -> str:
    """The public model's N-best lists of the pool."""
    return f"{e.base}/{model}/public{e.below}/nbest_pool"


def self_trained(r: Recipe, e: E2e, model: str, folder: str = "") -> Declared:
    """The control without private data: the public model, trained on its own guesses."""
    return r.system(f"{model}/self_trained", label="public, self-trained", method="public",
                    folder=folder, model=model, compare_with=[e.public_model[model]],
                    self_trained=True)


def train_student(r: Recipe, o: Any, e: E2e, system: Declared, model: str, *, number: int,
                  unlabeled: tuple[str, ...], labels: str | None, learns_public: bool,
                  epochs: int | None) -> str:
    """A student of released labels, or without any of what the public model proposes.

    Args:
        unlabeled: uses of utterances without a label, of which dev chooses.
        labels: a release's; None: there are none.
        learns_public: transcripts of the public side, too.
    """
    am = r.stage(number, f"student, {system.name}", "train_student", train=True,
                 config=(*am_config(r, o, model), "student"), in_public_pool=e.pool,
                 in_labels=labels, in_public_feats=e.public, in_public_lang=e.lang,
                 in_public_init=public_init(o, e, model),
                 in_public_nbest=nbest(e, model) if "self_training" in unlabeled else None,
                 out_dir=f"{system.folder}/am",
                 set={"student.unlabeled_data": unlabeled, "epochs": epochs, **part_values(r),
                      "student.labeled_role": "train" if learns_public else None})
    e.decoded.append((system, model, am, {}))
    return am


def begin_self_trained(r: Recipe, o: Any, e: E2e) -> None:
    """Stage 5: DP-SGD begins at the public model that has learned the pool by itself."""
    if "whisper" in o.models or o.init == "scratch":
        found = "--models whisper" if "whisper" in o.models else "--init scratch"
        r.refuse("--self-trained", "a public model, which learns a pool", found,
                 "remove --self-trained")
    propose(r, o, e, 5)
    for model in o.models:
        system = self_trained(r, e, model, f"{e.base}/{model}{e.below}/self_trained")
        e.start[model] = train_student(
            r, o, e, system, model, number=5, unlabeled=("self_training",), labels=None,
            learns_public=False, epochs=o.private_epochs)
        e.untaught[model], e.public_model[model] = e.public_model[model], system
