"""What liu2020 found, judged from figures."""

from __future__ import annotations

import pytest

from privasr_k2.federated.fmp_findings import Measured, findings


def _said(said: list[str], begin: str) -> str:
    [one] = [line for line in said if line.startswith(begin)]
    return one


MEASURED = {
    "T1": Measured(9.0, 0.01, 1, None),
    "T10": Measured(8.0, 0.01, 10, None),
    "grid_sigma_1": Measured(7.9, 0.01, 10, None),
    "grid_sigma_10": Measured(8.1, 0.01, 10, None),
    "grid_alpha_only": Measured(8.5, 0.01, 10, None),
    "grid_beta_only": Measured(8.6, 0.01, 10, None),
    "eps_none": Measured(8.0, 0.01, 10, None),
    "eps_user_1": Measured(9.5, 0.9, 10, 1.0),
    "eps_user_2": Measured(9.0, 0.2, 10, 2.0),
    "eps_published_0.5": Measured(8.05, 0.01, 10, 0.5),
    "eps_published_0.1": Measured(9.9, 0.9, 10, 0.1),
}
SIGNIFICANT = {"grid_alpha_only": 0.001, "grid_beta_only": 0.02}


def test_all_of_them_hold() -> None:
    said = findings(MEASURED, 10.0, SIGNIFICANT, tested=True)
    assert "every T: holds (T = 1: -10.0 %, T = 10: -20.0 %)" in _said(said, "Marginals")
    assert "holds (both 8.00, alpha only 8.50, beta only 8.60)" in _said(said, "alpha and beta")
    assert "grows with T: holds" in _said(said, "The gain")
    assert "holds (1: 7.90, 10: 8.10" in _said(said, "Of the bandwidths")
    assert [line for line in said if "for each user: 1: 25 %, 2: 50 %." in line]
    assert "holds (largest +0.6 %)" in _said(said, "As published, the loss")


@pytest.mark.parametrize(
    ("changed", "begin", "expected"),
    [
        ({"T1": Measured(10.5, 0.01, 1, None)}, "Marginals", "does not hold"),
        ({"T1": Measured(9.0, 0.06, 1, None)}, "Marginals", "not all differences are significant"),
        ({"T1": Measured(7.0, 0.01, 1, None)}, "The gain", "does not hold"),
        ({"grid_beta_only": Measured(7.5, 0.01, 10, None)}, "alpha and beta", "does not hold"),
        ({"grid_sigma_10": Measured(7.0, 0.01, 10, None)}, "Of the bandwidths", "does not hold"),
        ({"eps_none": Measured(10.0, 0.9, 10, None)}, "Without noise", "no gain"),
        ({"eps_published_0.5": Measured(8.2, 0.01, 10, 0.5)}, "As published, the loss", "does not hold"),
    ],
)
def test_what_does_not_hold_is_said(changed: dict[str, Measured], begin: str, expected: str) -> None:
    said = findings(MEASURED | changed, 10.0, SIGNIFICANT, tested=True)
    assert expected in _said(said, begin)


def test_parts_need_significance_only_where_there_are_tests() -> None:
    pairs = SIGNIFICANT | {"grid_beta_only": 0.2}
    said = findings(MEASURED, 10.0, pairs, tested=True)
    assert "not all differences are significant" in _said(said, "alpha and beta")
    said = findings(MEASURED, 10.0, {}, tested=False)
    assert "alone: holds" in _said(said, "alpha and beta")
