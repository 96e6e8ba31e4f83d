"""From folders of lists to metrics and plot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.confidence.evaluation import evaluate, reliability
from privasr_k2.confidence.plots import reliability_plot
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.confidence_metrics import MetricOptions
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, write_nbest

OPTIONS = MetricOptions(clip=0.01, num_bins=4, num_replicates=50, confidence=0.95, seed=1)


def make(
    folder: Path, *, sharp: float, users: int = 6, hyp: str = "a x c", confidences: bool = True
) -> Path:
    """Lists of three words, the second one wrong, with confidences of this sharpness."""
    generator, lists = stream(1, folder.name), []
    for number in range(4 * users):
        values = 0.5 + sharp * np.array([0.4, -0.4, 0.4]) + 0.1 * generator.random(3) - 0.05
        sure = tuple(values[: len(hyp.split())].round(3).tolist()) if confidences else None
        hyps = (Hypothesis(1, hyp, 0.0, {}, sure),)
        facts = f"u{number:02}", "test", f"s{number % users}", "a b c d"
        lists.append(NbestList(*facts, False, hyps))
    write_nbest(folder / "1.jsonl", lists)
    return folder


def test_systems_of_two_recognizers(tmp_path: Path) -> None:
    folders = [
        make(tmp_path / group / system / "nbest_test", sharp=sharp)
        for group, system, sharp in (("r1", "own", 0.0), ("r1", "net", 1.0), ("r2", "own", 0.5))
    ]
    results = evaluate(folders, {}, OPTIONS)
    assert [(r.group, r.system) for r in results] == [("r1", "own"), ("r1", "net"), ("r2", "own")]
    own, net, _ = results
    assert (own.words, own.correct, own.speakers, own.wer) == (72, 48, 6, 0.5)
    assert net.metrics["auc"].value == 1 and 0.1 < own.metrics["auc"].value < 0.9
    gain = net.differences["own"]["nce"]
    assert gain.value == pytest.approx(net.metrics["nce"].value - own.metrics["nce"].value)
    assert gain.interval is not None and gain.interval.low > 0
    few = [make(tmp_path / "five" / of / "nbest_test", sharp=1.0, users=5) for of in ("own", "net")]
    _, of_five = evaluate(few, {}, OPTIONS)
    assert of_five.speakers == 5 and of_five.metrics["nce"].interval is None
    assert of_five.differences["own"]["nce"].interval is None
    assert own.differences == {}
    assert list(evaluate(folders, {}, OPTIONS, ["own"])[1].differences) == ["own"]
    both = evaluate(folders[:2], {}, OPTIONS, ["net", "own"])  # each pair once
    assert [list(result.differences) for result in both] == [["net"], []]
    assert net.to_dict()["metrics"]["auc"]["value"] == 1


def test_words_that_are_not_scored_have_no_part(tmp_path: Path) -> None:
    [one] = evaluate([make(tmp_path / "g/s/nbest_test", sharp=1.0)], {"x": "", "b": ""}, OPTIONS)
    assert (one.words, one.correct, one.wer) == (48, 48, pytest.approx(1 / 3))
    assert one.to_dict()["metrics"]["auc"] == {"value": None, "interval": None}


def test_what_is_refused(tmp_path: Path) -> None:
    first = make(tmp_path / "g/a/nbest_test", sharp=1.0)
    with pytest.raises(DataError, match="words and users of a, the first system of g"):
        evaluate([first, make(tmp_path / "g/b/nbest_test", sharp=1.0, hyp="a b")], {}, OPTIONS)
    with pytest.raises(DataError, match=r"1.jsonl:1: .* word confidences, found none for u00"):
        evaluate([make(tmp_path / "g/c/nbest_test", sharp=1.0, confidences=False)], {}, OPTIONS)
    for again in (tmp_path / "g/a/nbest_dev", tmp_path / "other/g/a/nbest_test"):
        with pytest.raises(DataError, match=f"{again}: .* different names in g, found a ag"):
            evaluate([first, make(again, sharp=0.2)], {}, OPTIONS)
    with pytest.raises(DataError, match="expected the systems z of g, found no z"):
        evaluate([first], {}, OPTIONS, ["z"])
    with pytest.raises(DataError, match="recognized words, found none"):
        evaluate([make(tmp_path / "g/d/nbest_test", sharp=1.0, hyp="")], {}, OPTIONS)


def test_reliability_bins() -> None:
    bins = reliability(np.array([0.1, 0.2, 0.9, 1.0]), np.array([False, True, True, True]), 2)
    assert bins.confidence == pytest.approx([0.15, 0.95])
    assert bins.correct.tolist() == [0.5, 1.0] and bins.words.tolist() == [2, 2]
    assert reliability(np.array([0.9]), np.array([True]), 2).words.tolist() == [1]


def test_the_same_results_give_the_same_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = evaluate([make(tmp_path / "g/own/nbest_test", sharp=0.7)], {}, OPTIONS)
    for name in ("a.svg", "b.svg"):
        reliability_plot(results, tmp_path / name)
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn == (tmp_path / "b.svg").read_text() and "share of correct words" in drawn
