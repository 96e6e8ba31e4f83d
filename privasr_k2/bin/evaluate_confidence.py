r"""Evaluate word confidences by NCE, ECE and AUC, with intervals over users and a reliability plot.

    privasr verb evaluate_confidence --out-dir exp/c/results \
        --in-nbest exp/c/rev/own/nbest_test exp/c/rev/network/nbest_test \
        --in-manifests data/earnings21 --config conf/confidence.yaml#evaluate_confidence

A system has the name of the folder of its lists; its recognizer has that of the folder above.
--out-dir gets confidence_metrics.json and reliability_<recognizer>.svg.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from privasr_k2.bin import cli
from privasr_k2.confidence.evaluation import evaluate
from privasr_k2.confidence.plots import reliability_plot
from privasr_k2.fileio import atomic_path, write_json
from privasr_k2.scoring.confidence_metrics import MetricOptions
from privasr_k2.scoring.corpus_info import read_corpus_info


@dataclass(frozen=True)
class EvaluateConfidenceOptions(MetricOptions):
    """Settings of the evaluation; defaults in ``conf/confidence.yaml#evaluate_confidence``.

    Args:
        baselines: systems that the others are compared with; none: the first of each recognizer.
    """

    baselines: list[str]


def main() -> None:
    """Parse, evaluate, write."""
    args = cli.arguments(
        __doc__,
        in_nbest="DIR... RECOGNIZER/SYSTEM/nbest_ROLE",
        in_manifests="[DIR] with corpus.json: units to score",
        out_dir="DIR for the results",
    )
    options, corpus = cli.load(EvaluateConfidenceOptions, args), read_corpus_info(args.in_manifests)
    results = evaluate(args.in_nbest, corpus.scored_units, options, options.baselines)
    with atomic_path(args.out_dir) as temporary:
        temporary.mkdir()
        write_json(temporary / "confidence_metrics.json", [result.to_dict() for result in results])
        for group, systems in groupby(results, key=lambda result: result.group):
            reliability_plot(list(systems), temporary / f"reliability_{group}.svg")


if __name__ == "__main__":
    cli.run(main)
