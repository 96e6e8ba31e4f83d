"""Neural LMs, N-best lists of the first pass, and how LMs rescore them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from local.stages.data import Data
from local.stages.first_pass import FirstPass
from privasr_k2.recipe.declare import Recipe

NeuralLm = Literal["char_lstm", "lstm", "transformer"]


def train_neural_lm(
    r: Recipe, number: int, title: str, kind: str, data: Data, out: str, *,
    text: Path | None = None, epochs: int | None = None,
) -> str:
    """A neural LM, of the corpus's own text or of ``text``."""
    return r.stage(number, title, "train_lm", train=True, config=f"lm_{kind}",
                   in_manifests=data.manifests, in_lang=data.lang, raw_text=text, out_dir=out,
                   set={"epochs": epochs})


def make_nbest(
    r: Recipe, number: int, title: str, first: FirstPass, role: str, folder: str, *,
    num_paths: int | None = None,
) -> str:
    """N-best lists of a role, in ``FOLDER/nbest_ROLE``."""
    out = f"{folder}/nbest_{role}"
    r.stage(number, title, "make_nbest", jobs=r.run.nj, device=True, config=("decode", "nbest"),
            in_model=first.am, in_graph=first.graph, in_weights=first.weights,
            in_feats=first.data.feats, in_lang=first.data.lang, out_nbest=f"{out}/JOB.jsonl",
            set={"backend": "k2", "role": role, "num_paths": num_paths})
    return out


def score_words(
    r: Recipe, number: int, title: str, *, nbest: str, lm: str, name: str, out: str
) -> str:
    """Log-probabilities of all words of N-best lists by an LM."""
    return r.stage(number, title, "score_nbest", device=True, config="score_nbest", in_nbest=nbest,
                   in_lm=lm, out_scores=out, set={"name": name})


def choose_weights(
    r: Recipe, number: int, title: str, *, nbest: str, scores: Iterable[str], data: Data, out: str,
    **settings: Any,
) -> str:
    """LM weights and insertion penalty of rescoring, chosen on dev."""
    return r.stage(number, title, "tune_rescoring", config="rescore", in_nbest=nbest,
                   in_scores=scores, in_manifests=data.manifests, out_weights=out, set=settings)


def rescore(
    r: Recipe, number: int, title: str, *, nbest: str, scores: Iterable[str], weights: str,
    data: Data, out: str,
) -> str:
    """The best hypotheses of N-best lists with the chosen weights, in the folder ``out``."""
    r.stage(number, title, "rescore_nbest", in_nbest=nbest, in_scores=scores,
            in_manifests=data.manifests, in_weights=weights, out_hyps=f"{out}/1.jsonl")
    return out
