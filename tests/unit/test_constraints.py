"""Constraints of annotations: what is refused, and that every way to make a value is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from annotated_types import Gt, Interval, MinLen, MultipleOf

from privasr_k2 import config
from privasr_k2.constraints import (
    Checked,
    Choices,
    Count,
    Delta,
    Different,
    Finite,
    Matches,
    Positive,
    Share,
    broken,
    one_of,
)
from privasr_k2.errors import ConfigError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("annotation", "fit", "not_fit", "said"),
    [
        (Count, [1, 7], [0, -1], "at least 1"),
        (Positive, [0.1, INF], [0.0, -1.0, NAN], "above 0"),
        (Finite, [0.1, 1e300], [INF], "finite"),
        (Share, [0.0, 1.0], [1.1], "at most 1"),
        (Share, [], [-0.1, NAN], "at least 0"),
        (Delta, [0.5], [1.0], "below 1"),
        (Annotated[int, MultipleOf(2)], [2, 0], [3], "a multiple of 2"),
        (Annotated[str, one_of("a", "b")], ["a"], ["c", ""], "one of a, b"),
        (Annotated[str, Choices(lambda: ["x"])], ["x"], ["y"], "one of x"),
        (Annotated[str, Matches("a+", "some a")], ["aa"], ["ab", ""], "some a"),
        (Annotated[list[int], MinLen(1)], [[0]], [[]], "1 or more values"),
        (Annotated[list[int], Different()], [[1, 2], []], [[1, 1]], "different values"),
        (Annotated[list[Count], MinLen(1)], [[1]], [[1, 0]], "at least 1 each"),
        (dict[str, Positive], [{"a": 1.0}, {}], [{"a": 0.0}], "above 0 each"),
        (Positive | None, [None, 1.0], [0.0], "above 0"),
        (int, [-1], [], ""),
    ],
)
def test_broken(annotation: Any, fit: list[Any], not_fit: list[Any], said: str) -> None:
    assert [broken(annotation, value) for value in fit] == [""] * len(fit)
    assert [broken(annotation, value) for value in not_fit] == [said] * len(not_fit)


@dataclass(frozen=True)
class Inner(Checked):
    """Held by the next one."""

    lr: Positive


@dataclass(frozen=True)
class Outer(Checked):
    """With a check of two fields."""

    least: Annotated[int, Interval(ge=1, le=9)]
    most: int
    inner: Inner

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least > self.most:
            raise ValueError("least must be at most most")


@dataclass(frozen=True)
class Other(Checked):
    """Beside the former."""

    scale: Annotated[float, Gt(1)]


@dataclass(frozen=True)
class Both(Outer, Other):
    """All of their fields."""


def test_made_directly() -> None:
    Both(scale=2.0, least=1, most=2, inner=Inner(1.0))
    for values, message in (
        ({"least": 0}, "least must be at least 1, got 0"),
        ({"scale": 1.0}, "scale must be above 1, got 1.0"),
        ({"most": 0}, "least must be at most most"),
    ):
        with pytest.raises(ValueError, match=message):
            Both(**{"scale": 2.0, "least": 1, "most": 2, "inner": Inner(1.0), **values})
    with pytest.raises(ValueError, match="lr must be above 0, got -1"):
        Inner(-1)


def test_loaded() -> None:
    good = ["scale=2", "least=1", "most=2", "inner.lr=1"]
    assert config.load(Both, overrides=good) == Both(scale=2.0, least=1, most=2, inner=Inner(1.0))
    with pytest.raises(ConfigError, match=r"inner.lr must be above 0, got -1.0"):
        config.load(Both, overrides=[*good, "inner.lr=-1"])
    with pytest.raises(ConfigError, match="least must be at most most"):
        config.load(Both, overrides=[*good, "most=0"])
    with pytest.raises(ConfigError, match="least must be at least 1"):
        config.from_values(Both, {"scale": 2, "least": 0, "most": 2, "inner": {"lr": 1}}, "here")
