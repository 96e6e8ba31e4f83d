"""Folders as ``wer`` writes them, from references and hypotheses as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.scoring.hypotheses import Utterance, Weights
from privasr_k2.scoring.results import (
    PartScore,
    Score,
    ScoredUtterance,
    ScoreOptions,
    read_score,
    score_characters,
    score_part,
    score_utterances,
)

POINT = Weights(0.5, 0.0)
OPTIONS = ScoreOptions(role="test", num_replicates=2000, confidence=0.95, seed=1)


def write_score(
    folder: Path,
    parts: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]],
    num_speakers: int = 6,
    groups: Mapping[str, Mapping[str, str]] | None = None,
) -> Score:
    """Score and write: part -> (id -> reference, id -> hypothesis); speakers take turns.

    ``groups`` are as :func:`privasr_k2.scoring.groups.read_groups` gives them.
    """
    found: dict[str, PartScore] = {}
    records = []
    for part, (refs, hyps) in parts.items():
        utterances = []
        for i, (name, ref) in enumerate(refs.items()):
            facts, words = (name, part, f"s{i % num_speakers}"), tuple(hyps[name].split())
            utterances.append(Utterance(*facts, tuple(ref.split()), False, {POINT: words}))
        scored = score_utterances(utterances, POINT, {}, groups)
        raw_refs = [utterance.ref for utterance in utterances]
        made = score_part(part, scored, OPTIONS, raw_refs=raw_refs, vocabulary=None)
        values = {**made.to_dict(), "characters": score_characters(part, scored, OPTIONS).to_dict()}
        found[part] = PartScore.from_dict(values)
        records += scored
    return _written(folder, "test", OPTIONS, found, records)


def write_hyps(
    folder: Path,
    hyps: list[str | None],
    ref: str = "a b c d",
    role: str = "test",
    groups: Mapping[str, Mapping[str, str]] | None = None,
) -> Score:
    """Score and write hypotheses of one reference; ``None``: nothing was recognized.

    Six speakers take turns.
    """
    utterances = []
    for i, hyp in enumerate(hyps):
        facts, words = (f"u{i}", "test_x", f"s{i % 6}"), tuple((hyp or "").split())
        points = {} if hyp is None else {POINT: words}
        utterances.append(Utterance(*facts, tuple(ref.split()), hyp is None, points))
    scored = score_utterances(utterances, POINT, {}, groups)
    options = replace(OPTIONS, num_replicates=5000)
    raw_refs = [utterance.ref for utterance in utterances]
    part = score_part("test_x", scored, options, raw_refs=raw_refs, vocabulary={"a", "b", "c"})
    return _written(folder, role, options, {"test_x": part}, scored)


def _written(
    folder: Path,
    role: str,
    options: ScoreOptions,
    parts: dict[str, PartScore],
    scored: Sequence[ScoredUtterance],
) -> Score:
    score = Score(folder, folder.parent.name, role, POINT, options, parts)
    write_json(folder / "wer.json", score.to_dict())
    write_jsonl(folder / "utterances.jsonl", [utterance.to_dict() for utterance in scored])
    return read_score(folder)
