"""The quantity that [yang2022] calls epsilon, which is no guarantee.

The paper takes lambda = K / (2 epsilon) for K queries, one an utterance, at delta 1e-3, and noise
"with location 0 and scale 1/lambda" (eq. 4): a smaller epsilon means *less* noise. Its figures show
more. Two readings, for GNMax's standard deviation and LNMax's scale, in votes:

    by equation:  scale = 1/lambda = 2 epsilon / K,      epsilon = K scale / 2
    by figures:   scale = lambda = K / (2 epsilon),      epsilon = K / (2 scale)

Neither is a bound. K answers with Laplace noise of scale b cost at most 2 K / b by adding up, four
times the second reading. The paper's scores are means of posteriors; here scales are in teachers.
"""

from __future__ import annotations

from privasr_k2.privacy import checks

BY_EQUATION, BY_FIGURES = "equation", "figures"
DELTA = 1e-3


def published_noise(epsilon: float, queries: int, reading: str) -> float:
    """The noise that an epsilon of the paper stands for.

    Args:
        epsilon: as published; above 0.
        queries: K, 1 or more.
        reading: :data:`BY_EQUATION` or :data:`BY_FIGURES`.

    >>> published_noise(10.0, 100, BY_EQUATION), published_noise(10.0, 100, BY_FIGURES)
    (0.2, 5.0)
    """
    queries = checks.whole("queries", queries, at_least=1)
    lam = queries / (2 * checks.number("epsilon", epsilon, above=0))
    return {BY_EQUATION: 1 / lam, BY_FIGURES: lam}[reading]


def published_epsilons(noise: float, queries: int) -> dict[str, float]:
    """The epsilon that the paper gives K queries with this noise, by both readings.

    >>> published_epsilons(5.0, 100)
    {'published_equation': 250.0, 'published_figures': 10.0}
    """
    noise = checks.number("noise", noise, above=0)
    queries = checks.whole("queries", queries, at_least=1)
    return {"published_equation": queries * noise / 2, "published_figures": queries / (2 * noise)}


def as_published(noise: float, queries: int, utterances: int) -> dict[str, object]:
    """For a table: both readings, with the scale and K, the paper's count of utterances.

    Args:
        noise: in votes; above 0.
        queries: votes that are answered: more than utterances for frames or tokens.
        utterances: K of the paper.
    """
    return {
        "guarantee": False,
        "K": utterances,
        "scale": noise,
        "delta": DELTA,
        "epsilon": published_epsilons(noise, max(utterances, 1)),
        "votes_that_it_does_not_count": max(queries - utterances, 0),
    }


def published_lines(about: dict[str, object]) -> list[str]:
    """The record of :func:`as_published` as text.

    >>> print(published_lines(as_published(5.0, 4000, 100))[2])
      as published, NO GUARANTEE: epsilon 10 where the scale is lambda, as the figures need it
    """
    epsilon: dict[str, float] = about["epsilon"]  # type: ignore[assignment]
    beyond = about["votes_that_it_does_not_count"]
    title = "  as published, NO GUARANTEE:"
    scale = f"scale {about['scale']:.6g} votes, delta {about['delta']:g}"
    equation, figures = epsilon["published_equation"], epsilon["published_figures"]
    lines = [
        f"{title} K = {about['K']:,} utterances, {scale}",
        f"{title} epsilon {equation:.6g} where the scale is 1/lambda, as eq. 4 has it",
        f"{title} epsilon {figures:.6g} where the scale is lambda, as the figures need it",
    ]
    if beyond:
        lines.append(f"{title} {beyond:,} further votes on these utterances do not count")
    return lines
