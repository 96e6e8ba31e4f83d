"""What a setting costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from privasr_k2.dpsgd.settings import RELATION, highest_lr, noise_multiplier, spending
from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.plan import PlanRequest, plan
from privasr_k2.privacy.spending import SETTINGS, guarantees
from privasr_k2.training.trainer import learning_rate
from tests.support.private_speech import config


def test_epsilon_is_that_of_the_plan() -> None:
    setting = config("noise=1.2", "steps=50", "rate=0.2")
    [found] = guarantees([spending(setting, 74, noise_multiplier(setting))])
    nothing = dict.fromkeys(PlanRequest.__dataclass_fields__)
    unit = {
        "kind": "updates",
        "privacy_unit": "speaker",
        "num_units": 74,
        "relation": RELATION.value,
    }
    training = {"delta": 1e-3, "client_fraction": 0.2, "rounds": 50, "noise": 1.2}
    planned = plan(PlanRequest(**nothing | unit | training))
    assert found.epsilon == planned.epsilon and found.unit == "speaker" and found.units == 74


def test_noise_follows_from_epsilon() -> None:
    setting = config("epsilon=3", "steps=20", "rate=1")  # for which there is a formula
    noise = noise_multiplier(setting)
    for factor, within in ((1.0, True), (0.999, False)):
        found = account(spending(setting, 74, noise * factor).event, RELATION, setting.delta)
        assert (found.value <= 3) == within


def test_without_a_claim() -> None:
    assert noise_multiplier(config()) == 0.0 and not config("clip=null").claims
    with pytest.raises(PrivacyError, match="a claim needs noise"):
        spending(config(), 74, 0.0)


def test_how_it_clips_stands_in_the_ledger_and_costs_the_same() -> None:
    settings = [config("noise=1", f"clip_by={by}") for by in ("whole", "layer")]
    whole, layer = (spending(setting, 74, 1.0) for setting in settings)
    assert "clipped whole" in whole.released and "clipped layer by layer" in layer.released
    assert replace(layer, released=whole.released) == whole


def test_delta_must_be_below_one_of_the_units() -> None:
    with pytest.raises(PrivacyError, match="1/units"):
        spending(config("noise=1", "delta=0.1"), 12, 1.0)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_learning_rate_follows_the_noise(momentum: float) -> None:
    """Noise of that size alone, step by step through torch's SGD, moves weights by most_drift."""
    given = ("noise=3", "steps=30", "optimizer=sgd", "lr=5", f"momentum={momentum}", "clip=0.2")
    setting = config(*given, "most_drift=0.07", "warmup_steps=4", "rate=0.5")
    highest = highest_lr(setting, 60, 3.0)
    assert highest < 5
    weights = torch.nn.Parameter(torch.zeros(100_000, dtype=torch.float64))
    optimizer = torch.optim.SGD([weights], lr=1.0, momentum=momentum)
    generator = torch.Generator().manual_seed(1)
    for step in range(30):
        (group,) = optimizer.param_groups
        group["lr"] = learning_rate(setting, step, step / 30) * highest / 5
        noise = torch.randn(100_000, dtype=torch.float64, generator=generator)
        weights.grad = 3.0 * 0.2 * noise / (0.5 * 60)
        optimizer.step()
    assert float(weights.detach().square().mean().sqrt()) == pytest.approx(0.07, rel=0.01)


def test_the_learning_rate_is_never_raised() -> None:
    given = ("optimizer=sgd", "noise=3", "lr=0.001")
    assert highest_lr(config(*given, "most_drift=100"), 60, 3.0) == 0.001
    assert highest_lr(config(*given), 60, 3.0) == 0.001  # no limit
    assert highest_lr(config("optimizer=sgd", "most_drift=1e-9"), 60, 0.0) == config().lr


def test_what_is_not_covered() -> None:
    shared = spending(config("noise=1", "isolate_units=false"), 74, 1.0)
    sentences = " ".join(shared.does_not_cover)
    assert "rounding" in sentences and "several names" in sentences
    assert SETTINGS in shared.does_not_cover
    alone = spending(config("noise=1", "unit=utterance"), 74, 1.0)
    assert "rounding" not in " ".join(alone.does_not_cover)
    assert "how many utterances" in " ".join(alone.does_not_cover)
    listed = " ".join(spending(config("noise=1"), 74, 1.0, listed=True).does_not_cover)
    assert "roster" in listed and "how many speakers" not in listed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["noise=1", "epsilon=1"], "give one of them"),
        (["epsilon=0"], "epsilon must be above 0"),
        (["noise=0"], "noise must be above 0"),
        (["noise=1", "clip=null"], "clip must be a number"),
        (["noise=1", "data=''"], "data must name"),
        (["clip_by=layer", "clip=null"], "where clip_by is layer"),
        (["clip_by=block"], "clip_by must be one of"),
        (["rate=0"], "rate must be above 0"),
        (["rate=1.1"], "at most 1"),
        (["clip=-1"], "clip must be above 0"),
        (["unit=word"], "unit must be one of"),
        (["within=max"], "within must be one of"),
        (["steps=0"], "steps must be at least 1"),
        (["delta=1"], "delta must be"),
        (["most_drift=0.1", "optimizer=adam"], "most_drift needs optimizer sgd"),
        (["most_drift=0", "optimizer=sgd"], "most_drift must be above 0"),
        (["momentum=1"], "momentum must be below 1"),
        (["average_share=2"], "average_share"),
        (["memory_gb=-1"], "memory_gb"),
        (["max_duration=0"], "max_duration must be above 0"),
    ],
)
def test_bad_values(changes: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(*changes)
