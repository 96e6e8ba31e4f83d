"""What attacks found on systems of recipes ``pate`` and ``dpsgd``, for their report: audits, members, voices.

Only an audit says something of epsilon: a lower bound, which must be below the claim. Membership inference
and model inversion show leakage where they find some, and bound nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.privacy.spending import shown
from privasr_k2.scoring.pate_results import Name, model_label, name_of, parse_system
from privasr_k2.scoring.report import NOTHING, p_text, table

Row = Mapping[str, str]
_PAIRS = {"tied": "votes tied", "at_threshold": "votes at the threshold"}
_CONTROL = "randomly initialized, the control"
_AUDIT_NOTES = (
    "At least: a lower bound on the epsilon of the whole release, at its delta and with that confidence. It "
    "says that epsilon is not smaller, and never that the claim is right; above the claim it refutes it.",
    "An audit counts where the same attack exceeds the claim on a release with a tenth of the noise "
    "(`broken` of `conf/audit_pate.yaml` and `conf/audit_dpsgd.yaml`), and finds something without noise. "
    "With as many trials no attack could show more than the column `could show` has.",
    "Labels are attacked through one teacher's vote, DP-SGD through units that send marks; neither looks "
    "at a model.",
)
_MEMBER_NOTES = (
    "AUC: how often a member's gain is above another's; 0.5 is a guess. TPR: members found where so many "
    "others are taken for members; – where they are too few for that rate.",
    "It tells of these models and these people. No bound on epsilon follows, and a guess is no proof of "
    "privacy: where the model that is not private is hardly above 0.5, the attack can tell nobody.",
)
_INVERSION_NOTES = (
    "Distances by dynamic time warping, in deviations of public speech, from what was found in a model to "
    "the same words by those in its training (members) and by others. Advantage: how much closer members "
    "are.",
    "Less the control: after the same speakers' distances to what was found in a randomly initialized model "
    "are taken off. What is left is what the model has learned, of its members or of speech.",
    "p: speakers permuted, by Holm for all tests of that attack. An advantage shows leakage; none shows "
    "nothing, and no bound on epsilon follows from either. Pictures: `figure7.svg` of each attack.",
)


class Bound(NamedTuple):
    """An audit of one release.

    Attributes:
        attacked: what in it.
        claimed, delta: the claim.
        confidence: of the bounds.
        sound, broken, noise_free: lower bounds of epsilon: as it is, with the noise divided, without.
        largest_possible: that so many trials could have shown.
        verdict: of :class:`privasr_k2.privacy.audit.bounds.Verdict`.
    """

    attacked: str
    claimed: float
    delta: float
    confidence: float
    sound: float
    broken: float
    noise_free: float
    largest_possible: float
    trials: int
    verdict: str


@dataclass(frozen=True)
class Attacks:
    """All that was tried; of what bounds nothing, the tables' rows.

    Attributes:
        audits: of each release.
        shards: of a model's teachers: whether they tell whose speech they have seen.
        members: of a system: whether it tells its members from others.
        inversions: of each model and attack, by heading.
    """

    audits: Mapping[Name, Sequence[Bound]] = field(default_factory=dict)
    shards: Sequence[Row] = ()
    members: Sequence[Row] = ()
    inversions: Mapping[str, Sequence[Row]] = field(default_factory=dict)


@contextmanager
def _of(path: Path, verbs: str) -> Iterator[Any]:
    """The content of a JSON file; what is missing in it is told as bad input."""
    try:
        yield read_json(path)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(path, f"what {verbs} writes", repr(error), "attack again") from error


def read_audits(paths: Iterable[Path]) -> dict[Name, list[Bound]]:
    """What audits found, from ``<model>/<system>/audit.json``.

    Raises:
        DataError: something else, or the folder of no system.
    """
    found = {}
    for path in paths:
        with _of(path, "audit_pate or audit_dpsgd") as told:
            if "epsilon_lower" in told:
                found[name_of(path)] = [_bound("units with marks", told)]
            else:
                pairs = ["tied", *(["at_threshold"] if "at_threshold" in told else [])]
                found[name_of(path)] = [_bound(_PAIRS[key], told[key]["whole_release"]) for key in pairs]
    return found


def _bound(attacked: str, told: Mapping[str, Any]) -> Bound:
    lower = {key: float(told["epsilon_lower"][key]) for key in ("sound", "broken", "noise_free")}
    given = {key: float(told[key]) for key in ("delta", "confidence", "largest_possible")}
    about = {"trials": int(told["trials"]), "verdict": str(told["verdict"])}
    return Bound(attacked, float(told["claimed_epsilon"]), **given, **lower, **about)  # type: ignore[arg-type]


def read_memberships(paths: Iterable[Path]) -> tuple[list[Row], list[Row]]:
    """Rows on teachers and their shards, and on systems, from ``<model>/membership*.json``.

    Raises:
        DataError: something else, or a model that is no system's.
    """
    shards: list[Row] = []
    members: list[Row] = []
    for path in paths:
        model = path.resolve().parent.name
        with _of(path, "infer_membership") as told:
            unit = f"{told['unit']}s"
            if "teachers" in told:
                of = told["teachers"]
                shards.append(
                    {
                        "system": f"{model_label(model)}, {of['teachers']:,} teachers",
                        unit: f"{of['units']:,}",
                        "shard guessed": f"{of['right_shard']:.3f}",
                        "interval": _interval(of["right_shard_interval"]),
                        "by chance": f"{of['chance']:.3f}",
                        **_curve(of),
                    }
                )
            for folder, of in told.get("models", {}).items():
                system = Path(folder).parts[0]  # a model lies in <system>/am
                parse_system(system, path)
                counts = {unit: f"{of['members']:,}", "others": f"{of['others']:,}"}
                members.append({"system": Name(model, system).label, **counts, **_curve(of)})
    return shards, members


def _curve(told: Mapping[str, Any]) -> dict[str, str]:
    rate, within = told["tpr"], told["tpr_interval"]
    return {
        "AUC": f"{told['auc']:.3f}",
        "AUC interval": _interval(told["auc_interval"]),
        f"TPR at FPR {told['fpr']:g}": NOTHING if rate is None else f"{rate:.3f}",
        "TPR interval": NOTHING if within is None else _interval(within),
    }


def _interval(ends: Sequence[float]) -> str:
    low, high = ends
    return f"{low:.3f} to {high:.3f}"


def read_inversions(paths: Iterable[Path]) -> dict[str, list[Row]]:
    """Rows on systems by heading, from ``<model>/<folder>/inversion.json``, a file a model and attack.

    Raises:
        DataError: something else, or a name of no system.
    """
    found: dict[str, list[Row]] = {}
    for path in paths:
        with _of(path, "report_inversion") as told:
            percent = f"{100 * told['confidence']:g} %"
            for name, of in told["systems"].items():
                label = _CONTROL if of["control"] else parse_system(name, path).label
                heading = (
                    f"{of['attack'].replace('_', ' ')}, {model_label(path.resolve().parent.parent.name)}"
                )
                found.setdefault(heading, []).append(_inverted(label, of, percent))
    return found


def _inverted(label: str, told: Mapping[str, Any], percent: str) -> Row:
    row = {
        "system": label,
        "models": f"{told['models']:,}",
        "words": ", ".join(told["words"]) or NOTHING,
        "log P": f"{told['log_likelihood']:.2f}",
        "at the start": f"{told['begun_at']:.2f}",
    }
    alone = told["alone"]
    if alone is None:
        return {**row, "members and others": "too few to test"}
    row["members and others"] = f"{alone['members']} and {alone['others']}"
    row["distance to members"] = f"{alone['member_distance']:.4f}"
    row["to others"] = f"{alone['other_distance']:.4f}"
    for of, test in (("", alone), ("less control: ", told["less_control"])):
        if test is not None:
            low, high = test["interval"]
            row[f"{of}advantage"] = f"{test['advantage']:+.4f}"
            row[f"{of}{percent} interval"] = f"{low:+.4f} to {high:+.4f}"
            row[f"{of}p (Holm)"] = p_text(test["p_holm"])
    return row


def attack_blocks(given: Attacks) -> Iterator[str]:
    """The section of the report; nothing where nothing was attacked."""
    if given.audits:
        rows = [_audit_row(name, bound) for name, bounds in given.audits.items() for bound in bounds]
        yield f"## Audits: lower bounds of epsilon\n\n{table(rows)}"
        yield _list([*_AUDIT_NOTES, *_exceeding(given.audits)])
    if not (given.shards or given.members or given.inversions):
        return
    yield "## Attacks that bound no epsilon\n"
    yield "These look at members' speech: no guarantee covers the tables, and they are their owner's.\n"
    if given.shards:
        yield f"### Whose speech is in which shard?\n\n{table(given.shards)}"
    if given.members:
        yield f"### Who was in the training?\n\n{table(given.members)}"
    if given.shards or given.members:
        yield _list(_MEMBER_NOTES)
    for heading, found in given.inversions.items():
        yield f"### Model inversion: {heading}\n\n{table(found)}"
    if given.inversions:
        yield _list(_INVERSION_NOTES)


def at_least(bounds: Sequence[Bound]) -> str:
    """The largest lower bound of a release, for the table of claims.

    >>> at_least([])
    '–'
    """
    return f"{max(bound.sound for bound in bounds):.3g}" if bounds else NOTHING


def _list(notes: Iterable[str]) -> str:
    return "".join(f"- {note}\n" for note in notes)


def _audit_row(name: Name, bound: Bound) -> Row:
    return {
        "system": name.label,
        "attacked": bound.attacked,
        "claimed epsilon": shown(bound.claimed),
        "delta": f"{bound.delta:g}",
        "at least": f"{bound.sound:.3g}",
        "a tenth of the noise": f"{bound.broken:.3g}",
        "without noise": f"{bound.noise_free:.3g}",
        "confidence": f"{100 * bound.confidence:g} %",
        "trials": f"{bound.trials:,}",
        "could show": f"{bound.largest_possible:.3g}",
        "the audit": bound.verdict,
    }


def _exceeding(audits: Mapping[Name, Sequence[Bound]]) -> Iterator[str]:
    every = [(name, bound) for name, bounds in audits.items() for bound in bounds]
    above = [name.label for name, bound in every if bound.sound > bound.claimed]
    if above:
        yield f"**Above the claim**, which is refuted: {'; '.join(dict.fromkeys(above))}."
    control = sum(bound.broken > bound.claimed for _, bound in every)
    yield (
        f"{len(above)} of {len(every)} bounds are above the claim; with a tenth of the noise {control} of "
        f"{len(every)} are."
    )
