"""How many people docs/results.md says mini's federated LM takes is what its table and PLD give."""

from __future__ import annotations

import math
import re
from pathlib import Path

from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account

ROOT = Path(__file__).parents[2]


def test_people_with_as_little_noise_as_the_row_that_gains() -> None:
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    table = (ROOT / "egs/mini/RESULTS_fedlm.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    [row] = [r for r in rows if len(r) > 9 and "noise 0.2)" in r[1] and r[2] == "test"]
    gain, p = -float(row[8]), row[9]
    [guarantee] = [r for r in rows if len(r) > 9 and "noise 0.2)" in r[1] and r[2] == "device"]
    rate, devices = float(guarantee[7].removeprefix("Poisson, rate ")), int(guarantee[8])
    assert gain > 2 and p == "<0.001"
    small, large, rounds = 0.2, 0.7, 100
    assert f"Poisson sampling of {100 * rate:.0f} % in each of {rounds} rounds, delta 1e-5" in page
    event = events.poisson_sampled(rate, events.gaussian(large))
    cost = account(events.repeated(event, rounds), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    epsilon = math.ceil(100 * cost.value) / 100
    people = math.ceil(devices * large / small - 1e-9)
    clips = small / (rate * devices)
    assert f"The row that gains {gain:.1f} % has {clips:.3f} (z 0.2, q {rate}, N {devices})" in page
    assert f"epsilon {epsilon:.2f} takes z {large}" in page
    assert f"as little noise with {people} people" in page
    assert f"would have {large / (rate * devices):.3f} at that epsilon" in page
    behind = 7
    found = re.search(r"adapt: \{share: (\d+), utterances: \d+\}  # (\d+) users", corpora())
    assert found is not None and found.groups() == ("6", str(behind))
    assert f"The seven people behind them would have {large / (rate * behind):.1f}." in page


def corpora() -> str:
    """Where the sizes of mini stand."""
    return (ROOT / "conf/corpora.yaml").read_text(encoding="utf-8")
