"""Data of a recipe: clients, timelines, texts, names, and the private speakers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privasr_k2.data.private_public_split import FORMAT
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.report.measures import Context, Measure, Reading

_SIDES = {
    "private": "private",
    "public": "public, with texts",
    "pool": "public, without texts: what teachers are asked for",
}
_FOUND = {"mentions": "mentions", "words": "words", "different_words": "different"}
_GOLD = {
    "span_recall_percent": "gold_recall",
    "span_precision_percent": "gold_precision",
    "span_f1_percent": "gold_f1",
    "word_recall_percent": "gold_word_recall",
    "residual_percent": "residual",
}


def clients(path: str, context: Context) -> Reading:
    """``clients.jsonl.gz``: how much text clients have."""
    from privasr_k2.federated.clients import read_clients, table

    statistics = table(read_clients(Path(path)))
    return Reading(tuple(Measure(name, float(value)) for name, value in statistics.items()))


def timeline(path: str, context: Context) -> Reading:
    """A timeline of ``prepare_fmp``."""
    turns = list(read_jsonl(Path(path)))
    return Reading(
        (
            Measure("clients", len({turn["client"] for turn in turns})),
            Measure("users", len({turn["user"] for turn in turns})),
            Measure("utterances", len(turns)),
            Measure("words", sum(int(turn["ref_words"]) for turn in turns)),
        )
    )


def texts(path: str, context: Context) -> Reading:
    """A folder of ``split_corpus``; items are its parts."""
    content = read_json(Path(path) / "about.json")
    measures: list[Measure] = []
    for item, of in content["parts"].items():
        if item in content["sizes"]:
            measures.append(Measure("percent", float(content["sizes"][item]["percent"]), item=item))
        measures.append(Measure("minutes", of["minutes"], item=item))
        measures.append(Measure("spoken", int(of["spoken_utterances"]), item=item))
        for name in ("utterances", "users", "unique_words", "words", "mentions"):
            measures.append(Measure(name, int(of[name]), item=item))
    return Reading(tuple(measures))


def entities(path: str, context: Context) -> Reading:
    """Of ``report_entities``; items are classes of names."""
    content = read_json(Path(path))
    measures: list[Measure] = []
    for item, of in (content.get("classes") or {}).items():
        known = ((to, of[name]) for name, to in _FOUND.items() if name in of)
        measures += [Measure(*pair, item=item) for pair in known]
    for item, of in (content.get("gold") or {}).items():
        measures += _scored(item, of)
    for item, epsilon in ((content.get("privacy") or {}).get("epsilon_per_word") or {}).items():
        measures.append(Measure("epsilon_word", float(epsilon), item=item))
    for item, of in (content.get("coverage") or {}).items():
        measures += _covered(item, of)
    if not measures:
        raise KeyError("classes")
    return Reading(tuple(measures))


def found_names(path: str, context: Context) -> Reading:
    """Of ``report_entities``: all classes together, without an item: a row for each tagger."""
    content = read_json(Path(path))
    return Reading(tuple(_scored("", content["gold"]["all"])))


def _scored(item: str, of: Mapping[str, Any]) -> Iterator[Measure]:
    """Rates against annotated names, with intervals where documents were drawn again."""
    ends = of.get("intervals", {})
    for name, to in _GOLD.items():
        if name in of:
            documents = ends.get(f"{name.removesuffix('_percent')}_documents")
            yield Measure.drawn(to, of[name], ends.get(name), documents, "", item)


def _covered(item: str, of: Mapping[str, Any]) -> list[Measure]:
    shares = [
        Measure(name, 100 * of[name] / of["words"], item=item)
        for name in ("on_lists", "on_own_list", "in_names")
    ]
    return [Measure("test_words", int(of["words"]), item=item), *shares]


def people(path: str, context: Context) -> Reading:
    """``sides.json`` of ``split_corpus``: how many speakers are private."""
    return Reading((Measure("people", len(_sides(path)["private"]["speakers"])),))


def _sides(path: str) -> Any:
    content = read_json(Path(path))
    if content.get("format") != FORMAT:
        raise DataError(path, "sides.json", "another file", "name that of split_corpus")
    return content


def sides(path: str, context: Context) -> Reading:
    """``sides.json`` of ``split_corpus``; of the private side only the number of speakers."""
    content = _sides(path)
    measures: list[Measure] = []
    for side, item in _SIDES.items():
        measures.append(Measure("speakers", len(content[side]["speakers"]), item=item))
        if side != "private":
            measures.append(Measure("utterances", int(content[side]["utterances"]), item=item))
            measures.append(Measure("hours", float(content[side]["hours"]), item=item))
    return Reading(tuple(measures))
