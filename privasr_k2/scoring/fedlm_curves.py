"""Learning curves of federated training: the perplexity of dev by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_jsonl
from privasr_k2.scoring.fedlm_results import label_of

_STYLE: Any = {"svg.hashsalt": "curves", "svg.fonttype": "none", "font.size": 9.0}
Curve = Sequence[tuple[int, float]]


def read_curves(folders: Iterable[Path]) -> dict[str, Curve]:
    """System -> (round, perplexity), from the ``train_log.jsonl`` of its model.

    A curve is empty where dev was not scored.

    Raises:
        DataError: not what ``train_fedlm`` writes.
    """
    found: dict[str, Curve] = {}
    for folder in folders:
        path = folder / "train_log.jsonl"
        try:
            found[folder.name] = [
                (int(record["step"]), float(record["dev_ppl"]))
                for record in read_jsonl(path)
                if "dev_ppl" in record
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(path, "what train_fedlm writes", repr(error), "train again") from error
    return found


def draw_curves(curves: Mapping[str, Curve], path: Path) -> None:
    """Draw all systems as SVG; the same results give the same file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = figure.subplots()
        for name, curve in curves.items():
            if curve:
                rounds, ppl = zip(*curve)
                axes.plot(rounds, ppl, linewidth=1, marker="o", markersize=2, label=label_of(name))
        axes.set(xlabel="round", ylabel="perplexity of dev", yscale="log")
        if any(curves.values()):
            axes.legend(frameon=False, fontsize=7)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})
