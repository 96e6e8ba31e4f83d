"""A release of labels: its entry in the ledger, and its files, all of which are released.

``answers-<n>.safetensors`` hold the noisy answers, written once before anything reads them.
``labels.jsonl`` and ``labels.json`` are computed from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from privasr_k2.decoding.end_to_end import join_tokens
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays, write_json, write_jsonl
from privasr_k2.graph.lexicon import spell_words
from privasr_k2.pate.mechanisms import RELATION, MechanismConfig, Setting
from privasr_k2.pate.published import as_published
from privasr_k2.privacy.events import is_unprotected
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.spending import SETTINGS, Spending

LABELS, ABOUT = "labels.jsonl", "labels.json"
_FORMAT = "privasr_k2 labels 1"
Weighted = Sequence[tuple[str, float]]


def spending_of(
    config: MechanismConfig, setting: Setting, *, vote: str, unit: str, units: int, teachers: int
) -> Spending:
    """The entry of the ledger.

    Args:
        vote: what is voted on: ``utterance``, ``frame`` or ``token``.
        unit, units: of the shards, and their number in the roster.
        teachers: I.
    """
    assert setting.event is not None
    outside: tuple[str, ...] = (
        f"which {unit}s the roster names, and whose shard is whose: both are public; hidden is"
        " whether one of them has data, and what",
        "whether the run succeeded: a teacher whose training fails stops it",
        "the teachers, their votes and how far they agree, which are not released",
        "the pool, what is voted for, the public model, dev and vocabulary: taken as public",
        SETTINGS,
        "float32 rounding that heads share which are trained together (heads_at_once=1: none does)",
    )
    if unit == "utterance":
        outside += ("speakers at this epsilon: one has a vote in each shard with an utterance of"
                    " theirs; theirs is that of a person",)  # fmt: skip
    answers = f"at most {setting.max_answers} answers of {teachers} teachers ({vote})"
    alone = setting.change is Change.GIVEN
    changed = "gives or takes one vote" if alone else "moves one vote"
    return Spending(
        data=config.data,
        released=f"{answers}, {setting.mechanism}; one {unit} {changed}",
        unit=unit,
        units=units,
        relation=RELATION,
        event=setting.event,
        sampling="one vote of each teacher in every query",
        delta=config.delta,
        does_not_cover=outside,
    )


def about(
    setting: Setting,
    *,
    release: Release | None,
    vote: str,
    unit: str,
    teachers: int,
    units_in_a_shard: int,
    asked: int,
    answered: int,
    utterances: tuple[int, int],
) -> dict[str, Any]:
    """The content of ``labels.json``, which reveals no more than the answers.

    Args:
        asked, answered: votes that were looked at and answered.
        utterances: that were asked about, and have a label.
    """
    cost, epsilon, published = setting.epsilon, None, None
    if release is not None and is_unprotected(release.entry.spending.event):
        cost = None
    if cost is not None:
        epsilon = {"value": cost.value, "delta": cost.delta, "rdp": cost.rdp, "pld": cost.pld}
        published = as_published(setting.noise, answered, utterances[1])
    return {
        "format": _FORMAT,
        "release": None if release is None else release.entry.release,
        "mechanism": setting.mechanism,
        "vote": vote,
        "unit": unit,
        "teachers": teachers,
        "units_in_a_shard": units_in_a_shard,
        "sensitivity": {"l1": setting.change.l1, "l2": setting.change.l2},
        "noise": setting.noise,
        "threshold": setting.threshold,
        "threshold_noise": setting.threshold_noise,
        "votes_planned": {"asked": setting.max_queries, "answered": setting.max_answers},
        "votes_asked": asked,
        "votes_answered": answered,
        "utterances_asked": utterances[0],
        "utterances_answered": utterances[1],
        "epsilon": epsilon,
        "as_published": published,
    }


def write_answers(
    path: Path, values: Mapping[str, np.ndarray], header: Mapping[str, Any], release: Release | None
) -> None:
    """Write answers with the name of their release, whole or not at all."""
    name = None if release is None else release.entry.release
    with atomic_path(path) as temporary, disk_errors(path):
        whole = {key: np.ascontiguousarray(value) for key, value in values.items()}
        save_file(whole, str(temporary), {"json": json.dumps({**header, "release": name})})


def read_answers(
    path: Path, release: Release | None
) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """The answers that this release has drawn before; None if it has not, or without a release.

    Raises:
        DataError: a file that is none of these.
    """
    if release is None or not path.is_file():
        return None
    way_out = "remove it; what it held was spent"
    header, arrays = read_arrays(path, expected="answers", way_out=way_out)
    if "release" not in header:
        raise DataError(path, "answers of a release", "none named", way_out)
    return (arrays, header) if header["release"] == release.entry.release else None


def write_labels(
    folder: Path,
    labels: Iterable[tuple[str, Weighted]],
    summary: Mapping[str, Any],
    *,
    in_phones: bool = False,
) -> None:
    """Write ``labels.jsonl``, a line an utterance, and then ``labels.json``.

    Args:
        in_phones: hypotheses are phones with spaces between them (``phones``), not ``text``.
    """
    key = "phones" if in_phones else "text"
    records = (
        {"id": name, "hyps": [{key: text, "weight": weight} for text, weight in hyps]}
        for name, hyps in sorted(labels)
    )
    write_jsonl(folder / LABELS, records)
    write_json(folder / ABOUT, dict(summary))


def joined(sequence: Iterable[int], tokens: Sequence[str]) -> str:
    """The words that tokens spell, or phones with spaces between them.

    >>> joined([1, 2, 2, 1, 2], ["<blk>", "▁", "a"]), joined([1, 2], ["<blk>", "AA", "B"])
    ('aa a', 'AA B')
    """
    names = [tokens[token] for token in sequence]
    return join_tokens(names) if spell_words(tokens) else " ".join(names)


def collapsed(frames: Iterable[int], tokens: Sequence[str]) -> str:
    """What a path of CTC says: repetitions merged, blanks taken out.

    >>> collapsed([0, 1, 1, 2, 0, 2, 1, 2], ["<blk>", "▁", "a"])
    'aa a'
    """
    return joined([token for token, _ in groupby(frames) if token], tokens)
