"""The table of docs/pate.md: what so many people can buy, computed again."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from privasr_k2.fileio import read_yaml
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.discrete import DiscreteGaussianNoise
from privasr_k2.privacy.sampling import PoissonSampling

PAGE = Path(__file__).parents[3] / "docs/pate.md"
EPSILONS, DELTA, AOR = (1.0, 4.0, 8.0), 1e-5, Relation.ADD_OR_REMOVE_ONE
_THREE, _NORM = r"(.* / .* / .*)", r"([\d.]+)"
_CELLS = " \\| ".join((_THREE, _THREE, _THREE, _NORM, _NORM))
ROW = re.compile(rf"^\| ([\d,]+) \| {_CELLS} \|$", re.M)


def number(text: str) -> float:
    return float(text.replace(",", "").removesuffix(" %"))


@pytest.fixture(scope="module")
def table() -> dict[int, list[list[str]]]:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {int(number(first)): [cell.split(" / ") for cell in rest] for first, *rest in rows}


def test_the_table_is_there(table: dict[int, list[list[str]]]) -> None:
    assert [*table] == [40, 100, 250, 1000, 2338]


def test_words_that_pass(table: dict[int, list[list[str]]]) -> None:
    for place, epsilon in enumerate(EPSILONS):
        noise = noise_for(
            lambda sigma: events.repeated(DiscreteGaussianNoise(sigma).event(1), 40),
            epsilon=epsilon, delta=DELTA, relation=AOR,
        )  # fmt: skip
        for people, (words, *_) in table.items():
            share = 100 * 4 * noise / people
            if share > 100:
                assert words[place] == "–"
            else:
                assert number(words[place]) == pytest.approx(share, abs=0.06)


def test_answers_to_tokens(table: dict[int, list[list[str]]]) -> None:
    for place, epsilon in enumerate(EPSILONS):
        noise = noise_for(events.gaussian, epsilon=epsilon, delta=DELTA, relation=AOR)
        for people, (_, answers, *_) in table.items():
            # So many answers with this noise are one with that noise by their root.
            exact = (0.15 * people / noise) ** 2
            assert number(answers[place]) == pytest.approx(exact, rel=1e-4, abs=1)


def test_noise_of_a_few_steps_of_everybody(table: dict[int, list[list[str]]]) -> None:
    sections = read_yaml(PAGE.parents[1] / "conf/pate.yaml")
    section = sections["dpsgd_norms"] | sections["dpsgd_whisper"]
    assert (section["steps"], section["rate"], section["trained"]) == (20, 1.0, ["norm"])
    for place, epsilon in enumerate(EPSILONS):
        noise = noise_for(
            lambda sigma: events.repeated(events.gaussian(sigma), 20),
            epsilon=epsilon, delta=DELTA, relation=AOR,
        )  # fmt: skip
        for people, (_, _, norms, *_) in table.items():
            exact = noise * math.sqrt(9_984) / people
            assert number(norms[place]) == pytest.approx(exact, abs=0.006)


def test_noise_of_steps(table: dict[int, list[list[str]]]) -> None:
    rate, steps = 0.15, 300
    noise = noise_for(
        lambda sigma: PoissonSampling(rate).event(events.gaussian(sigma), steps, AOR),
        epsilon=8.0, delta=DELTA, relation=AOR,
    )  # fmt: skip
    for people, (_, _, _, *norms) in table.items():
        for [norm], size in zip(norms, (31_262, 1_500_000)):
            exact = noise * math.sqrt(size) / (rate * people)
            assert number(norm) == pytest.approx(exact, abs=0.06)
