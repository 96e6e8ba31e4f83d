"""Folders as ``wer`` writes them, from references and hypotheses as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.scoring.hypotheses import Utterance, Weights
from privasr_k2.scoring.results import (
    PartScore,
    Score,
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
    num_speakers: int = 3,
) -> Score:
    """Score and write: part -> (id -> reference, id -> hypothesis); speakers take turns."""
    found: dict[str, PartScore] = {}
    records = []
    for part, (refs, hyps) in parts.items():
        utterances = []
        for i, (name, ref) in enumerate(refs.items()):
            facts, words = (name, part, f"s{i % num_speakers}"), tuple(hyps[name].split())
            utterances.append(Utterance(*facts, tuple(ref.split()), False, {POINT: words}))
        scored = score_utterances(utterances, POINT, {})
        raw_refs = [utterance.ref for utterance in utterances]
        made = score_part(part, scored, OPTIONS, raw_refs=raw_refs, vocabulary=None)
        values = {**made.to_dict(), "characters": score_characters(part, scored, OPTIONS).to_dict()}
        found[part] = PartScore.from_dict(values)
        records += [u.to_dict() for u in scored]
    score = Score(folder, folder.parent.name, "test", POINT, OPTIONS, found)
    write_json(folder / "wer.json", score.to_dict())
    write_jsonl(folder / "utterances.jsonl", records)
    return read_score(folder)


def write_hyps(
    folder: Path, hyps: list[str | None], ref: str = "a b c d", role: str = "test"
) -> Score:
    """Score and write hypotheses of one reference; ``None``: nothing was recognized."""
    utterances = [
        Utterance(
            f"u{i}",
            "test_x",
            f"s{i % 3}",
            tuple(ref.split()),
            h is None,
            {} if h is None else {POINT: tuple(h.split())},
        )
        for i, h in enumerate(hyps)
    ]
    scored = score_utterances(utterances, POINT, {})
    refs = [u.ref for u in utterances]
    part = score_part(
        "test_x",
        scored,
        replace(OPTIONS, num_replicates=5000),
        raw_refs=refs,
        vocabulary={"a", "b", "c"},
    )
    score = Score(
        folder,
        folder.parent.name,
        role,
        POINT,
        replace(OPTIONS, num_replicates=5000),
        {"test_x": part},
    )
    write_json(folder / "wer.json", score.to_dict())
    write_jsonl(folder / "utterances.jsonl", [u.to_dict() for u in scored])
    return read_score(folder)
