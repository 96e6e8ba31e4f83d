"""Results of attacks. An audit bounds epsilon from below; membership and inversion do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privasr_k2.fileio import read_json
from privasr_k2.report.measures import Context, Measure, Reading

_VOTES = {
    "tied": "votes tied",
    "at_threshold": "votes at the threshold",
    "own_words": "words of one speaker alone",
}
_COUNTS = {"heaviest_unit": "heaviest unit", "rarest_word": "rarest word"}
_TRAININGS = {"without_privacy": "no clip, no noise", "with_privacy": "as claimed"}


def audit(path: str, context: Context) -> Reading:
    """Of verb ``audit``; items are what was attacked."""
    content = read_json(Path(path))
    measures: list[Measure] = []
    if isinstance(content.get("epsilon_lower"), Mapping):
        measures += _bound("units with marks", content)
    for key, item in _VOTES.items():
        if key in content:
            measures += _bound(item, content[key]["whole_release"])
    if "marks" in content:
        measures += _bound("marks in updates", content["marks"])
    for key, item in _TRAININGS.items():
        if key in content:
            measures += _training(item, content[key])
    for key, item in _COUNTS.items():
        if key in content:
            measures += _bound(item, content[key])
    if "published" in content:
        called = f"as published, called epsilon {content['published']['called']:g}"
        for name, value in content["published"].items():
            if name != "called":
                metric = name if name.startswith("paper_") else f"published_{name}"
                measures.append(Measure(metric, float(value), item=called))
    if not measures:
        raise KeyError("epsilon_lower, tied, marks or heaviest_unit")
    return Reading(tuple(measures))


def canary_audit(path: str, context: Context) -> Reading:
    """Of verb ``audit`` by units with marks, without an item: for tables of a row a system."""
    content = read_json(Path(path))
    if not isinstance(content.get("epsilon_lower"), Mapping):
        raise KeyError("epsilon_lower")
    return Reading(tuple(_bound("", content)))


def lm_audit(path: str, context: Context) -> Reading:
    """Of verb ``audit`` by marks of clients: what the LM beside a recognizer claims, in its row."""
    marks = read_json(Path(path))["marks"]
    lower = marks["epsilon_lower"]
    values = marks["claimed_epsilon"], lower["sound"], lower["broken"]
    metrics = "lm_claimed", "lm_lower", "lm_broken"
    return Reading(tuple(Measure(name, float(value)) for name, value in zip(metrics, values)))


def _bound(item: str, told: Mapping[str, Any]) -> Iterator[Measure]:
    lower = told["epsilon_lower"]
    yield Measure("claimed", float(told["claimed_epsilon"]), item=item)
    yield Measure("audit_lower", float(lower["sound"]), item=item)
    yield Measure("audit_broken", float(lower["broken"]), item=item)
    yield Measure("audit_noise_free", float(lower["noise_free"]), item=item)
    yield Measure("audit_largest", float(told["largest_possible"]), item=item)
    yield Measure("audit_trials", int(told["trials"]), item=item)
    yield Measure("audit_confidence", float(told["confidence"]), item=item)
    yield Measure("audit_verdict", str(told["verdict"]), item=item)


def _training(item: str, told: Mapping[str, Any]) -> Iterator[Measure]:
    secrets, members = told["exposure"], told["membership"]
    yield Measure("exposure", float(secrets["mean_exposure"]), item=item)
    yield Measure("exposure_largest", float(secrets["largest_exposure"]), item=item)
    yield Measure("exposure_possible", float(secrets["largest_possible_exposure"]), item=item)
    yield Measure("canary_lower", float(secrets["epsilon_lower"]), item=item)
    yield Measure.within("auc", float(members["auc"]), members["auc_interval"], item)


def membership(path: str, context: Context) -> Reading:
    """Of ``infer_membership``: who was in which shard or training; private.

    ``FILE#MODEL``: of one of its models, and of the blind baseline beside it.
    """
    file, _, key = path.partition("#")
    content = read_json(Path(file))
    if key:
        return Reading(tuple(_of_one(content, key)))
    measures: list[Measure] = []
    if "teachers" in content:
        of = content["teachers"]
        item = f"shards of {of['teachers']:,} teachers"
        measures += _curve(item, of)
        measures.append(Measure("members", int(of["units"]), item=item))
        guessed = of["right_shard"], of["right_shard_interval"]
        measures.append(Measure.within("shard_guessed", *guessed, item))
        measures.append(Measure("chance", float(of["chance"]), item=item))
    if "teachers" not in content and "models" not in content:
        raise KeyError("teachers or models")
    for name, of in content.get("models", {}).items():
        item = context.label_of(name)
        measures += _curve(item, of)
        measures.append(Measure("members", int(of["members"]), item=item))
        measures.append(Measure("others", int(of["others"]), item=item))
    return Reading(tuple(measures))


def _of_one(content: Mapping[str, Any], name: str) -> Iterator[Measure]:
    """Both attacks upon a model, and the baseline that sees none, without items."""
    of = content["models"][name]
    yield from _curve("", of)
    yield Measure("members", int(of["members"]))
    yield Measure("others", int(of["others"]))
    for prefix, told in (
        ("", of),
        ("perturbed_", of.get("perturbed")),
        ("blind_", content.get("blind")),
    ):
        if told is None:
            continue
        if prefix:
            yield Measure.within(f"{prefix}auc", told["auc"], told["auc_interval"], "")
            yield Measure.within(f"{prefix}tpr", told["tpr"], told["tpr_interval"], "")
        if "beyond_blind" in told:
            beyond = told["beyond_blind"], told["beyond_blind_interval"]
            speakers = told.get("beyond_blind_speakers")
            yield Measure.drawn(f"{prefix}beyond_blind", *beyond, speakers)


_EXPOSURES = {"heard": "canary_exposure", "fused": "fused_exposure",
              "fused_silenced": "silenced_exposure"}  # fmt: skip
_NAMES = ("true_name", "any_name", "name_first")


def recognizer(path: str, context: Context) -> Reading:
    """``FILE#MODEL`` of ``attack_recognizer``: what one model tells of canaries and names."""
    file, _, key = path.partition("#")
    of = read_json(Path(file))["models"][key]
    measures: list[Measure] = []
    for kind, metric in _EXPOSURES.items():
        if kind in of:
            measures.append(Measure(metric, float(of[kind]["mean_exposure"])))
    heard = of["heard"]
    measures.append(Measure("canary_possible", float(heard["largest_possible_exposure"])))
    measures.append(Measure("canary_lower", float(heard["epsilon_lower"])))
    names = of.get("names", {})
    for metric in (metric for metric in _NAMES if metric in names):
        ends = [100 * end for end in names[f"{metric}_interval"]]
        measures.append(Measure.within(metric, 100 * names[metric], ends, ""))
    if "name_exposure" in names:
        measures.append(Measure("name_exposure", float(names["name_exposure"])))
        measures.append(Measure("name_others", float(names["name_exposure_others"])))
        beyond = names["name_exposure_beyond"], names["name_exposure_beyond_interval"]
        speakers = names.get("name_exposure_speakers")
        measures.append(Measure.drawn("name_beyond", *beyond, speakers))
    if names:
        measures.append(Measure("masked_names", int(names["mentions"])))
    return Reading(tuple(measures))


def planted_names(path: str, context: Context) -> Reading:
    """``FILE#MODEL`` of verb ``audit``: names that one model of sanitized text tells."""
    file, _, key = path.partition("#")
    of = read_json(Path(file))["models"][key]
    measures = [Measure("names_possible", float(of["possible"]))]
    for kind, told in of["kinds"].items():
        found = float(told["exposure"]), told["interval"]
        measures.append(Measure.drawn(kind, *found, int(told["canaries"])))
    measures += [
        Measure(f"{name}_{often}", float(of[f"{name}_{often}"]))
        for name in ("epsilon", "lower")
        for often in ("once", "often")
        if f"{name}_{often}" in of
    ]
    return Reading(tuple(measures))


def _curve(item: str, told: Mapping[str, Any]) -> Iterator[Measure]:
    yield Measure.within("auc", float(told["auc"]), told["auc_interval"], item)
    yield Measure.within("tpr", told["tpr"], told["tpr_interval"], item)
    yield Measure("fpr", float(told["fpr"]), item=item)


def inversion(path: str, context: Context) -> Reading:
    """Of ``invert_model``: whom what was found in a model resembles; private."""
    measures: list[Measure] = []
    for name, of in read_json(Path(path))["systems"].items():
        item = "control: random weights" if of["control"] else context.label_of(name)
        item = f"{item}, {of['attack'].replace('_', ' ')}"
        measures.append(Measure("log_likelihood", float(of["log_likelihood"]), item=item))
        measures.append(Measure("begun_at", float(of["begun_at"]), item=item))
        alone, less = of["alone"], of["less_control"]
        if alone is not None:
            measures.append(Measure("members", int(alone["members"]), item=item))
            measures.append(Measure("others", int(alone["others"]), item=item))
            measures.append(Measure("member_distance", alone["member_distance"], item=item))
            measures.append(Measure("other_distance", alone["other_distance"], item=item))
        for metric, test in (("advantage", alone), ("less_control", less)):
            if test is not None:
                found = test["advantage"], test["interval"]
                speakers = min(test["members"], test["others"])
                measures.append(Measure.drawn(metric, *found, speakers, "", item))
                measures.append(Measure(f"{metric}_p", test["p_holm"], item=item))
    return Reading(tuple(measures))
