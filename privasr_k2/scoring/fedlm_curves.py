"""Learning curves of federated training: the perplexity of dev by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.scoring.curves import Line, Panel, Point, draw
from privasr_k2.scoring.fedlm_results import label_of

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
    """Draw all systems as SVG."""
    lines = [Line(label_of(name), [Point(*point) for point in curve]) for name, curve in curves.items()]
    draw([Panel("round", "perplexity of dev", lines, yscale="log")], path)
