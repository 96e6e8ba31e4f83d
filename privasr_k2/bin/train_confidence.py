r"""Train and calibrate a classifier for the probability that a recognized word is correct.

    privasr verb train_confidence --in-nbest exp/x/nbest_dev --in-weights exp/x/weights.json \
        --in-manifests data/manifests --out-model exp/x/confidence/model \
        --config conf/confidence.yaml#confidence

The lists need references. The recognizer must not be trained on their utterances. --in-calibration
has other utterances, on which calibration is fitted; without it, cross-fitting over users takes its
place. --in-scores adds scores of LMs to the features.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.confidence.features import word_features
from privasr_k2.confidence.model import (
    ConfidenceConfig,
    check_unseen,
    examples_of,
    feature_names,
    save_model,
    train_model,
)
from privasr_k2.decoding.lm_scores import read_lm_scores
from privasr_k2.decoding.tune import read_weights
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import read_nbest


def main() -> None:
    """Parse, train, write."""
    args = cli.arguments(
        __doc__,
        in_nbest="DIR lists with references",
        in_scores="[FILE...] of lm_scores",
        in_calibration="[DIR] other lists with references",
        in_calibration_scores="[FILE...]",
        in_weights="[FILE] weights.json of the first pass",
        in_manifests="[DIR] to find units to score",
        out_model="DIR the model's folder",
    )
    config = cli.load(ConfidenceConfig, args)
    # Without weights: as recognizers are that tell no scores.
    weights = read_weights(args.in_weights) if args.in_weights else Weights(1.0, 0.0)
    settings, units = config.settings(weights), read_corpus_info(args.in_manifests).scored_units

    lists = read_nbest(args.in_nbest)
    features = word_features(lists, read_lm_scores(args.in_scores, lists), settings)
    names = feature_names(config, features, args.in_nbest)
    train, held_out = examples_of(lists, features, names, units), None
    if args.in_calibration is not None:
        others = read_nbest(args.in_calibration)
        check_unseen(others, train.utterances)
        scores = read_lm_scores(args.in_calibration_scores, others)
        features = word_features(others, scores, settings)
        held_out = examples_of(others, features, names, units)
    save_model(train_model(config, names, settings, train, held_out), args.out_model)


if __name__ == "__main__":
    cli.run(main)
