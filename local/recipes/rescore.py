"""Second pass: N-best lists and lattices of a first pass, rescored with several LMs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from local.stages.confidence import posterior_confidences
from local.stages.first_pass import (
    FirstPassOptions,
    own_or_public_first_pass,
    score,
)
from local.stages.second_pass import (
    NeuralLm,
    grid_of,
    lattices,
    nbest_lists,
    rescore,
    score_roles,
    select_best,
    train_neural_lm,
)
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, option, path_option


@dataclass(frozen=True)
class Options(FirstPassOptions):
    """Those of the first pass, and the LMs."""

    lms: tuple[NeuralLm, ...] = option(("lstm", "transformer"), "neural LMs")
    nnlm_text: Path | None = path_option("normalized text for neural LMs alone, a sentence a line")
    lm_epochs: Count | None = option(None, "epochs of neural LMs (default: section lm_KIND)")
    finetune_epochs: Annotated[int, Ge(0)] = option(0, "further epochs on transcripts of train")
    confidence: bool = option(True, "confidences of the first pass's words, learned on dev")


def stages(r: Recipe, o: Options) -> None:
    """Stages 0 to 8 are those of every first pass. Whisper has no lattices."""
    first = own_or_public_first_pass(r, o)
    r.exp, has_lattices = f"exp/rescore_{first.name}", first.whisper is None
    for role in ("dev", "test"):
        nbest_lists(r, 9, f"N-best lists of {role}", first, role, f"{r.exp}/nbest_{role}",
                    hyps=f"{first.exp}/decode_{role}")
        if has_lattices:
            lattices(r, 9, f"lattices of {role}", first, role, f"{r.exp}/lattices_{role}")
    lms = {"ngram": first.lm, **{kind: train_neural_lm(r, o, first, kind) for kind in o.lms}}
    searched = o.lms if has_lattices else ()
    for kind in searched:
        for role in ("dev", "test"):
            r.stage(11, f"lattices of {role} by {kind}", "rescore_lattices", jobs=r.run.nj,
                    device=True, config="rescore_lattices", in_lm=lms[kind],
                    in_lattices=f"{r.exp}/lattices_{role}",
                    out_nbest=f"{r.exp}/lattice_{kind}/nbest_{role}/JOB.jsonl", set={"name": kind})
    scores = {
        name: score_roles(r, 12, f"N-best lists by {name}", f"{r.exp}/nbest_ROLE", lm, name,
                          f"{r.exp}/lm_scores/{name}_ROLE.safetensors")
        for name, lm in lms.items()
    }
    lattice_scores = {
        name: score_roles(r, 12, f"lattices by {name}", f"{r.exp}/lattice_{name}/nbest_ROLE",
                          lms[name], name,
                          f"{r.exp}/lattice_{name}/lm_scores/{name}_ROLE.safetensors")
        for name in searched
    }

    roles, manifests = ("dev", "test"), first.data.manifests
    systems = [r.system("first_pass", method="first_pass",
                        label="first pass" if has_lattices else "Whisper's own decoder")]
    for name, label, nbest, paths in (
        *((name, f"{name}, N-best lists", f"{r.exp}/nbest_ROLE", [path])
          for name, path in scores.items()),
        ("all", "all LMs, N-best lists", f"{r.exp}/nbest_ROLE", list(scores.values())),
        *((f"lattice_{name}", f"{name}, lattices", f"{r.exp}/lattice_{name}/nbest_ROLE", [path])
          for name, path in lattice_scores.items()),
    ):
        method = "ngram" if name == "ngram" else "neural"
        systems.append(r.system(name, label=label, method=method, compare_with=systems[:1]))
        rescore(r, 13, systems[-1], nbest, paths, manifests, roles=roles, grid=grid_of(first))
    systems.append(r.system("oracle", label="N-best oracle", method="oracle",
                            compare_with=systems[:1]))
    for role in roles:
        lists, out = f"{r.exp}/nbest_{role}", f"{r.exp}/oracle/decode_{role}"
        select_best(r, 13, f"oracle of {role}", lists, manifests, out)
    for role in roles:
        for system in systems:
            is_first = system is systems[0]
            score(r, 14, f"score {system.name}, {role}", role=role, first=first,
                  hyps=f"{first.exp if is_first else system.folder}/decode_{role}",
                  weights=first.weights if is_first else None, out=system.path(f"score_{role}"))
    if o.confidence:
        posterior_confidences(r, first, list(scores.values()))
    r.report(18, manifests=manifests)
