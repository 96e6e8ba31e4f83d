"""Second passes: N-best lists, their words scored by LMs, and what weights chosen on dev select."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from local.stages.data import needs_lower_case
from local.stages.first_pass import FirstPass
from privasr_k2.recipe.declare import Declared, Recipe

NeuralLm = Literal["lstm", "char_lstm", "transformer"]


def nbest_lists(
    r: Recipe, number: int, title: str, first: FirstPass, role: str, out: str, *, hyps: str = "",
    num_paths: int | None = None,
) -> str:
    """The folder of N-best lists of a role, from the first pass's graph or from Whisper.

    Args:
        hyps: where Whisper's best hypotheses go; a CTC first pass has decoded before.
    """
    if first.whisper is not None:
        return whisper_lists(r, number, title, first.whisper, first.data.manifests, role, out,
                             hyps=hyps, num_hypotheses=num_paths)
    r.stage(number, title, "decode", jobs=r.run.nj, device=True, config=("decode", "nbest"),
            in_model=first.am, in_graph=first.graph, in_weights=first.weights,
            in_feats=first.data.feats, in_lang=first.lang, out_nbest=f"{out}/JOB.jsonl",
            set={"backend": "k2", "role": role, "num_paths": num_paths})
    return out


def whisper_lists(
    r: Recipe, number: int, title: str, whisper: Path, manifests: str, role: str, out: str, *,
    hyps: str = "", num_hypotheses: int | None = None,
) -> str:
    """The folder of N-best lists of a role by Whisper's own decoder."""
    needs_lower_case(r, "texts of Whisper")
    r.stage(number, title, "whisper_nbest", jobs=r.run.nj, device=True, config="whisper_nbest",
            in_encoder=whisper, in_cuts=f"{manifests}/cuts_{role}.jsonl.gz",
            out_nbest=f"{out}/JOB.jsonl", out_about=f"{out}/JOB.yaml",
            out_hyps=f"{hyps}/JOB.jsonl" if hyps else None, set={"num_hypotheses": num_hypotheses})
    return out


def lattices(r: Recipe, number: int, title: str, first: FirstPass, role: str, out: str) -> str:
    """The folder of lattices of a role, from the first pass's graph."""
    r.stage(number, title, "decode", jobs=r.run.nj, device=True, config=("decode", "lattices"),
            in_model=first.am, in_graph=first.graph, in_weights=first.weights,
            in_feats=first.data.feats, out_lattices=f"{out}/JOB.safetensors",
            set={"backend": "k2", "role": role})
    return out


def train_lm(
    r: Recipe, number: int, title: str, kind: str, out: str, *, config: Sequence[str] = (),
    set: dict[str, Any] | None = None, **flags: Any,
) -> str:
    """A neural LM of one of the kinds of :data:`NeuralLm`."""
    return r.stage(number, title, "train_lm", train=True, config=[f"lm_{kind}", *config], **flags,
                   out_dir=out, set=set)


def train_neural_lm(r: Recipe, o: Any, first: FirstPass, kind: str) -> str:
    """Stage 10 of rescore: trained on text, then maybe on the transcripts of train.

    Args:
        o: options of recipe rescore.
    """
    common = {"in_manifests": first.data.manifests, "in_lang": first.data.lang}
    lm = train_lm(r, 10, f"neural LM, {kind}", kind, f"{r.exp}/lm/{kind}", **common,
                  raw_text=o.nnlm_text, set={"epochs": o.lm_epochs})
    if o.finetune_epochs == 0:
        return lm
    return train_lm(r, 10, f"neural LM, {kind}, on the transcripts", kind, f"{lm}_tuned", **common,
                    in_init=lm, set={"text": "train", "epochs": o.finetune_epochs})


def score_words(r: Recipe, number: int, title: str, nbest: str, lm: str, name: str,
                out: str) -> str:
    """The log-probability of every word of N-best lists by an LM."""
    return r.stage(number, title, "lm_scores", device=True, config="lm_scores", in_nbest=nbest,
                   in_lm=lm, out_scores=out, set={"name": name})


def score_roles(r: Recipe, number: int, title: str, nbest: str, lm: str, name: str,
                out: str) -> str:
    """:func:`score_words` of dev and test, which ``ROLE`` stands for in paths."""
    for role in ("dev", "test"):
        score_words(r, number, f"words of {role}, {title}", nbest.replace("ROLE", role), lm, name,
                    out.replace("ROLE", role))
    return out


def select_best(
    r: Recipe, number: int, title: str, nbest: str, manifests: str, out: str, *,
    scores: Sequence[str] = (),
    weights: str = "",
) -> str:
    """The best hypothesis of each list by weighted scores, or, without scores, by errors."""
    r.stage(number, title, "select_nbest", in_nbest=nbest, in_scores=scores, in_manifests=manifests,
            in_weights=weights, out_hyps=f"{out}/1.jsonl")
    return out


def grid_of(first: FirstPass) -> tuple[str, ...]:
    """The sections of conf with the weights that are tried on dev."""
    return ("rescore", "rescore_whisper") if first.whisper else ("rescore",)


def rescore(
    r: Recipe, number: int, system: Declared, nbest: str, scores: Sequence[str], manifests: str, *,
    roles: Sequence[str] = ("test",),
    grid: Sequence[str] = ("rescore",),
    frozen: str | None = None,
) -> str:
    """The weights of LMs with the fewest errors on dev, and what they choose; ``ROLE`` is the role.

    Args:
        frozen: weights of another system, whose LM weight and insertion penalty are kept.

    Returns:
        The file with the weights.
    """
    weights = r.stage(number, f"weights of {system.name}, chosen on dev", "tune_weights",
                      config=grid, in_nbest=nbest.replace("ROLE", "dev"),
                      in_scores=[path.replace("ROLE", "dev") for path in scores],
                      in_frozen=frozen, in_manifests=manifests,
                      out_weights=system.path("weights", "rescoring.json"))
    for role in roles:
        select_best(r, number, f"{role} by {system.name}", nbest.replace("ROLE", role), manifests,
                    f"{system.folder}/decode_{role}",
                    scores=[path.replace("ROLE", role) for path in scores], weights=weights)
    return weights
