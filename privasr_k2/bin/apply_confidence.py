r"""Add confidences of a trained classifier to all words of N-best lists.

    privasr verb apply_confidence --in-model exp/x/confidence/model --in-nbest exp/x/nbest_test \
        --out-nbest exp/x/confidence/network/nbest_test/1.jsonl \
        --config conf/confidence.yaml#apply_confidence

All other fields of the lists stay. References are not read. Utterances of the classifier's training
are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from privasr_k2.bin import cli
from privasr_k2.confidence.features import word_features
from privasr_k2.confidence.model import check_unseen, load_model, select, with_confidences
from privasr_k2.decoding.lm_scores import read_lm_scores
from privasr_k2.scoring.nbest_lists import read_nbest, write_nbest


@dataclass(frozen=True)
class ApplyConfidenceOptions:
    """Settings of the lists to write; defaults in ``conf/confidence.yaml#apply_confidence``.

    Args:
        calibrated: ``False`` writes what the classifier says before calibration.
    """

    calibrated: bool


def main() -> None:
    """Parse, apply, write."""
    args = cli.arguments(
        __doc__,
        in_model="DIR of train_confidence",
        in_nbest="DIR lists, *.jsonl",
        in_scores="[FILE...] of lm_scores",
        out_nbest="FILE the lists, JSON Lines",
    )
    options = cli.load(ApplyConfidenceOptions, args)
    model, lists = load_model(args.in_model), read_nbest(args.in_nbest)
    check_unseen(lists, model.trained_on)
    features = word_features(lists, read_lm_scores(args.in_scores, lists), model.settings)
    values = select(features, model.names, args.in_nbest)
    confidences = model.confidences(values, calibrated=options.calibrated)
    write_nbest(args.out_nbest, with_confidences(lists, confidences))


if __name__ == "__main__":
    cli.run(main)
