"""Word confidences from other recognizers' output: trained, calibrated, evaluated."""

from dataclasses import dataclass
from pathlib import Path

from local.stages.confidence import (
    apply_confidence,
    evaluate_confidence,
    gold_references,
    score_lists,
    train_confidence,
)
from local.stages.data import prepare_corpus
from local.stages.second_pass import score_words, whisper_lists
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Words, option, path_option


@dataclass(frozen=True)
class Options:
    """The recognizers; --arpa adds log-probabilities of a language model as features."""

    recognizers: Words = option(("kaldi_rev", "kaldi_librispeech"),
                                "folders ctm_NAME of the corpus")
    whisper: Path | None = path_option(
        "folder of a Whisper model for CTranslate2, which recognizes the corpus's audio")


def stages(r: Recipe, o: Options) -> None:
    """Baselines of the network: the recognizer's own confidences, plain and calibrated."""
    data = references = "data/manifests"
    arpa = r.data.arpa
    r.exp = "exp/confidence_lm" if arpa else "exp/confidence"
    if o.whisper is not None:
        recognizers, lists_in = (f"whisper_{o.whisper.name}",), r.exp
        prepare_corpus(r, "manifests", data)
        for role in ("train", "dev", "test"):
            whisper_lists(r, 0, f"N-best lists of {role}", o.whisper, data, role,
                          f"{r.exp}/{recognizers[0]}/nbest_{role}")
    elif r.corpus.name == "earnings21":
        recognizers, data, lists_in = o.recognizers, "data/earnings21", "data/earnings21"
        r.stage(0, "gold and recognized words, in train, dev and test", "prepare_earnings21",
                config="earnings21", raw_corpus=r.data.corpus_dir, out_dir=data)
        references = gold_references(r)
    else:
        r.refuse("recipe confidence", "recognizers' output: earnings21, or --whisper",
                 r.corpus.name, "give a Whisper model: --whisper DIR; or run recipe rescore")
    scores = {}  # of recognizer and role
    for recognizer in recognizers if arpa else ():
        for role in ("train", "dev", "test"):
            scores[recognizer, role] = score_words(
                r, 1, f"LM scores of {recognizer}, {role}", f"{lists_in}/{recognizer}/nbest_{role}",
                str(arpa), "lm", f"{r.exp}/{recognizer}/lm_scores/lm_{role}.safetensors"
            )
    models = {}
    for recognizer in recognizers:
        lists, folder = f"{lists_in}/{recognizer}", f"{r.exp}/{recognizer}/models"
        for calibration in ("platt", "isotonic"):
            models[recognizer, f"own_{calibration}"] = train_confidence(
                r, 2, f"{recognizer}, own confidences, {calibration}", f"{lists}/nbest_dev", data,
                f"{folder}/own_{calibration}", set={"classifier": "own", "calibration": calibration}
            )
        models[recognizer, "network"] = train_confidence(
            r, 2, f"{recognizer}, network", f"{lists}/nbest_train", data, f"{folder}/network",
            in_scores=scores.get((recognizer, "train")), in_calibration=f"{lists}/nbest_dev",
            in_calibration_scores=scores.get((recognizer, "dev")),
        )
    systems = {
        "own": ("own_platt", False), "own_platt": ("own_platt", True),
        "own_isotonic": ("own_isotonic", True),
        "network_raw": ("network", False), "network": ("network", True),
    }
    tested = [
        apply_confidence(r, 3, f"{recognizer}, {system}, test", models[recognizer, model],
                         f"{lists_in}/{recognizer}/nbest_test",
                         f"{r.exp}/{recognizer}/{system}/nbest_test", calibrated=calibrated,
                         scores=[scores[recognizer, "test"]] if arpa and model == "network" else [])
        for recognizer in recognizers
        for system, (model, calibrated) in systems.items()
    ]
    evaluate_confidence(r, 4, tested, data, f"{r.exp}/results", ["own", "own_isotonic"])
    score_lists(r, 4, {name: f"{lists_in}/{name}/nbest_test" for name in recognizers}, references)
    r.report(5, manifests=data)
