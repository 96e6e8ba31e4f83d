"""Word confidences: a classifier of correct and wrong words, and its evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from local.stages.first_pass import FirstPass
from privasr_k2.recipe.declare import Declared, Recipe


def train_confidence(
    r: Recipe, number: int, title: str, nbest: str, manifests: str, out: str, *,
    set: dict[str, Any] | None = None, **flags: Any,
) -> str:
    """A classifier (own: the recognizer's confidence alone; network) and its calibration."""
    return r.stage(number, title, "train_confidence", config="confidence", in_nbest=nbest, **flags,
                   in_manifests=manifests, out_model=out, set=set)


def apply_confidence(
    r: Recipe, number: int, title: str, model: str, nbest: str, out: str, *, calibrated: bool,
    scores: Sequence[str] = (),
) -> str:
    """Lists with a confidence for each word of their best hypotheses."""
    r.stage(number, title, "apply_confidence", config="apply_confidence", in_model=model,
            in_nbest=nbest,
            in_scores=scores, out_nbest=f"{out}/1.jsonl", set={"calibrated": calibrated})
    return out


def evaluate_confidence(
    r: Recipe, number: int, nbest: Sequence[str], manifests: str, out: str, baselines: Sequence[str]
) -> None:
    """NCE, ECE and AUC of confidences, each system compared with the ``baselines``."""
    r.about("confidence", "word confidences").add("confidence", out)
    r.stage(number, "quality of the confidences", "evaluate_confidence",
            config="evaluate_confidence", in_nbest=nbest, in_manifests=manifests, out_dir=out,
            set={"baselines": baselines})


def gold_references(r: Recipe) -> str:
    """Stage 0: the calls of Earnings-21 with their annotated names, in four classes."""
    gold = r.stage(0, "gold words and names of calls", "prepare_earnings21", config="earnings21",
                   raw_corpus=r.data.corpus_dir, out_references="data/earnings21_gold")
    return r.stage(0, "annotated names, in four classes", "tag_entities", config="tag_entities",
                   in_manifests=gold, out_manifests="data/earnings21_names",
                   set={"taggers": ["gold"]})


def score_lists(r: Recipe, number: int, nbest: Mapping[str, str], manifests: str) -> None:
    """Count the errors of recognizers' first hypotheses, each compared with all before it.

    Args:
        nbest: recognizer -> its lists of test.
    """
    before: list[Declared] = []
    for name, lists in nbest.items():
        system = r.system(name, label=name, method="public", compare_with=before)
        r.stage(number, f"score {name}", "wer", config="wer", in_nbest=lists,
                in_manifests=manifests, out_dir=system.path("score_test"), set={"role": "test"})
        before.append(system)


def posterior_confidences(r: Recipe, first: FirstPass, lm_scores: list[str]) -> None:
    """Stages 15 to 17 of rescore: lattice posteriors, and a classifier that learns on dev."""
    exp, manifests = f"{r.exp}/confidence", first.data.manifests
    scores = {role: [path.replace("ROLE", role) for path in lm_scores] for role in ("dev", "test")}
    for model in ("own", "network"):
        train_confidence(r, 15, f"confidences, {model}, learned on dev", f"{r.exp}/nbest_dev",
                         manifests, f"{exp}/models/{model}", in_scores=scores["dev"],
                         in_weights=first.weights, set={"classifier": model})
    systems = {
        "posterior": ("own", False),
        "posterior_calibrated": ("own", True),
        "network": ("network", True),
    }
    tested = [
        apply_confidence(r, 16, f"confidences of test, {system}", f"{exp}/models/{model}",
                         f"{r.exp}/nbest_test", f"{exp}/{system}/nbest_test", scores=scores["test"],
                         calibrated=calibrated)
        for system, (model, calibrated) in systems.items()
    ]
    evaluate_confidence(r, 17, tested, manifests, f"{exp}/results",
                        ["posterior", "posterior_calibrated"])
