"""Reliability plots: how often words of a confidence are correct."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.fileio import atomic_path

if TYPE_CHECKING:
    from privasr_k2.confidence.evaluation import SystemResult

_STYLE: dict[str, Any] = {"svg.hashsalt": "reliability", "svg.fonttype": "none", "font.size": 9.0}


def reliability_plot(results: Sequence[SystemResult], path: Path) -> None:
    """Draw the systems of one group as a reproducible SVG.

    Above: shares of correct words against mean confidences of bins. Below: words of the bins.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.0, 6.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        above.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
        for result in results:
            bins = result.reliability
            style = {"marker": "o", "markersize": 3, "linewidth": 1, "label": result.system}
            above.plot(bins.confidence, bins.correct, **style)
            below.plot(bins.confidence, bins.words, marker="o", markersize=2, linewidth=1)
        above.set(ylabel="share of correct words", xlim=(0, 1), ylim=(0, 1), title=results[0].group)
        above.legend(frameon=False, loc="upper left")
        below.set(xlabel="confidence (mean of a bin)", ylabel="words", yscale="log")
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})
