"""Spectrograms side by side: what a speaker said and what attacks found [yang2022, figure 7]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.fileio import atomic_path

_STYLE: Any = {"svg.hashsalt": "inversion", "svg.fonttype": "none", "font.size": 8.0}
_AXES = {
    "fbank": "mel bin",
    "mfcc": "cepstral coefficient",
    "sphinx": "cepstral coefficient",
}


def mel_spectrogram(features: np.ndarray, *, mel_bins: int, lifter: float) -> np.ndarray:
    """Log-mel energies (T, B) of features (T, F): as they are, or of F cepstra, the lost ones as 0.

    Kaldi's cepstra are c_k = (1 + lifter / 2 sin(pi k / lifter)) sum over b of D(k, b) log m_b,
    with D the first F rows of the orthonormal cosine transform.

    Args:
        mel_bins: 0: the features are log-mel energies; else B, at least F.

    >>> mel_spectrogram(np.array([[3.0, 0.0]]), mel_bins=9, lifter=22.0).round(2).tolist()
    [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]
    """
    if mel_bins == 0:
        return features
    orders, bins = np.arange(features.shape[1]), (np.arange(mel_bins) + 0.5) / mel_bins
    transform = np.sqrt(2 / mel_bins) * np.cos(np.pi * np.outer(orders, bins))
    transform[0] /= np.sqrt(2)
    lifted = 1 + lifter / 2 * np.sin(np.pi * orders / lifter) if lifter else np.ones(len(orders))
    return features / lifted @ transform


def picture_axis(kind: str, mel_bins: int) -> str:
    """What a picture's vertical axis counts, by the kind of features.

    Args:
        kind: of ``features.yaml``: fbank, mfcc, sphinx, given, ...
        mel_bins: as in :func:`mel_spectrogram`.

    >>> [picture_axis(kind, 0) for kind in ("fbank", "mfcc", "given")]
    ['mel bin', 'cepstral coefficient', 'feature']
    >>> picture_axis("sphinx", 40)
    'mel bin, from cepstra'
    """
    if mel_bins:
        return "mel bin, from cepstra"
    return _AXES.get(kind, "feature")


def draw_side_by_side(
    rows: Sequence[tuple[str, Sequence[tuple[str, np.ndarray]]]],
    frame_shift: float,
    path: Path,
    *,
    axis: str,
) -> None:
    """Draw words, one a row, as SVG: the same arrays give the same file.

    Args:
        rows: a word and its panels, each a title and features (T, B).
        frame_shift: seconds.
        axis: title of the vertical axis, of :func:`picture_axis`.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = max(len(panels) for _, panels in rows)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(1.9 * columns, 1.9 * len(rows)), layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False)
        for axes, (word, panels) in zip(grid, rows):
            for column, panel in enumerate(axes):
                if column >= len(panels):
                    panel.set_axis_off()
                    continue
                title, values = panels[column]
                # What is louder or softer as a whole is no difference of form.
                shown = values - values.mean()
                extent = (0.0, len(values) * frame_shift, 0.0, float(values.shape[1]))
                panel.imshow(shown.T, origin="lower", aspect="auto", extent=extent, cmap="magma")
                panel.set_title(title, fontsize=7)
                if column == 0:
                    panel.set_ylabel(f"{word}\n{axis}")
                panel.set_xlabel("seconds")
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})
