"""Word confidences, as ``evaluate_confidence`` measured them."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.fileio import read_json
from privasr_k2.report.measures import Context, Measure, Reading

_METRICS = {"nce": "nce", "ece_width": "ece", "ece_mass": "ece_mass", "auc": "confidence_auc"}


def confidence(path: str, context: Context) -> Reading:
    """A folder of ``evaluate_confidence``; items are systems, and pairs of them for differences."""
    measures: list[Measure] = []
    for of in read_json(Path(path) / "confidence_metrics.json"):
        item, speakers = f"{of['group']}/{of['system']}", int(of["speakers"])
        measures.append(Measure("speakers", speakers, item=item))
        measures.append(Measure("words", int(of["words"]), item=item))
        measures.append(Measure("correct", 100 * of["correct"] / of["words"], item=item))
        measures.append(Measure("wer", None if of["wer"] is None else 100 * of["wer"], item=item))
        for name, metric in _METRICS.items():
            found = of["metrics"][name]["value"], of["metrics"][name]["interval"]
            measures.append(Measure.drawn(metric, *found, speakers, "", item))
        for other, differences in of["differences"].items():
            pair = f"{item} less {of['group']}/{other}"
            for name, metric in _METRICS.items():
                found = differences[name]["value"], differences[name]["interval"]
                measures.append(Measure.drawn(f"{metric}_difference", *found, speakers, "", pair))
    return Reading(tuple(measures))
