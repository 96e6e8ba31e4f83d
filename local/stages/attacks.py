"""Stage 13 of recipe pate: attacks that bound no epsilon. Their results are their owner's."""

from typing import Any

from local.stages.e2e import E2e
from local.stages.pate import Releases, shards, teachers_folder
from privasr_k2.recipe.declare import Recipe


def _teachers(r: Recipe, o: Any, model: str) -> list[str]:
    """The models of the last number of teachers; heads are one folder."""
    folder = teachers_folder(r, model, o.teachers[-1])
    return [folder] if o.heads else [f"{folder}/{k}" for k in range(1, o.teachers[-1] + 1)]


def _students(o: Any, model: str, releases: Releases) -> list[str]:
    return [f"{release.system.folder}/am" for release in releases.all
            if (release.model, release.teachers) == (model, o.teachers[-1])]


def infer_membership(r: Recipe, o: Any, e: E2e, releases: Releases) -> None:
    """Membership in the training of each model, and in the shard of each teacher."""
    for model in o.models:
        dpsgd = [f"{system.folder}/am" for (of, _), system in e.dpsgd.items() if of == model]
        trained = [f"{e.not_private[model].folder}/am", *dpsgd, *_students(o, model, releases)]
        common = {"in_lang": e.lang, "device": True, "num_jobs": True, "config": "membership",
                  "set": {"unit": o.privacy_unit}}
        of_models = r.about(f"{model}/membership_models", f"models, {model}", model=model)
        r.stage(13, f"membership in the training, {model}", "infer_membership", in_models=trained,
                in_reference=e.public_am(model), in_feats=e.private, in_others=e.data.feats,
                out_membership=of_models.add("membership",
                                             f"{r.exp}/{model}/membership_models.json"), **common)
        of_shards = r.about(f"{model}/membership_teachers", f"shards, {model}", model=model)
        r.stage(13, f"membership in shards, {model}", "infer_membership",
                in_models=_teachers(r, o, model),
                in_shards=f"{shards(r, o, o.teachers[-1])}/shards.json", in_feats=e.private,
                out_membership=of_shards.add("membership",
                                             f"{r.exp}/{model}/membership_teachers.json"), **common)


def invert_models(r: Recipe, o: Any, e: E2e, releases: Releases) -> None:
    """Reconstruct words from a teacher, all teachers, each student and a random model."""
    for model in o.models:
        last, teachers = o.teachers[-1], _teachers(r, o, model)
        students = _students(o, model, releases)
        head = {"heads": [1]} if o.heads else {}  # the first head of the folder
        targets: list[tuple[str, str, dict[str, Any], list[str]]] = [
            (f"teacher_{last}_1", f"{shards(r, o, last)}/shard_1", head, teachers[:1]),
            (f"ensemble_{last}", e.private, {}, teachers),
            *((am.split("/")[-2], e.private, {}, [am]) for am in students),
            ("control", e.private, {"control": True}, students[:1]),
        ]
        for attack in o.attacks:
            out = f"{r.exp}/{model}/inversion_{attack}"
            inversions = [r.stage(13, f"inversion, {attack}, {model} {name}", "invert_model",
                                  device=True, num_jobs=True, config="inversion", in_models=models,
                                  in_background=e.public, in_lang=e.lang,
                                  out_inversion=f"{out}/{name}.safetensors",
                                  set={"words": o.words, "attack": attack, **settings})
                     for name, _, settings, models in targets]
            about = r.about(f"{model}/inversion_{attack}", f"{attack}, {model}", model=model,
                            attack=attack)
            r.stage(13, f"results of inversion, {attack}, {model}", "invert_model",
                    config="compare_inversion", in_inversions=inversions,
                    in_members=[members for _, members, _, _ in targets], in_others=e.data.feats,
                    in_lang=e.lang, in_aligner=e.public_am("ctc") if "ctc" in o.models else None,
                    out_values=about.add("inversion", f"{out}/inversion.json"),
                    out_picture=f"{out}/figure7.svg")
