"""Measures of reports: one value, its name in tables, and its format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import shown
from privasr_k2.recipe.systems import System

NOTHING = "–"


class Measure(NamedTuple):
    """One figure of an artifact.

    Attributes:
        metric: a key of :data:`METRICS`.
        value: a number, or words; ``None`` where it is not defined.
        low, high: ends of its interval, in the unit of ``value``; ``None`` where there is none.
        part: the part of the corpus; empty where the figure holds for all parts.
        item: what it is of, where an artifact tells of several things: a class of names, an attack,
            a round.
    """

    metric: str
    value: float | str | None
    low: float | None = None
    high: float | None = None
    part: str = ""
    item: str = ""

    @classmethod
    def within(
        cls, metric: str, value: float | None, ends: Sequence[float] | None, item: str
    ) -> Measure:
        """A figure with the two ends of its interval, or with none."""
        low, high = (None, None) if ends is None else ends
        return cls(metric, value, low, high, item=item)


class Tested(NamedTuple):
    """The outcome of a paired test.

    Attributes:
        metric: a key of :data:`METRICS`: what ``value`` is.
        value: how far the first system is from the second one; ``None`` where it is not defined.
        low, high: ends of its interval; ``None`` where there is none.
        p_value: two-sided and not corrected; ``None`` where the test has none.
        pairs: segments, groups or speakers that the test rests on.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    pairs: int


class Paired(Protocol):
    """Data of one system on one part for a paired test."""

    def against(self, other: Paired) -> Tested | None:
        """Test this system against another one on the same data; ``None``: they cannot be tested.

        Raises:
            DataError: the other one was measured on other data.
        """


@dataclass(frozen=True)
class Reading:
    """Content of one artifact.

    Attributes:
        measures: its figures.
        pairs: part and metric (``wer``, ``ppl``, ``recall``) -> what a paired test needs.
        entries: releases of the ledger that it holds.
    """

    measures: tuple[Measure, ...]
    pairs: Mapping[tuple[str, str], Paired] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()


class Context(NamedTuple):
    """Context of a reader beside its path.

    Attributes:
        systems: all systems of the recipe: items that are paths or names of systems are shown by
            their label.
        num_replicates, confidence, seed: of intervals that are computed here.
        tests: metrics by which declared pairs are compared.
    """

    systems: tuple[System, ...]
    num_replicates: int
    confidence: float
    seed: int
    tests: tuple[str, ...]

    def label_of(self, name: str) -> str:
        """The label of the system whose name this is, or in whose folder it lies; else the name
        itself.
        """
        for system in self.systems:
            if name == system.name or Path(name).parts[0] == Path(system.folder).name:
                return system.label
        return name


#: Metric -> its title and the format of its values: as of :func:`format`, ``epsilon``, ``p``;
#: empty: words.
METRICS: Mapping[str, tuple[str, str]] = {
    # error rates
    "wer": ("WER %", ".2f"), "per": ("PER %", ".2f"), "cer": ("CER %", ".2f"),
    "word_per": ("PER of the words %", ".2f"), "errors": ("errors", ",.0f"),
    "insertions": ("ins", ",.0f"), "deletions": ("del", ",.0f"), "substitutions": ("sub", ",.0f"),
    "words": ("words", ",.0f"), "utterances": ("utterances", ",.0f"), "speakers": ("speakers", ",.0f"),
    "speaker_min": ("lowest speaker %", ".1f"), "speaker_max": ("highest speaker %", ".1f"),
    "no_path": ("no path", ",.0f"), "oov": ("OOV %", ".2f"),
    "recall": ("recall %", ".2f"), "precision": ("precision %", ".2f"), "hits": ("recognized", ",.0f"),
    "entity_words": ("words of names", ",.0f"), "false_alarms": ("false alarms", ",.0f"),
    # paired tests
    "wer_difference": ("WER difference", "+.2f"), "per_difference": ("PER difference", "+.2f"),
    "recall_difference": ("recall difference", "+.2f"), "ppl_change": ("PPL change %", "+.2f"),
    # language models
    "ppl": ("PPL", ".2f"), "ppl_with_oov": ("PPL with OOV", ".2f"), "ppl_words": ("words", ",.0f"),
    "ppl_sentences": ("sentences", ",.0f"), "ppl_oov": ("OOV words", ",.0f"),
    "ppl_last_round": ("PPL, last round", ".2f"),
    # guarantees
    "epsilon": ("epsilon", "epsilon"), "person_epsilon": ("epsilon, person", "epsilon"),
    "epsilon_rdp": ("epsilon (RDP)", "epsilon"), "epsilon_pld": ("epsilon (PLD)", "epsilon"),
    "delta": ("delta", "g"), "unit": ("unit", ""), "neighbours": ("neighbours", ""), "data": ("data", ""),
    "sampling": ("sampling", ""), "accountant": ("accountant", ""), "units": ("units", ",.0f"),
    "released": ("released", ""), "releases": ("releases", ",.0f"), "not_covered": ("does not cover", ""),
    # votes
    "votes_asked": ("votes asked", ",.0f"), "votes_answered": ("answered", ",.0f"),
    "vote_noise": ("noise, votes", ".4g"), "labels": ("labels", ",.0f"), "vote": ("vote on", ""),
    "published_k": ("K", ",.0f"), "published_scale": ("scale", ".4g"),
    "published_equation": ("as published, scale 1/lambda", ".4g"),
    "published_figures": ("as published, scale lambda", ".4g"),
    "agreement": ("share or number", ",.4g"),
    # attacks
    "claimed": ("claimed epsilon", "epsilon"), "audit_lower": ("epsilon at least", ".3g"),
    "audit_broken": ("with less noise", ".3g"), "audit_noise_free": ("without noise", ".3g"),
    "audit_largest": ("could show", ".3g"), "audit_trials": ("trials", ",.0f"),
    "audit_confidence": ("confidence", ".0%"), "audit_verdict": ("verdict", ""),
    "published_average": ("as published: epsilon of an average unit", ".3g"),
    "published_largest": ("of the heaviest", ".3g"),
    "exposure": ("mean exposure, bits", ".2f"), "exposure_largest": ("largest", ".2f"),
    "exposure_possible": ("possible", ".2f"), "canary_lower": ("epsilon at least, canaries", ".3g"),
    "auc": ("AUC", ".3f"), "tpr": ("TPR", ".3f"), "fpr": ("at FPR", "g"), "members": ("members", ",.0f"),
    "others": ("others", ",.0f"), "shard_guessed": ("shard guessed", ".3f"), "chance": ("by chance", ".3f"),
    "advantage": ("advantage", "+.4f"), "less_control": ("less the control", "+.4f"),
    "advantage_p": ("p (Holm)", "p"), "less_control_p": ("less the control: p (Holm)", "p"),
    "member_distance": ("distance to members", ".4f"), "other_distance": ("to others", ".4f"),
    "log_likelihood": ("log P", ".2f"), "begun_at": ("log P at the start", ".2f"),
    # what was chosen on dev
    "lm_weight": ("LM weight", "g"), "insertion_penalty": ("insertion penalty", "g"),
    "dev_wer": ("dev WER %", ".2f"), "dev_ppl": ("dev PPL", ".2f"), "dev_loss": ("dev loss", ".4f"),
    "lms": ("LMs", ""), "form": ("form", ""), "beta_adapt": ("beta", "g"), "lam": ("lambda", "g"),
    "alpha": ("alpha", "g"), "beta": ("beta", "g"), "kernel_bandwidth": ("kernel bandwidth", "g"),
    "criterion": ("chosen by", ""), "at_edge": ("at the edge of the grid", ""),
    "client_lr": ("client lr", "g"), "server_lr": ("server lr", "g"), "rounds": ("rounds", ",.0f"),
    "kept_round": ("kept round", ",.0f"), "mechanism": ("mechanism", ""),
    # data
    "clients": ("clients", ",.0f"), "users": ("users", ",.0f"), "hours": ("hours", ".2f"),
    "minutes": ("minutes", ",.0f"), "percent": ("% of background", ".2f"), "spoken": ("spoken", ",.0f"),
    "unique_words": ("unique words", ",.0f"), "median_utterances": ("median utterances", ",.0f"),
    "largest_utterances": ("largest", ",.0f"), "median_words": ("median words", ",.0f"),
    "largest_words": ("largest, words", ",.0f"), "mentions": ("mentions", ",.0f"),
    "different": ("different", ",.0f"), "epsilon_word": ("epsilon, a word", "epsilon"),
    # names against gold, and where those of test are found
    "gold_recall": ("gold recall %", ".2f"), "gold_precision": ("precision %", ".2f"),
    "gold_word_recall": ("word recall %", ".2f"), "residual": ("residual %", ".2f"),
    "test_words": ("test's names, words", ",.0f"), "on_lists": ("on a public list %", ".2f"),
    "on_own_list": ("on the list of its class %", ".2f"), "in_names": ("in names of the background %", ".2f"),
    # confidences
    "correct": ("correct %", ".2f"), "nce": ("NCE", ".4f"), "ece": ("ECE", ".4f"),
    "ece_mass": ("ECE (equal mass)", ".4f"), "confidence_auc": ("AUC", ".4f"),
    "nce_difference": ("NCE difference", "+.4f"), "ece_difference": ("ECE difference", "+.4f"),
    "ece_mass_difference": ("ECE (equal mass) difference", "+.4f"),
    "confidence_auc_difference": ("AUC difference", "+.4f"),
}  # fmt: skip


def title_of(metric: str) -> str:
    """The heading of a metric's column."""
    return METRICS[metric][0]


def text_of(metric: str, value: float | str | None) -> str:
    """A value as tables show it; epsilons are rounded up.

    >>> text_of("wer", 12.345), text_of("epsilon", math.inf), text_of("words", 1234), text_of("wer", None)
    ('12.35', 'infinite', '1,234', '–')
    """
    if value is None or isinstance(value, str):
        return value or NOTHING
    if math.isnan(value):
        return NOTHING
    form = METRICS[metric][1]
    if form == "epsilon":
        return shown(value)
    if form == "p":
        return p_text(value)
    return format(value, form)


def p_text(p_value: float | None) -> str:
    """A p-value as tables show it.

    >>> p_text(0.0004), p_text(0.0312), p_text(None)
    ('<0.001', '0.031', '–')
    """
    if p_value is None:
        return NOTHING
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def interval_text(metric: str, low: float | None, high: float | None) -> str:
    """Both ends of an interval, or a dash.

    >>> interval_text("wer", 1.0, 2.5)
    '1.00 to 2.50'
    """
    if low is None or high is None:
        return NOTHING
    return f"{text_of(metric, low)} to {text_of(metric, high)}"
