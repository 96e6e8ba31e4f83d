"""Votes of an ensemble of teachers on a pool: batched, against a loop over teachers and utterances.

    . ./path.sh; python benchmarks/teacher_votes.py

Teachers of random weights (conf/presets/tiny.yaml#am_<kind>) vote for hypotheses of utterances of 1
to 3 seconds: `TeacherEnsemble.hypothesis_votes` on batches of 60 s, and loops. A loop scores a list
of hypotheses as a padded batch with the training loss (not CTC's, whose scores are that loss), or
with our scores, each distinct prefix once, or each hypothesis alone. Runs alternate; the least CPU
time counts. Counts must agree up to rounding. Memory is what each way adds to the peak of a process
of its own. Then the noisy answers to 100,000 votes, against a loop.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import least, measured
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.am.kinds import kind_of, new_model, spec_of
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.noisy_answers import winners
from privasr_k2.recipe.layers import layers

Scores = Callable[[Any, torch.Tensor, list[list[int]]], list[float]]
Votes = list[np.ndarray]
CONF = Path(__file__).resolve().parents[1] / "conf"
FEATURES, TOKENS, BATCH_FRAMES = 80, 30, 6000
AGAINST = {
    "padded": "a loop over teachers and utterances, a list as a padded batch",
    "shared": (
        "a loop over teachers and utterances, each prefix of a list once (CTC: a padded batch)"
    ),
    "alone": "a loop over teachers, utterances and hypotheses",
}


def pool(utterances: int, hyps: int) -> tuple[list[torch.Tensor], list[list[list[int]]]]:
    """Features (T, F) of each utterance, the longest first, and its similar hypotheses."""
    rng = np.random.default_rng(1)
    lengths = sorted(rng.integers(100, 300, utterances))[::-1]
    features = [torch.randn(int(frames), FEATURES) for frames in lengths]
    lists = []
    for frames in lengths:
        said = rng.integers(1, TOKENS, size=max(frames // 12, 2))
        lists.append([])
        for _ in range(hyps):
            is_other, others = rng.random(len(said)) < 0.2, rng.integers(1, TOKENS, len(said))
            lists[-1].append(np.where(is_other, others, said).tolist())
    return features, lists


def batched(
    made: TeacherEnsemble, features: list[torch.Tensor], hyps: list[list[list[int]]]
) -> Votes:
    """All teachers and hypotheses, batches of utterances."""
    found: Votes = []
    start = 0
    while start < len(features):
        end = start + max(1, BATCH_FRAMES // len(features[start]))
        own = features[start:end]
        x = torch.nn.utils.rnn.pad_sequence(own, batch_first=True)
        lengths = torch.tensor([len(one) for one in own])
        found += made.hypothesis_votes(x, lengths, hyps[start:end])
        start = end
    return found


@torch.no_grad()
def padded(model: Any, features: torch.Tensor, hyps: list[list[int]]) -> list[float]:
    """The utterance encoded once, and the training loss of a batch of it with all hypotheses."""
    encoded, lengths = model.encode(features[None], torch.tensor([len(features)]))
    targets = torch.nn.utils.rnn.pad_sequence([torch.tensor(hyp) for hyp in hyps], batch_first=True)
    target_lengths = torch.tensor([len(hyp) for hyp in hyps])
    lengths = lengths.expand(len(hyps))
    encoded = encoded.expand(len(hyps), -1, -1)
    scores: list[float] = (-model.losses(encoded, lengths, targets, target_lengths)).tolist()
    return scores


def shared(model: Any, features: torch.Tensor, hyps: list[list[int]]) -> list[float]:
    """Each distinct prefix once."""
    encoded, kept = model.encode(features[None], torch.tensor([len(features)]))
    tokens = [torch.tensor(hyp, dtype=torch.int64) for hyp in hyps]
    padded = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True)
    sizes = torch.tensor([len(hyp) for hyp in hyps])
    rows = torch.zeros_like(sizes)
    scores: list[float] = model.log_likelihoods(encoded, kept, rows, padded, sizes).tolist()
    return scores


def alone(model: Any, features: torch.Tensor, hyps: list[list[int]]) -> list[float]:
    """Hypothesis by hypothesis."""
    return [shared(model, features, [hyp])[0] for hyp in hyps]


def looped(
    made: TeacherEnsemble, features: list[torch.Tensor], hyps: list[list[list[int]]], scores: Scores
) -> Votes:
    """Teacher by teacher, utterance by utterance."""
    found = [np.zeros(len(own), dtype=np.int64) for own in hyps]
    for model in made.models:
        for counts, x, own in zip(found, features, hyps):
            means = [s / (len(hyp) + 1) for s, hyp in zip(scores(model, x, own), own)]
            counts[int(np.argmax(means))] += 1
    return found


def ways_of(kind: str, args: argparse.Namespace) -> dict[str, Callable[[], Votes]]:
    """Each way to the votes of one kind of model, ours first."""
    files = layers(CONF.parent, f"am_{kind}", preset="tiny")
    settings = config.load(kind_of(files).config, files, [])
    settings = replace(settings, encoder=replace(settings.encoder, kind=args.encoder))
    spec = spec_of(settings, FEATURES, TOKENS)
    models = [new_model(spec, seed).eval() for seed in range(args.teachers)]
    ensemble = TeacherEnsemble(models, per_token=True)
    if kind == "ctc_attention":  # scores as the loss weighs its two parts
        for model in ensemble.models:
            model.ctc_weight = model.spec.ctc_share
    loops: dict[str, Scores] = {"padded": padded, "shared": shared, "alone": alone}
    if kind == "ctc":
        loops.pop("padded")
    features, hyps = pool(args.utterances, args.hyps)
    return {
        "batched": partial(batched, ensemble, features, hyps),
        **{n: partial(looped, ensemble, features, hyps, scores) for n, scores in loops.items()},
    }


def one_way(kind: str, args: argparse.Namespace, name: str) -> Callable[[], Votes]:
    """A way alone, for a process of its own."""
    torch.set_num_threads(args.threads)
    return ways_of(kind, args)[name]


def voting(kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds and memory of each way for one kind of model."""
    ways = ways_of(kind, args)
    times, found = least(ways, args.repeats, time.process_time)
    loops = [name for name in ways if name != "batched"]
    votes = args.teachers * args.utterances
    for name in loops:
        moved = sum(int(np.abs(a - b).sum()) // 2 for a, b in zip(found["batched"], found[name]))
        assert moved <= 0.005 * votes, f"{moved} of {votes} votes differ"
    return {
        "kind": kind,
        "encoder": args.encoder,
        "seconds": {name: round(value, 3) for name, value in times.items()},
        "times_as_fast": {name: round(times[name] / times["batched"], 1) for name in loops},
        "memory_mib": {name: round(measured(one_way, kind, args, name).grown) for name in ways},
    }


def answering(queries: int, classes: int, repeats: int) -> dict[str, Any]:
    """Winners of many queries at once, against a loop."""
    rows = np.random.default_rng(1).integers(0, 16, size=(queries, classes))
    sizes = np.full(queries, classes)
    ways: dict[str, Callable[[], np.ndarray]] = {
        "at_once": lambda: winners(rows.ravel(), sizes),
        "loop": lambda: np.array([int(np.argmax(row)) for row in rows]),
    }
    times, found = least(ways, repeats, time.process_time)
    assert (np.asarray(found["at_once"]) == np.asarray(found["loop"])).all()
    return {"queries": queries, "seconds": {name: round(value, 4) for name, value in times.items()}}


def main() -> None:
    """Measure and print."""
    numbers = dict(teachers=15, utterances=40, hyps=8, repeats=2, threads=1)
    parser = flags(__doc__, **numbers)
    parser.add_argument("--kinds", nargs="+", default=["ctc", "rnnt", "ctc_attention", "las"])
    parser.add_argument("--encoder", default="tdnn")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for kind in args.kinds:
        found = voting(kind, args)
        print(json.dumps(found), flush=True)
        models = f"{args.teachers} teachers, {kind}, {args.encoder}"
        what, times = f"votes of {models}, on {args.utterances} utterances", found["seconds"]
        append_rows(
            args.out_rows,
            [
                Row(what, times["batched"], times[way], "processor s", against, "less")
                for way, against in AGAINST.items()
                if way in times
            ],
        )
    found = answering(100_000, args.hyps, args.repeats)
    print(json.dumps(found))
    times = found["seconds"]
    what = f"winners of {found['queries']} votes"
    rows = [Row(what, times["at_once"], times["loop"], "processor s", "a loop over votes", "less")]
    append_rows(args.out_rows, rows)


if __name__ == "__main__":
    main()
