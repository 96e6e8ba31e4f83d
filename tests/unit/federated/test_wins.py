"""For whom a system is the best, by counting people one by one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.federated.wins import Figures, wins
from tests.support.verbs import call


def systems(people: int, seed: int) -> dict[str, Figures]:
    rng = np.random.default_rng(seed)
    words = rng.permutation(people) + 5
    return {
        name: {f"p{n}": (float(rng.integers(0, 4)), int(words[n])) for n in range(people)}
        for name in ("none", "cache", "names")
    }


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("people", [3, 10, 31])
def test_counts_people_one_by_one(people: int, groups: int) -> None:
    given = systems(people, people)
    found = wins(given, groups)
    assert found[0].people == people
    assert sum(of.people for of in found[1:]) == (people if groups > 1 else 0)
    ranked = sorted(given["none"], key=lambda name: given["none"][name][1])
    place = 0
    for of in found:
        own = ranked if not of.group else ranked[place : place + of.people]
        place += len(own) if of.group else 0
        for system, figures in given.items():
            others = [given[name] for name in given if name != system]
            best = sum(all(figures[p][0] < other[p][0] for other in others) for p in own)
            assert of.best[system] == best
            assert of.better[system] == sum(figures[p][0] < given["none"][p][0] for p in own)
            total = sum(figures[p][0] for p in own) / sum(figures[p][1] for p in own)
            assert of.rate[system] == pytest.approx(total)


def test_other_people_are_refused() -> None:
    given = systems(4, 1)
    del given["names"]["p0"]  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="names: expected the people and words of none"):
        wins(given, 2)


def test_the_verb_reads_runs_and_scores(tmp_path: Path) -> None:
    for name, figures in systems(7, 3).items():
        (tmp_path / name).mkdir()
        clients = {p: {"nats": [total, 1.0], "tokens": [n, 2]} for p, (total, n) in figures.items()}
        run = {"perplexity": {"clients": clients}}
        (tmp_path / name / "run_test.json").write_text(json.dumps(run))
        speakers = {
            p: {"hits": n - 1, "substitutions": 0, "insertions": int(total), "deletions": 1}
            for p, (total, n) in figures.items()
        }
        parts = {"test": {"speakers": speakers}}
        (tmp_path / name / "wer.json").write_text(json.dumps({"parts": parts}))
    for flag, end in (("--in-runs", "run_test.json"), ("--in-scores", "")):
        paths = [str(tmp_path / name / end) for name in systems(7, 3)]
        out = tmp_path / f"wins{flag}.json"
        call("compare", flag, *paths, "--out-wins", out, "--config conf/personal.yaml#wins")
        read = json.loads(out.read_text())
        expected = wins(systems(7, 3), 3)
        best = [dict(zip(systems(7, 3), of["best"].values())) for of in read["groups"]]
        assert best == [dict(of.best) for of in expected]
        assert read["of"] == ("clients" if flag == "--in-runs" else "speakers")
