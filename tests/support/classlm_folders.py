"""Scores with names and texts of recipe ``classlm``, as its stages leave them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.scoring.entities import Entities
from privasr_k2.scoring.hypotheses import Utterance, Weights
from privasr_k2.scoring.names import score_names
from privasr_k2.scoring.results import (
    Score,
    ScoreOptions,
    score_part,
    score_utterances,
)

POINT = Weights(0.5, 0.0)
OPTIONS = ScoreOptions(role="test", num_replicates=999, confidence=0.95, seed=1)
UTTERANCES, SPEAKERS = 60, 6
REF = ("ask", "ann", "to", "come", "now")


def write_system(
    exp: Path,
    system: str,
    errors: int,
    lost_names: int,
    *,
    parts: tuple[str, ...] = ("test",),
    role: str = "test",
    ref: tuple[str, ...] = REF,
    entities: bool = True,
) -> Path:
    """The first ``errors`` utterances lack their last word, the first ``lost_names`` their name."""
    found, records = {}, []
    for number, part in enumerate(parts):
        utterances = []
        for i in range(number, UTTERANCES, len(parts)):
            hyp = [*(ref if i >= errors else ref[:-1])]
            if i < lost_names:
                hyp[1] = "on"
            utterances.append(
                Utterance(f"u{i}", part, f"s{i % SPEAKERS}", ref, False, {POINT: tuple(hyp)})
            )
        person, none = frozenset({"PER"}), frozenset[str]()
        words = {u.id: (none, person, none, none, none)[: len(ref)] for u in utterances}
        known = Entities(words, {"ann": person}, ("PER",), frozenset({"ann"}))
        scored = score_utterances(utterances, POINT, {}, None, known if entities else None)
        refs = [utterance.ref for utterance in utterances]
        found[part] = score_part(part, scored, OPTIONS, raw_refs=refs, vocabulary=None)
        if entities:
            found[part] = replace(found[part], entities=score_names(part, scored, known, OPTIONS))
        records += [u.to_dict() for u in scored]
    folder = exp / system / f"score_{role}"
    write_json(folder / "wer.json", Score(folder, "", role, POINT, OPTIONS, found).to_dict())
    write_jsonl(folder / "utterances.jsonl", records)
    return folder


def write_texts(folder: Path, mentions: int) -> Path:
    """``about.json`` of ``split_corpus``, of a corpus without speech."""
    part = {
        **{"minutes": None, "utterances": 1200, "spoken_utterances": 0, "users": 6},
        **{"unique_words": 99, "words": 6000},
        "mentions": mentions,
        "entities": {"PER": {"mentions": 1070, "words": 1071, "unique": 3}},
    }
    size = {"percent": 12.345, "users_with_speech_in_train": ["s1", "s2"]}
    parts = {name: part for name in ("background", "adapt_12", "dev", "test")}
    write_json(folder / "about.json", {"sizes": {"adapt_12": size}, "parts": parts})
    return folder
