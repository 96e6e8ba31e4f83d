"""Kinds of artifacts: what reads the files that stages write.

A kind is a key of ``artifacts`` in ``systems.jsonl``. A reader is a function of a path and a
:class:`privasr_k2.report.measures.Context`; adding a kind is adding a function to a
module of :mod:`privasr_k2.report.readers` and a line to :data:`READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from privasr_k2.errors import DataError
from privasr_k2.report.measures import Context, Reading
from privasr_k2.report.readers import attacks, confidence, data, federated, models, privacy, scores

Reader = Callable[[str, Context], Reading]

#: Kinds of artifacts; those of ``score_<role>`` share one.
READERS: Mapping[str, Reader] = {
    "score": scores.score,
    "perplexity": models.perplexity,
    "run": federated.run,
    "rounds": federated.rounds,
    "weights": models.weights,
    "privacy": privacy.privacy,
    "labels": privacy.labels,
    "agreement": privacy.agreement,
    "audit": attacks.audit,
    "membership": attacks.membership,
    "inversion": attacks.inversion,
    "clients": data.clients,
    "timeline": data.timeline,
    "texts": data.texts,
    "entities": data.entities,
    "sides": data.sides,
    "confidence": confidence.confidence,
}


def read(kind: str, path: str, context: Context) -> Reading:
    """Read the measures of an artifact.

    Args:
        kind: a key of :data:`READERS`, or ``score_<role>``.
        path: of the artifact; some kinds have ``#key`` behind it.

    Raises:
        DataError: an unknown kind, or a file of another kind.
    """
    reader = READERS.get("score" if kind.startswith("score_") else kind)
    if reader is None:
        known = ", ".join(READERS)
        raise DataError("systems.jsonl", f"a kind of artifact: {known}", kind, "correct the recipe")
    try:
        return reader(path, context)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        expected = f"an artifact of the kind {kind}"
        found = repr(error)
        raise DataError(path, expected, found, "run the stage that writes it again") from error
