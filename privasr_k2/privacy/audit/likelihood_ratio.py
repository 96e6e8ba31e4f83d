"""The likelihood-ratio attack: is this loss as of models that saw the example, or as of those that
did not?

Reference models are trained like the audited one, each on its own random part of a pool, so that
every example is in some of them and not in others. Its losses there are taken as normal
[carlini2022, section V]. A loss that is about normal is wanted: for a probability p of the right
answer, log(1 - p) - log(p) rather than -log(p).

[carlini2022] N. Carlini, S. Chien, M. Nasr, S. Song, A. Terzis and F. Tramèr, Membership inference
attacks from first principles, IEEE S&P 2022.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit import inputs


def online_scores(
    losses: ArrayLike, reference_losses: ArrayLike, included: ArrayLike, *, pooled: bool
) -> np.ndarray:
    """Log of the ratio of the two densities, larger where the example seems to be a member.

        score = ln N(loss; mean_in, sd_in) - ln N(loss; mean_out, sd_out)

    Args:
        losses: (N,) losses in the audited model.
        reference_losses: (N, K) losses in the K reference models.
        included: (N, K) booleans, whether the model was trained on the example; at least two of
            each kind for every example.
        pooled: one standard deviation for all examples, which is steadier with few reference
            models.

    Raises:
        PrivacyError: other shapes, NaN or infinite losses, too few models, or losses without any
            spread.
    """
    observed, reference, inside = _inputs(losses, reference_losses, included)
    mean_in, sd_in = _fit(reference, inside, "with", pooled)
    mean_out, sd_out = _fit(reference, ~inside, "without", pooled)
    return norm.logpdf(observed, mean_in, sd_in) - norm.logpdf(observed, mean_out, sd_out)


def offline_scores(
    losses: ArrayLike, reference_losses: ArrayLike, included: ArrayLike, *, pooled: bool
) -> np.ndarray:
    """Return scores from reference models without the example: at least 0, larger for likely
    members.

        score = -ln P[N(mean_out, sd_out) <= loss]

    how unlikely a loss as low would be for a model that has not seen the example. Arguments and
    errors as for :func:`online_scores`; of the models with the example none is needed.

    >>> scores = offline_scores([0.0, 3.0], [[2.0, 3.0, 4.0]] * 2, [[False] * 3] * 2, pooled=False)
    >>> np.round(scores, 2)
    array([6.61, 0.69])
    """
    observed, reference, inside = _inputs(losses, reference_losses, included)
    mean_out, sd_out = _fit(reference, ~inside, "without", pooled)
    return -norm.logcdf(observed, mean_out, sd_out)


def _inputs(
    losses: ArrayLike, reference_losses: ArrayLike, included: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    observed = inputs.finite("losses", inputs.scores("losses", losses))
    reference, inside = np.asarray(reference_losses), np.asarray(included)
    if reference.ndim != 2 or len(reference) != observed.size or reference.dtype.kind not in "iuf":
        found = f"an array of {reference.dtype} of shape {reference.shape}"
        raise PrivacyError(
            "reference_losses", f"shape ({observed.size}, models) of numbers", found, "correct it"
        )
    reference = inputs.finite("reference_losses", reference.astype(np.float64))
    inside = inputs.flags("included", inside.ravel(), length=reference.size).reshape(
        reference.shape
    )
    return observed, reference, inside


def _fit(
    reference: np.ndarray, used: np.ndarray, name: str, pooled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (N,) and standard deviation (N,) or () of the losses that are used."""
    count = used.sum(axis=1)
    if count.min() < 2:
        at = int(count.argmin())
        raise PrivacyError(
            f"included[{at}]",
            f"two or more models {name} the example",
            str(count[at]),
            "train more models",
        )
    mean = np.sum(reference, axis=1, where=used) / count
    squares = np.sum((reference - mean[:, None]) ** 2, axis=1, where=used)
    sd = np.sqrt(squares.sum() / (count - 1).sum()) if pooled else np.sqrt(squares / (count - 1))
    if not np.all(sd > 0):
        raise PrivacyError(
            "reference_losses",
            f"losses of models {name} the example that differ",
            "equal ones",
            "pool them",
        )
    return mean, sd
