"""From lists with references to confidences and their evaluation, from the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.lm_scores import write_lm_scores
from privasr_k2.fileio import read_json, write_json
from privasr_k2.randomness import stream
from privasr_k2.report.measures import Context
from privasr_k2.report.readers.confidence import confidence
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, read_nbest, write_nbest
from tests.support.conf import section
from tests.support.verbs import call, refused

WORDS = ["ab", "bc", "cd", "de", "ef"]


def lists(folder: Path, seed: int, *, times: bool = True) -> Path:
    """Lists of two hypotheses, whose wrong words tend to be short and of low confidence."""
    generator, made, role = stream(seed, "lists"), [], folder.name.removeprefix("nbest_")
    for number in range(40):
        ref = generator.choice(WORDS, 8).tolist()
        wrong = generator.random(8) < 0.3
        hyp = ["xx" if bad else word for word, bad in zip(ref, wrong)]
        other = [word if generator.random() < 0.9 else "yy" for word in hyp]
        sure = np.where(wrong, generator.beta(2, 2, 8), generator.beta(5, 2, 8)).round(3).tolist()
        lengths = np.where(wrong, 0.1, 0.3) + 0.2 * generator.random(8)
        starts = np.cumsum(lengths) - lengths
        spans = tuple((round(float(s), 3), round(float(s + d), 3)) for s, d in zip(starts, lengths))
        times_of = spans if times else None
        hyps = [Hypothesis(1, " ".join(hyp), -1.0, {"graph": -2.0}, tuple(sure), times_of)]
        if other != hyp:
            turned = tuple(sure[::-1])
            hyps.append(Hypothesis(2, " ".join(other), -2.0, {"graph": -2.0}, turned, times_of))
        name, speaker = f"{role}{number:02}", f"s{number % 6}"
        made.append(NbestList(name, "dev", speaker, " ".join(ref), False, tuple(hyps)))
    made.append(NbestList(f"{role}99", "dev", "s1", "lost words", True, ()))
    write_nbest(folder / "1.jsonl", made)
    return folder


def scores(folder: Path, path: Path) -> Path:
    found = read_nbest(folder)
    number = sum(len(hyp.words.split()) + 1 for one in found.lists for hyp in one.hyps)
    write_lm_scores(path, "lm", found, -stream(1, "lm").random(number))
    return path


def test_from_lists_to_a_table(tmp_path: Path) -> None:
    dev, test = lists(tmp_path / "r/own/nbest_dev", 1), lists(tmp_path / "r/own/nbest_test", 2)
    write_json(tmp_path / "corpus.json", {"name": "made", "scored_units": {"ab": ""}})
    weights = {"role": "dev", "lm_weight": 0.5, "insertion_penalty": 1.0}
    write_json(tmp_path / "weights.json", weights)
    call(
        f"train_confidence --in-nbest {dev} --in-manifests {tmp_path}"
        f" --in-weights {tmp_path}/weights.json"
        f" --in-scores {scores(dev, tmp_path / 'dev.safetensors')}"
        f" --out-model {tmp_path}/model --config {section('confidence')} --set batch_size=32"
    )
    model = read_json(tmp_path / "model/confidence.json")
    chosen = (model["lm_weight"], model["insertion_penalty"], model["calibration"])
    assert chosen == (0.5, 1.0, "platt")
    assert {"agreement", "seconds", "lm_lm"} <= set(model["features"])
    assert "depth" not in model["features"]

    of_test = scores(test, tmp_path / "test.safetensors")
    for calibrated in ("true", "false"):
        call(
            f"apply_confidence --in-model {tmp_path}/model --in-nbest {test}"
            f" --in-scores {of_test}"
            f" --out-nbest {tmp_path}/r/net_{calibrated}/nbest_test/1.jsonl"
            f" --config {section('apply_confidence')} --set calibrated={calibrated}"
        )
    before, after = read_nbest(test), read_nbest(tmp_path / "r/net_true/nbest_test")
    for old, new in zip(before.lists, after.lists, strict=True):
        assert new.ref == old.ref and [h.words for h in new.hyps] == [h.words for h in old.hyps]
        assert all(h.confidences != o.confidences for h, o in zip(new.hyps, old.hyps))

    call(
        f"evaluate_confidence --in-manifests {tmp_path} --in-nbest {test}"
        f" {tmp_path}/r/net_true/nbest_test {tmp_path}/r/net_false/nbest_test"
        f" --out-dir {tmp_path}/results --config {section('evaluate_confidence')}"
    )
    own, net, raw = read_json(tmp_path / "results/confidence_metrics.json")
    assert net["metrics"]["auc"]["value"] > own["metrics"]["auc"]["value"] + 0.05
    assert net["metrics"]["nce"]["value"] > own["metrics"]["nce"]["value"]
    # Platt's sigmoid keeps the order.
    assert raw["metrics"]["auc"]["value"] == pytest.approx(net["metrics"]["auc"]["value"], abs=1e-3)
    assert (tmp_path / "results/reliability_r.svg").is_file()
    told = confidence(str(tmp_path / "results"), Context((), 1, 0.95, 1, ())).measures
    by_name = {(one.item, one.metric): one for one in told}
    assert by_name["r/net_true", "confidence_auc"].value == net["metrics"]["auc"]["value"]
    assert (
        by_name["r/net_true less r/own", "nce_difference"].low
        == net["differences"]["own"]["nce"]["interval"][0]
    )
    assert {"own", "net_true"} == {own["system"], net["system"]} and own["speakers"] == 6


def test_lists_of_one_hypothesis_take_a_model_with_agreement(tmp_path: Path) -> None:
    dev, test = lists(tmp_path / "nbest_dev", 1), lists(tmp_path / "nbest_test", 2)
    call(
        f"train_confidence --in-nbest {dev} --out-model {tmp_path}/model"
        f" --config {section('confidence')} --set batch_size=32"
    )
    assert "agreement" in read_json(tmp_path / "model/confidence.json")["features"]
    alone = [dataclasses.replace(one, hyps=one.hyps[:1]) for one in read_nbest(test).lists]
    write_nbest(test / "1.jsonl", alone)
    call(
        f"apply_confidence --in-model {tmp_path}/model --in-nbest {test}"
        f" --out-nbest {tmp_path}/out/1.jsonl --config {section('apply_confidence')}"
    )
    assert len(read_nbest(tmp_path / "out").lists) == len(alone)


def test_errors_are_one_message(tmp_path: Path) -> None:
    dev, bare = lists(tmp_path / "nbest_dev", 1), lists(tmp_path / "nbest_bare", 1, times=False)
    train = f"--in-nbest {dev} --out-model {tmp_path}/model --config {section('confidence')}"
    calibration = lists(tmp_path / "nbest_cal", 3)
    call(f"train_confidence {train} --in-calibration {calibration}")
    other_scores = scores(dev, tmp_path / "dev.safetensors")
    with refused("expected scores of the lists in"):
        call(
            f"train_confidence {train} --in-calibration {calibration}"
            f" --in-calibration-scores {other_scores}"
        )
    with refused("41 of 41 that it was, dev00 the first"):
        call(f"train_confidence {train} --in-calibration {dev}")
    for folder, message in (
        (bare, "found no seconds"),
        (dev, f"{dev}/1.jsonl:1: expected utterances that"),
        (calibration, f"{calibration}/1.jsonl:1: expected utterances that"),
    ):
        with refused(message):
            call(
                f"apply_confidence --in-model {tmp_path}/model --in-nbest {folder}"
                f" --out-nbest {tmp_path}/out/1.jsonl --config {section('apply_confidence')}"
            )
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "model/confidence.json").is_file()
