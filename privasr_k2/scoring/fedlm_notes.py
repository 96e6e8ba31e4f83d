"""What the report of recipe ``fedlm`` says in sentences, and the paper's figures beside its own.

[liu2021] Z. Liu, K. Li, S. Bakshi, F. Peng, Private language model adaptation for speech recognition, 2021.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from privasr_k2.scoring.fedlm_results import (
    NO_NNLM,
    PRETRAINED,
    Perplexities,
    Words,
    label_of,
    parse_system,
)
from privasr_k2.scoring.report import FEW_SPEAKERS, NOTHING, versions

#: Perplexity and WER of the paper's *Conversation* set [liu2021, Tables 2, 4 and 5].
PAPER: dict[str, tuple[str, str]] = {
    NO_NNLM: (NOTHING, "8.07"),
    PRETRAINED: ("109.4", "7.96"),
    "server_all": ("31.3", "7.79"),
    "fl_all": ("32.0", "7.79"),
    "fl_hard": ("31.2", "7.76"),
    "fl_utterance": ("30.8", "7.77"),
    "fl_token": ("30.3", "7.75"),
    "server_scratch_all": ("34.7", "7.81"),
    "fl_scratch_all": ("35.8", "7.85"),
    "fl_scratch_token": ("34.5", "7.82"),
    "fl_all_noise_0.2": ("46.1", "7.88"),
    "fl_all_noise_0.5": ("50.4", "7.91"),
    "fl_all_noise_1.5": ("56.7", "7.92"),
    "fl_token_noise_0.2": ("45.9", "7.85"),
    "fl_token_noise_0.5": ("50.4", "7.89"),
    "fl_token_noise_1.5": ("56.3", "7.93"),
}
_OF_PUBLIC = "of public text alone: no client has a part in it"
_OF_TRAIN = "among them those of the corpus's part train; no guarantee covers them"
_TUNED = (
    "Learning rates of federated training were chosen on clients of dev, half of whom trained while the "
    "text of the others was scored; the clients at hand were not read for it."
)
_NOT_TUNED = "Learning rates are those of the configuration; this run has tried no others."
_CLOSE = 0.05
_LEVEL = 0.05


class Tested(Protocol):
    """What the sentences need of a comparison."""

    change: float | None
    p_value: float | None


def findings(given: Perplexities, tests: Mapping[tuple[str, str], Tested]) -> list[str]:
    """Which of the paper's statements on perplexities hold here.

    Args:
        given: perplexities on test.
        tests: by system and baseline.
    """
    systems, found = given.systems, []
    if {"fl_all", "server_all"} <= systems.keys():
        gap = systems["fl_all"].ppl / systems["server_all"].ppl - 1
        holds = "is" if gap <= _CLOSE else "is not"
        found.append(
            f"Federated training on all transcripts {holds} within {100 * _CLOSE:g} % of server training: "
            f"its perplexity is {100 * gap:+.1f} % away."
        )
    for where, kind in (("fl", "federated"), ("server", "server")):
        ways = [
            name for name in (f"{where}_{way}" for way in ("hard", "utterance", "token")) if name in systems
        ]
        everything = f"{where}_all"
        if ways and everything in systems:
            best = min(ways, key=lambda name: systems[name].ppl)
            below = systems[best].ppl < systems[everything].ppl
            found.append(
                f"Of {kind} training, the best use of confidences, {label_of(best)}, has "
                f"{'a lower' if below else 'no lower'} perplexity than all transcripts "
                f"({systems[best].ppl:.2f} and {systems[everything].ppl:.2f}"
                f"{_significance(tests.get((best, everything)))})."
            )
    private = [name for name in systems if (one := parse_system(name, Path(name))) and one.noise is not None]
    if private and PRETRAINED in systems:
        worse = [name for name in private if systems[name].ppl >= systems[PRETRAINED].ppl]
        found.append(
            "Every model with a claim has a lower perplexity than no adaptation, "
            f"{_significant(private, tests)}."
            if not worse
            else f"Not every model with a claim beats no adaptation: {', '.join(map(label_of, worse))}."
        )
    return found


def _significant(systems: Sequence[str], tests: Mapping[tuple[str, str], Tested]) -> str:
    p_values = (test.p_value for name in systems if (test := tests.get((name, PRETRAINED))) is not None)
    found = sum(p_value is not None and p_value < _LEVEL for p_value in p_values)
    return f"{found} of {len(systems)} significantly"


def _significance(test: Tested | None) -> str:
    if test is None or test.p_value is None:
        return "; not tested"
    return "" if test.p_value < _LEVEL else f"; the difference is not significant, p = {test.p_value:.3f}"


def notes(
    given: Perplexities,
    num_replicates: int,
    tests: Mapping[str, int],
    *,
    spoken: bool,
    recognized: bool,
    tuned: bool,
    words: Words | None,
) -> Sequence[str]:
    """How to read the tables.

    Args:
        given: perplexities on test.
        num_replicates: draws of an interval.
        tests: how many comparisons were made, of ``ppl`` and ``wer``.
        spoken: whether there are error rates.
        recognized: whether the clients' text is a recognizer's.
        tuned: whether rates of federated training were chosen by ``tune_fedlm``.
        words: the vocabulary, where it is known.
    """
    share = 100 * given.oov / given.words if given.words else 0.0
    lines = [
        f"PPL: {given.treatment}. Of all of test: {given.words:,} words, {given.oov:,} of them OOV "
        f"({share:.2f} %), {given.sentences:,} sentences."
    ]
    if words is not None:
        lines.append(f"Vocabulary: {words.number:,} words, {_OF_PUBLIC if words.public else _OF_TRAIN}.")
    if not recognized:
        lines.append(
            "The clients' text is what was said: there are no recognition errors, and all confidences are 1, "
            "so that all transcripts count alike in every way."
        )
    lines.append(_TUNED if tuned else _NOT_TUNED)
    if given.by:
        lines.append(
            f"Intervals and p of perplexities: {num_replicates:,} draws of {_plural(given.by)} with "
            f"replacement, both models on the same draws; p by Holm for {tests['ppl']} comparisons."
        )
        few = min(len(figures.groups) for figures in given.systems.values())
        if few < FEW_SPEAKERS:
            lines.append(
                f"With {few} {_plural(given.by)} these intervals and p-values are too small as a rule."
            )
    if spoken:
        lines.append(
            f"p of the tables: MAPSSWE on words, two-sided, by Holm for {tests['wer']} comparisons. Change: "
            "relative, against the system of the column."
        )
    lines += [
        "Columns of the paper: its *Conversation* set, other data and other models.",
        "The paper's plan: 10,000 devices, 100 a round by Poisson sampling, 1,000 rounds.",
        f"Versions: {versions()}.",
    ]
    return lines


def _plural(group: str) -> str:
    return f"{group}s"
