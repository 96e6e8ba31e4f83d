"""Sharing out, batching, and records of a job."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding.hyps import Hyp
from privasr_k2.decoding.jobs import (
    DecodeConfig,
    ShareConfig,
    batches,
    choose_device,
    decode_cuts,
    recognized,
    speaker_of,
    split_by_duration,
)
from privasr_k2.errors import ConfigError
from privasr_k2.randomness import stream
from tests.support.conf import section
from tests.support.nbest_jobs import Cut as MadeCut
from tests.support.nbest_jobs import Supervision


def settings(*overrides: str) -> DecodeConfig:
    return config.load(DecodeConfig, [section("decode"), section("decode", "tiny")], overrides)


@dataclass
class Cut(MadeCut):
    duration: float = 0.0

    def load_features(self) -> np.ndarray:
        return np.full((int(self.duration * 10), 2), self.duration, dtype=np.float32)


def some_items() -> list[tuple[str, float, str]]:
    seconds = stream(1, "seconds").uniform(1, 30, size=50)
    return [(f"u{n}", float(s), f"u{n}") for n, s in enumerate(seconds)]


@pytest.mark.parametrize("num_jobs", [1, 2, 7])
def test_shares_are_whole_even_and_always_the_same(num_jobs: int) -> None:
    items = some_items()
    shares = split_by_duration(items, num_jobs)
    assert sorted(itertools.chain(*shares)) == sorted(name for name, _, _ in items)
    seconds = {name: s for name, s, _ in items}
    loads = [sum(seconds[name] for name in share) for share in shares]
    assert max(loads) - min(loads) <= 30
    assert split_by_duration(items[::-1], num_jobs) == shares


def test_more_jobs_than_utterances() -> None:
    assert split_by_duration([("a", 1.0, "a")], 3) == [["a"], [], []]


def test_batches() -> None:
    cuts = [Cut(str(n), seconds) for n, seconds in enumerate([50.0, 30.0, 30.0, 10.0])]
    found = [[cut.id for cut in batch] for batch in batches(cuts, 60.0)]  # type: ignore[arg-type]
    assert found == [["0"], ["1", "2"], ["3"]]
    assert [len(batch) for batch in batches(cuts, 0.1)] == [1, 1, 1, 1]  # type: ignore[arg-type]


class Model:
    """Answers with the features themselves."""

    def log_probs(self, features: Any, lengths: Any) -> tuple[Any, Any]:
        return features, lengths


class Decoder:
    """Recognizes an utterance's duration; finds no path in one of two seconds."""

    def __init__(self, points: int) -> None:
        self.points = points

    def decode(self, log_probs: Any, lengths: Any) -> list[Any]:
        seconds = [int(row[0, 0]) for row in log_probs]
        return [
            None if n == 2 else (Hyp(0.0, 0.0, str(n), 0.0, 0.0),) * self.points for n in seconds
        ]


def test_each_job_writes_its_cuts_once(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("torch")
    cuts = [Cut(f"u{n}", float(n)) for n in range(1, 8)]
    records = []
    for job in (1, 2):
        grid = ("lm_weights=[0.4,0.8,1.2]", "insertion_penalties=[0.0,1.0]")
        chosen = settings(f"job={job}", "num_jobs=2", "max_duration=9", *grid)
        records += list(decode_cuts(Model(), Decoder(6), cuts, chosen, "cpu"))  # type: ignore[arg-type]
    assert sorted(record.id for record in records) == [cut.id for cut in cuts]
    for record in records:
        assert (record.part, record.speaker, record.ref) == ("dev_x", "s1", "ab b")
        assert len(record.hyps) == 6
        assert record.no_path == (record.id == "u2")
        assert record.hyps[0].words == ("" if record.no_path else record.id[1:])
    lost = next(record for record in records if record.no_path)
    assert {(hyp.lm_weight, hyp.insertion_penalty) for hyp in lost.hyps} == {
        (w, p) for w in (0.4, 0.8, 1.2) for p in (0.0, 1.0)
    }
    assert "no path within the beam for 1 of" in caplog.text and "u2" in caplog.text


def test_batches_in_random_order_are_the_same_batches() -> None:
    pytest.importorskip("torch")
    cuts = [Cut(f"u{n}", 1.0 + n / 10) for n in range(40)]
    share = ShareConfig(role="pool", job=1, num_jobs=1, max_duration=10.0)

    def seen(shuffle: np.random.Generator | None) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []

        def recognize(features: Any, lengths: Any, batch: Any) -> list[str]:
            found.append(tuple(cut.id for cut in batch))
            return [cut.id for cut in batch]

        given: Any = cuts
        results = recognized(recognize, given, share, "cpu", shuffle)
        assert all(cut.id == name for cut, name in results)
        return found

    ordered, shuffled = seen(None), seen(stream(1, "order"))
    assert ordered != shuffled == seen(stream(1, "order"))
    assert sorted(ordered) == sorted(shuffled) and ordered[0] == ("u39", "u38")


def test_batches_by_speaker_have_one_speaker_and_follow_each_other() -> None:
    pytest.importorskip("torch")
    cuts: Any = [Cut(f"u{n}", 1.0 + n / 10) for n in range(20)]
    for n, cut in enumerate(cuts):
        cut.supervisions = [Supervision(speaker=f"s{n % 3}")]
    share, batched = ShareConfig(role="test", job=1, num_jobs=1, max_duration=6.0), []

    def recognize(features: Any, lengths: Any, batch: Any) -> list[str]:
        batched.append([speaker_of(cut) for cut in batch])
        return [cut.id for cut in batch]

    results = list(recognized(recognize, cuts, share, "cpu", by_speaker=True))
    assert sorted(name for _, name in results) == sorted(cut.id for cut in cuts)
    assert all(len(set(speakers)) == 1 for speakers in batched)
    in_turn = [speakers[0] for speakers in batched]
    assert len(in_turn) > 3 and in_turn == sorted(in_turn)


@pytest.mark.parametrize(
    "override",
    [
        *("job=0", "job=2", "search_beam=0", "min_active_states=20000", "lm_weights=[]"),
        *("lm_weights=[-1.0]", "insertion_penalties=[]", "max_duration=0", "search_lm_weight=-1"),
    ],
)
def test_ranges(override: str) -> None:
    with pytest.raises(ConfigError, match="allows"):
        settings(override)


def test_a_named_device_is_taken() -> None:
    assert choose_device("cuda:1") == "cuda:1"
