"""Kinds of artifacts: what reads the files that stages write.

A kind is a key of ``artifacts`` in ``systems.jsonl``. A reader is a function of a path and a
:class:`privasr_k2.report.measures.Context`; adding a kind is adding a function to a
module of :mod:`privasr_k2.report.readers` and a line to :data:`READERS`.

``protected_KIND`` is an artifact about people for whom a guarantee is claimed. Results show what
the guarantee tells of them anyway (:data:`TOLD`). All other figures of it are the owner's. So are
figures of groups whose values were looked up in protected data (``Context.owners_groups``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from privasr_k2.errors import DataError
from privasr_k2.report.measures import Context, Measure, Reading
from privasr_k2.report.readers import attacks, confidence, data, federated, models, privacy, scores

Reader = Callable[[str, Context], Reading]

#: Kinds of artifacts; those of ``score_<role>`` share one, as do those of ``privacy_<release>``.
READERS: Mapping[str, Reader] = {
    "score": scores.score,
    "perplexity": models.perplexity,
    "run": federated.run,
    "rounds": federated.rounds,
    "wins": federated.wins,
    "weights": models.weights,
    "folds": models.folds,
    "privacy": privacy.privacy,
    "dpsgd": privacy.dpsgd,
    "labels": privacy.labels,
    "votes": privacy.votes,
    "agreement": privacy.agreement,
    "audit": attacks.audit,
    "canary_audit": attacks.canary_audit,
    "lm_audit": attacks.lm_audit,
    "membership": attacks.membership,
    "inversion": attacks.inversion,
    "recognizer": attacks.recognizer,
    "clients": data.clients,
    "timeline": data.timeline,
    "texts": data.texts,
    "entities": data.entities,
    "found_names": data.found_names,
    "planted_names": attacks.planted_names,
    "sides": data.sides,
    "people": data.people,
    "confidence": confidence.confidence,
}

PROTECTED = "protected_"
PRIVACY = "privacy"
#: Of protected artifacts the metrics that results show: numbers of units, which no guarantee
#: hides, and what an attack that knows a unit has found.
TOLD: Mapping[str, tuple[str, ...]] = {
    "clients": ("clients",),
    "timeline": ("clients", "users"),
    "audit": ("claimed", "audit_lower", "audit_broken", "audit_noise_free", "audit_largest",
              "audit_trials", "audit_confidence", "audit_verdict"),
}  # fmt: skip


def is_privacy(kind: str) -> bool:
    """Whether it is the guarantee of a release: ``privacy``, or one more, ``privacy_<release>``.

    >>> is_privacy("privacy"), is_privacy("privacy_words"), is_privacy("votes")
    (True, True, False)
    """
    return _reader_of(kind) == PRIVACY


def _reader_of(kind: str) -> str:
    """The key of :data:`READERS`."""
    family = kind.partition("_")[0]
    return family if family in ("score", PRIVACY) else kind


def plain_kind(kind: str) -> str:
    """The kind without ``protected_``."""
    return kind.removeprefix(PROTECTED)


def read(kind: str, path: str, context: Context) -> Reading:
    """Read the measures of an artifact that results may show.

    Args:
        kind: a key of :data:`READERS`, ``score_<role>`` or ``privacy_<release>``; or one with
            ``protected_`` before it.
        path: of the artifact; some kinds have ``#key`` behind it.

    Raises:
        DataError: an unknown kind, or a file of another kind.
    """
    reading = _read(plain_kind(kind), path, context)
    if not kind.startswith(PROTECTED):
        return replace(reading, measures=told_groups(reading.measures, context))
    told = TOLD.get(plain_kind(kind), ())
    kept = tuple(measure for measure in reading.measures if measure.metric in told)
    return replace(reading, measures=kept, pairs={})


def told_groups(measures: Iterable[Measure], context: Context) -> tuple[Measure, ...]:
    """The measures without groups of which only the owner is told."""
    return tuple(measure for measure in measures if measure.group not in context.owners_groups)


def owners_measures(kind: str, path: str, context: Context) -> tuple[Measure, ...]:
    """All measures of a protected artifact; of another one the owner's groups.

    Raises:
        DataError: as :func:`read`.
    """
    if not kind.startswith(PROTECTED) and not context.owners_groups:
        return ()
    measures = _read(plain_kind(kind), path, context).measures
    if kind.startswith(PROTECTED):
        return measures
    return tuple(measure for measure in measures if measure.group in context.owners_groups)


def _read(kind: str, path: str, context: Context) -> Reading:
    reader = READERS.get(_reader_of(kind))
    if reader is None:
        known = ", ".join(READERS)
        raise DataError("systems.jsonl", f"a kind of artifact: {known}", kind, "correct the recipe")
    try:
        return reader(path, context)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        expected = f"an artifact of the kind {kind}"
        found = repr(error)
        raise DataError(path, expected, found, "run the stage that writes it again") from error
