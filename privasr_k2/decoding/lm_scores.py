"""Files of an LM's log-probabilities of every word and sentence end of N-best lists.

LMs can so be interpolated word by word. A file is safetensors: ``log_probs`` (W,) float32,
natural log, hypothesis by hypothesis; its header has the LM's ``name`` and the SHA-256 of the
``lists`` as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from privasr_k2.decoding.rescoring import Candidates
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.scoring.align import to_scored_units
from privasr_k2.scoring.counts import count_errors
from privasr_k2.scoring.nbest_lists import NbestList, NbestLists

_AGAIN = "score the lists again: lm_scores"


def with_hypotheses(lists: NbestLists) -> tuple[NbestList, ...]:
    """The lists that have hypotheses."""
    return tuple(nbest for nbest in lists.lists if nbest.hyps)


def sentences_of(lists: NbestLists) -> list[list[list[str]]]:
    """The words of the hypotheses of each list that has any."""
    return [[hyp.words.split() for hyp in nbest.hyps] for nbest in with_hypotheses(lists)]


def write_lm_scores(path: Path, name: str, lists: NbestLists, log_probs: np.ndarray) -> None:
    """Write an LM's natural logs (W,) for :func:`sentences_of` the lists."""
    header = {"json": json.dumps({"name": name, "lists": _digest(lists)})}
    with atomic_path(path) as temporary, disk_errors(path):
        save_file({"log_probs": log_probs.astype(np.float32)}, str(temporary), header)


def read_lm_scores(paths: Iterable[Path], lists: NbestLists) -> dict[str, np.ndarray]:
    """The scores of several LMs for these lists, by name, (W,) float64 each.

    Raises:
        DataError: a file for other lists, one that is damaged or lacks scores, or two of one name.
    """
    expected = _digest(lists)
    total = sum(len(hyp) + 1 for nbest in sentences_of(lists) for hyp in nbest)
    by_name: dict[str, np.ndarray] = {}
    for path in paths:
        expected_file = "scores that lm_scores wrote"
        header, arrays = read_arrays(path, ["log_probs"], expected=expected_file, way_out=_AGAIN)
        log_probs = arrays["log_probs"].astype(np.float64)
        if header.get("lists") != expected:
            expected = f"scores of the lists in {lists.place}"
            raise DataError(path, expected, "those of others", _AGAIN)
        if log_probs.shape != (total,):
            shape = f"an array of the shape {log_probs.shape}"
            raise DataError(path, f"{total} scores, of all words and sentence ends", shape, _AGAIN)
        if not isinstance(header.get("name"), str) or not header["name"]:
            raise DataError(path, "the name of the LM", repr(header.get("name")), _AGAIN)
        name = header["name"]
        if name in by_name:
            expected, found = "LMs of different names", f"{name} twice"
            way_out = "score one again under another: lm_scores --set name=NAME"
            raise DataError(path, expected, found, way_out)
        by_name[name] = log_probs
    return by_name


def with_lm_scores(lists: NbestLists, log_probs: Mapping[str, np.ndarray]) -> NbestLists:
    """The lists with each LM's natural log of P(words, end) in every hypothesis."""
    words = [len(hyp.words.split()) + 1 for nbest in with_hypotheses(lists) for hyp in nbest.hyps]
    if not words:
        return lists
    starts = np.concatenate([[0], np.cumsum(words)[:-1]]).astype(np.int64)
    totals = {
        name: iter(np.add.reduceat(values, starts).tolist()) for name, values in log_probs.items()
    }
    scored = []
    for nbest in lists.lists:
        hyps = tuple(
            replace(hyp, lm_scores=hyp.lm_scores | {name: next(of) for name, of in totals.items()})
            for hyp in nbest.hyps
        )
        scored.append(replace(nbest, hyps=hyps))
    names = tuple(sorted({*lists.lm_names, *log_probs}))
    return replace(lists, lists=tuple(scored), lm_names=names)


def candidates_of(
    lists: NbestLists, log_probs: Mapping[str, np.ndarray], scored_units: Mapping[str, str]
) -> Candidates:
    """The lists as arrays, with the errors of every hypothesis.

    Args:
        log_probs: as :func:`read_lm_scores` gives them.
        scored_units: as for :func:`privasr_k2.scoring.align.to_scored_units`; may be empty.

    Raises:
        DataError: no list has a hypothesis, or a score is not finite.
    """
    chosen = with_hypotheses(lists)
    if not chosen:
        raise DataError(lists.place, "a list with hypotheses", "none", "look at the first pass")
    errors = []
    for nbest in chosen:
        ref = to_scored_units(nbest.ref.split(), scored_units)
        hyps = (to_scored_units(hyp.words.split(), scored_units) for hyp in nbest.hyps)
        errors += [count_errors(ref, hyp).errors for hyp in hyps]
    sizes = [len(nbest.hyps) for nbest in chosen]
    hyps = [hyp for nbest in chosen for hyp in nbest.hyps]
    return Candidates(
        utterance=np.repeat(np.arange(len(chosen)), sizes),
        am=np.array([hyp.am_score for hyp in hyps]),
        num_words=np.array([len(hyp.words.split()) for hyp in hyps]),
        errors=np.array(errors),
        log_probs=log_probs,
    )


def _digest(lists: NbestLists) -> str:
    content = [[nbest.id, [hyp.words for hyp in nbest.hyps]] for nbest in lists.lists]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
