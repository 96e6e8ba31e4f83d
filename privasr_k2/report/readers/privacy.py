"""Guarantees of releases, what was voted, and everything that the ledger holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json
from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import Entry, Ledger, entries_beside, lost_entries
from privasr_k2.privacy.spending import Guarantee, guarantees, guarantees_for, is_related
from privasr_k2.privacy.totals import (
    PERSON,
    LedgerTotal,
    Spent,
    are_related,
    joint_guarantee,
    ledger_totals,
    spent_of,
)
from privasr_k2.report.measures import Context, Measure, Reading


def privacy(path: str, context: Context) -> Reading:
    """A ``privacy.json`` beside a release: what it costs by itself.

    Each of several guarantees is an item; the figures without item are of the largest epsilon.
    """
    entries = entries_beside(Path(path))
    promised = guarantees(entry.spending for entry in entries)
    worst = max(promised, key=lambda guarantee: guarantee.epsilon.value)
    measures = list(guarantee_measures(worst, ""))
    if len(promised) > 1:
        measures += [m for of in promised for m in guarantee_measures(of, _covered(of))]
    return Reading(tuple(measures), entries=entries)


def joint(readings: Iterable[Reading]) -> Reading:
    """Several ``privacy.json`` of one system: what all of their releases cost together.

    Figures without item are of all of them, each once, as the accountant composes them. Items are
    that sum again and each release alone.

    Raises:
        PrivacyError: releases about other people.
    """
    entries = {entry.release: entry for reading in readings for entry in reading.entries}
    spent = [entry.spending for entry in entries.values()]
    together = joint_guarantee(spent)
    named = [("", together), (f"all {len(spent)} together", together)]
    for number, one in enumerate(spent, start=1):
        named.append((f"{number}: {one.released}", joint_guarantee([one])))
    measures = (m for item, of in named for m in guarantee_measures(of, item))
    return Reading(tuple(measures), entries=tuple(entries.values()))


def dpsgd(path: str, context: Context) -> Reading:
    """``dpsgd.json`` beside a model: steps, and the noise of each.

    ``relative_noise`` is the norm of the noise in the mean gradient of all units, by the clip.
    """
    about = read_json(Path(path))
    names = ("steps", "trained_parameters", "clip", "noise_multiplier")
    values = {name: about[name] for name in names}
    noise, size = about["noise_multiplier"], about["trained_parameters"]
    values["relative_noise"] = noise * math.sqrt(size) / about["units"]
    return Reading(tuple(Measure(name, value) for name, value in values.items()))


def guarantee_measures(found: Guarantee, item: str) -> Iterator[Measure]:
    """The figures of one guarantee."""
    epsilon, some = found.epsilon, found.only_for_epsilon
    by_pld = epsilon.pld is not None and epsilon.pld <= epsilon.rdp
    values: dict[str, Any] = {
        "epsilon": epsilon.value,
        # All else that a person has said stays as it is where names alone are replaced.
        "person_epsilon": math.inf if found.names_alone else found.person.value,
        "person_units": found.person_units,
        "names_epsilon": found.person.value if found.names_alone else None,
        "only_for_epsilon": None if some is None else some.value,
        "only_for": " and ".join(found.only_for) or None,
        "epsilon_rdp": epsilon.rdp,
        "epsilon_pld": epsilon.pld,
        "delta": epsilon.delta,
        "unit": found.unit,
        "neighbours": found.relation.value,
        "sampling": "; ".join(found.sampling),
        "accountant": "PLD" if by_pld else "RDP",
        "units": found.units,
        "data": found.data,
        "released": "; ".join(found.released),
        "releases": found.releases,
        "not_covered": "\n".join(found.does_not_cover),
    }
    return (Measure(metric, value, item=item) for metric, value in values.items())


def ledger_measures(ledger: Path | None, shown: Iterable[Entry]) -> list[Measure]:
    """What all releases about the same people come to, then each guarantee.

    Guarantees are those of a report's own releases together, and of all in the ledger of their
    data: whoever tries another setting, or forces a stage again, has released both results.

    Args:
        ledger: of the corpus's private data; ``None``: only the report's own releases.
        shown: the releases of the report; without any there is no measure.

    Raises:
        PrivacyError: a release that the ledger lacks, or a ledger that cannot be trusted.
    """
    own = {entry.release: entry for entry in shown}
    if not own:
        return []
    spent = [entry.spending for entry in own.values()]
    rows = [("of this report", promised) for promised in guarantees(spent)]
    together = [Spent(spending, None) for spending in spent]
    if ledger is not None:
        book = Ledger(ledger, seal_of(ledger)).entries()
        lost = lost_entries(book, [*own.values()])
        if lost:
            way_out = "name its ledger: --ledger FILE"
            raise PrivacyError(ledger, f"release {lost[0].release}", "a ledger without it", way_out)
        data = {spending.data for spending in spent}
        everything = spent_of(ledger.resolve(), book)
        shown_here = [of for of, entry in zip(everything, book) if entry.release in own]
        together = [of for of in everything if any(are_related(of, one) for one in shown_here)]
        concerned = [
            of.spending
            for of in everything
            if any(is_related(of.spending.data, name) for name in data)
        ]
        rows += [("in the ledger", promised) for promised in guarantees_for(data, concerned)]
    named = ((promised, f"{_covered(promised)}: all {which}") for which, promised in rows)
    return [
        *_total_measures(ledger_totals(together)),
        *(measure for pair in named for measure in guarantee_measures(*pair)),
    ]


def _total_measures(found: Iterable[LedgerTotal]) -> Iterator[Measure]:
    """For a person, and for the finest unit: what whoever is in most of it has lost."""
    times: Counter[str] = Counter()
    for related in found:
        data = " and ".join(dict.fromkeys(n for of in related.data for n in of.split(" and ")))
        whole = next(total.epsilon.value for total in related.totals if total.level == PERSON)
        for total in related.totals:
            level = f"each {total.level}"
            if total.level == PERSON:
                level = "a whole person"
            if related.names_alone:
                level = f"the names of {level}"
            item = f"all releases about the people of {data}, for {level}"
            times[item] += 1
            if times[item] > 1:
                item += f" (other people, {times[item]})"
            values: dict[str, Any] = {
                "epsilon": total.epsilon.value,
                "person_epsilon": math.inf if related.names_alone else whole,
                "names_epsilon": whole if related.names_alone else None,
                "delta": total.epsilon.delta,
                "unit": related.hidden(total.level),
                "neighbours": total.relation.value,
                "data": data,
                "releases": total.releases,
            }
            yield from (Measure(metric, value, item=item) for metric, value in values.items())


def _covered(found: Guarantee) -> str:
    return f"{found.data}, each {found.unit}, {found.relation.value}"


def votes(path: str, context: Context) -> Reading:
    """A folder of ``vote_words``: how many words were voted on, with which noise, and released."""
    content = read_json(Path(path) / "votes.json")
    names = ("candidates", "released_words", "released_bigrams", "vote_noise", "threshold")
    keys = ("candidates", "words", "bigrams", "noise", "threshold")
    return Reading(tuple(Measure(name, content[key]) for name, key in zip(names, keys)))


def labels(path: str, context: Context) -> Reading:
    """A folder of ``aggregate_votes`` or ``vote_tokens``: what teachers were asked and answered."""
    content = read_json(Path(path) / "labels.json")
    measures = [
        Measure("votes_asked", int(content["votes_asked"])),
        Measure("votes_answered", int(content["votes_answered"])),
        Measure("vote_noise", float(content["noise"] or 0.0)),
        Measure("labels", int(content["utterances_answered"])),
        Measure("vote", str(content["vote"])),
    ]
    published = content["as_published"]
    if published:
        measures.append(Measure("published_k", int(published["K"])))
        measures.append(Measure("published_scale", float(published["scale"])))
        for reading in ("equation", "figures"):
            value = published["epsilon"].get(f"published_{reading}")
            measures.append(Measure(f"published_{reading}", value))
    return Reading(tuple(measures))


def agreement(path: str, context: Context) -> Reading:
    """Read the teachers' agreement of ``vote_costs``; private."""
    content = read_json(Path(path))
    if content.get("for_release") is not False:
        raise DataError(path, "what vote_costs writes", "something else", "make it again")
    return Reading(
        tuple(
            Measure("agreement", float(value), item=name.replace("_", " "))
            for name, value in content.items()
            if name != "for_release"
        )
    )
