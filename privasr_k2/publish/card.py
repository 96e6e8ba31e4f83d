"""The content of a model card: guarantees, totals, what is not covered, audits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import WHOLE, guarantees, shown
from privasr_k2.privacy.totals import LedgerTotal, recomputed

_TEMPLATES = Path(__file__).parent / "templates"
_INFINITE = "infinite"
_TOLERANCE = 1e-3  # of epsilon, between versions of the accountants
#: Facts that the card takes for public, whatever is released.
PUBLIC_FACTS = (
    "Names of data, the most units that one person is, and which releases are about the same people"
    " are taken for public.",
    "Whose speech or text made the models behind the private inputs, such as a recognizer's, is not"
    " looked at.",
)


def guarantee_records(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The guarantees of the releases behind what is published, as plain values."""
    return [
        {
            "data": found.data,
            "unit": found.unit,
            "units": found.units,
            "neighbours": found.relation.value,
            "delta": found.epsilon.delta,
            "epsilon": _value(found.epsilon.value),
            "person_units": 1 if found.unit in WHOLE else found.person_units,
            "person_epsilon": _value(found.person.value),
            "names_alone": found.names_alone,
            "accountant": _accountant(found.epsilon),
            "sampling": list(found.sampling),
            "released": list(found.released),
            "releases": found.releases,
            "does_not_cover": list(found.does_not_cover),
        }
        for found in guarantees(entry.spending for entry in entries)
    ]


def total_records(found: Iterable[LedgerTotal]) -> list[dict[str, Any]]:
    """Totals over all releases about the same people, with the events that they are made of."""
    return [
        {
            "of": related.hidden(total.level),
            "neighbours": total.relation.value,
            "delta": total.epsilon.delta,
            "epsilon": _value(total.epsilon.value),
            "releases": total.releases,
            "data": list(related.data),
            "costs": [
                {"neighbours": relation.value, "event": events.to_json(event)}
                for relation, event in total.costs
            ],
        }
        for related in found
        for total in related.totals
    ]


def check_records(card: Mapping[str, Any], entries: Sequence[Entry], place: Path) -> None:
    """Compute every epsilon of a card anew from its events.

    Raises:
        PrivacyError: another figure.
    """
    _same(guarantee_records(entries), card["guarantees"], f"{place}: guarantees")
    for number, record in enumerate(card["totals"]):
        at = f"{place}: totals[{number}]"
        costs = tuple(
            (Relation(cost["neighbours"]), events.from_json(cost["event"], at))
            for cost in record["costs"]
        )
        epsilon = _value(recomputed(costs, record["delta"]))
        _same(epsilon, record["epsilon"], f"{at}.epsilon")
        _same(len(costs), record["releases"], f"{at}.releases")


def render(document: Mapping[str, Any]) -> str:
    """The model card as Markdown, of the content of ``published.json``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # Markdown
    )
    environment.filters["epsilon"] = lambda value: value if value == _INFINITE else shown(value)
    return environment.get_template("card.md.jinja").render(document)


def bounds_of(audit: Any, name: str = "") -> Iterator[dict[str, Any]]:
    """The judged bounds within an audit's values, with their place.

    >>> marks = {"claimed_epsilon": 2.0, "epsilon_lower": {"sound": 0.1}, "verdict": "stands"}
    >>> [bound["attack"] for bound in bounds_of({"tied": {"whole_release": marks}, "noise": 40.0})]
    ['tied, whole release']
    """
    if not isinstance(audit, dict):
        return
    if "verdict" in audit and "claimed_epsilon" in audit:
        kept = ("claimed_epsilon", "delta", "confidence", "epsilon_lower", "trials", "verdict")
        yield {"attack": name, **{key: audit[key] for key in kept if key in audit}}
        return
    for key, value in audit.items():
        yield from bounds_of(value, f"{name}, {key}".strip(", ").replace("_", " "))


def _same(expected: Any, found: Any, place: str) -> None:
    """Equal values, with epsilons within the tolerance."""
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            _same(one, other, f"{place}[{number}]")
        return
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        for key, value in expected.items():
            _same(value, found[key], f"{place}.{key}")
        return
    numbers = isinstance(expected, float) and isinstance(found, float)
    if numbers and math.isclose(expected, found, rel_tol=_TOLERANCE):
        return
    if expected != found:
        way_out = "take it from its source again: what it claims is not what its events cost"
        raise PrivacyError(place, f"{expected!r}, by the events", repr(found), way_out)


def _value(epsilon: float) -> float | str:
    return _INFINITE if math.isinf(epsilon) else float(epsilon)


def _accountant(epsilon: Epsilon) -> str:
    return "PLD" if epsilon.pld is not None and epsilon.pld <= epsilon.rdp else "RDP"
