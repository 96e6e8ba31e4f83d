"""Measures of reports: one value, its name in tables, and its format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import shown
from privasr_k2.recipe.systems import System
from privasr_k2.scoring.bootstrap import MIN_CLUSTERS

NOTHING = "–"


class Measure(NamedTuple):
    """One figure of an artifact.

    Attributes:
        metric: a key of :data:`METRICS`.
        value: a number, or words; ``None`` where it is not defined.
        low, high: ends of its interval, in the unit of ``value``; ``None`` where there is none.
        part: the part of the corpus; empty: all parts.
        item: what it is of, where an artifact has several: a class of names, an attack, a round, a
            value of a group.
        group: of utterances that have the value ``item`` of it; empty: no group.
        clusters: speakers or groups that the interval is drawn from; ``None``: it is not drawn.
    """

    metric: str
    value: float | str | None
    low: float | None = None
    high: float | None = None
    part: str = ""
    item: str = ""
    group: str = ""
    clusters: int | None = None

    @classmethod
    def within(
        cls, metric: str, value: float | None, ends: Sequence[float] | None, item: str
    ) -> Measure:
        """A figure with the two ends of its interval, or with none."""
        low, high = (None, None) if ends is None else ends
        return cls(metric, value, low, high, item=item)

    @classmethod
    def drawn(
        cls,
        metric: str,
        value: float | None,
        ends: Sequence[float] | None,
        clusters: int | None,
        *where: str,
    ) -> Measure:
        """A figure whose interval is drawn from speakers or groups.

        Args:
            ends: of the interval. It is left out with fewer than
                :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` of them, as in older results.
            clusters: how many there are; ``None``: older results do not say it.
            where: part, item, group.

        >>> Measure.drawn("wer", 10.0, (8.0, 12.0), 5, "test")[:4]
        ('wer', 10.0, None, None)
        >>> Measure.drawn("wer", 10.0, (8.0, 12.0), 6, "test")[:4]
        ('wer', 10.0, 8.0, 12.0)
        """
        few = clusters is not None and clusters < MIN_CLUSTERS
        low, high = (None, None) if ends is None or few else ends
        part, item, group = (*where, "", "", "")[:3]
        return cls(metric, value, low, high, part, item, group, clusters)


class Tested(NamedTuple):
    """The outcome of a paired test.

    Attributes:
        metric: a key of :data:`METRICS`: what ``value`` is.
        value: how far the first system is from the second one; ``None`` where it is not defined.
        low, high: ends of its interval; ``None`` where there is none.
        p_value: two-sided and not corrected; ``None`` where the test has none.
        pairs: segments, groups or speakers that the test rests on.
        clusters: speakers or groups that the interval is drawn from.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    pairs: int
    clusters: int


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
        pairs: part and metric (``wer``, ``ppl``, ``name_wer``, ...) -> what a paired test needs.
        entries: releases of the ledger that it holds.
    """

    measures: tuple[Measure, ...]
    pairs: Mapping[tuple[str, str], Paired] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()


class Context(NamedTuple):
    """Context of a reader beside its path.

    Attributes:
        systems: all systems of the recipe, whose labels stand for their paths and names.
        num_replicates, confidence, seed: of intervals that are computed here.
        tests: metrics by which declared pairs are compared.
        owners_groups: groups of which only the owner of the data is told.
    """

    systems: tuple[System, ...]
    num_replicates: int
    confidence: float
    seed: int
    tests: tuple[str, ...]
    owners_groups: tuple[str, ...] = ()

    def label_of(self, name: str) -> str:
        """The label of the system of this name, or with this path in its folder; else the name."""
        for system in self.systems:
            if name == system.name or Path(name).parts[0] == Path(system.folder).name:
                return system.label
        return name


#: Formats of values -> metrics and their titles. ``epsilon`` and ``p`` have formats of their own,
#: an empty format is for words.
_TITLES = {
    ".2f": (
        "wer: WER %; per: PER %; cer: CER %; word_per: PER of the words %; oov: OOV %; "
        "projected_wer: WER %, by the law; measured_wer: WER %, measured; "
        "name_wer: names: WER %; other_wer: other words: WER %; "
        "false_alarm_rate: false alarms / 1,000; "
        "recall: recall %; precision: precision %; ppl: PPL; ppl_with_oov: PPL with OOV; "
        "ppl_last_round: PPL, last round; exposure: mean exposure, bits; "
        "exposure_largest: largest; exposure_possible: possible; log_likelihood: log P; "
        "begun_at: log P at the start; dev_wer: dev WER %; dev_ppl: dev PPL; hours: hours; "
        "percent: % of background; gold_recall: gold recall %; gold_precision: precision %; "
        "gold_f1: F1 %; names_possible: possible, bits; "
        "listed_once: on the lists, said once: bits; listed_often: on the lists, said often: bits; "
        "unlisted_once: on no list, said once: bits; unlisted_often: on no list, said often: bits; "
        "gold_word_recall: word recall %; residual: residual %; on_lists: on a public list %; "
        "on_own_list: on the list of its class %; in_names: in names of the background %; "
        "correct: correct %; fold_errors: held-out token errors %; "
        "canary_exposure: exposure of canaries, bits; fused_exposure: with its LM, bits; "
        "silenced_exposure: with its LM, speech silenced, bits; canary_possible: possible, bits; "
        "true_name: true name written %; any_name: a name of training written %; "
        "name_first: true name ranked first %; name_exposure: exposure of names, bits; "
        "name_others: exposure of strangers' names, bits"
    ),
    ",.0f": (
        "errors: errors; insertions: ins; deletions: del; substitutions: sub; words: words; "
        "utterances: utterances; speakers: speakers; no_path: no path; hits: recognized; "
        "people: people; "
        "entity_words: words of names; other_words: other words; false_alarms: false alarms; "
        "ppl_words: words; "
        "ppl_sentences: sentences; ppl_oov: OOV words; units: units; releases: releases; "
        "person_units: units of a person; "
        "candidates: candidates; released_words: words; released_bigrams: bigrams; "
        "votes_asked: votes asked; votes_answered: answered; labels: labels; published_k: K; "
        "audit_trials: trials; members: members; others: others; rounds: rounds; "
        "trained_parameters: trained parameters; steps: steps; "
        "kept_round: kept round; background_rounds: rounds that have u; "
        "clients: clients; users: users; minutes: minutes; "
        "spoken: spoken; unique_words: unique words; median_utterances: median utterances; "
        "largest_utterances: largest; median_words: median words; largest_words: largest, words; "
        "mentions: mentions; different: different; test_words: test's names, words; "
        "masked_names: names masked; "
        "wins_people: people; wins_best: best for; wins_better: better than shared for"
    ),
    ".1f": (
        "speaker_min: lowest speaker %; speaker_max: highest speaker %; "
        "kept_kb: kept, kB; sent_kb: sent, kB; "
        "learn_ms: learning 100 words, ms; score_ms: scoring 100 words, ms"
    ),
    "+.2f": (
        "wer_difference: WER difference; per_difference: PER difference; "
        "name_wer_difference: names: WER difference; "
        "other_wer_difference: other words: WER difference; "
        "recall_difference: recall difference; "
        "false_alarm_rate_difference: false alarms / 1,000, difference; "
        "ppl_change: PPL change %; "
        "name_beyond: names beyond strangers', bits"
    ),
    "epsilon": (
        "lm_claimed: LM: claimed epsilon; "
        "epsilon: epsilon; person_epsilon: epsilon, person; epsilon_rdp: epsilon (RDP); "
        "epsilon_pld: epsilon (PLD); claimed: claimed epsilon; epsilon_word: epsilon, a word; "
        "names_epsilon: epsilon, names of a person; "
        "epsilon_once: epsilon, a found name said once; epsilon_often: said often; "
        "only_for_epsilon: epsilon of small units"
    ),
    "g": (
        "delta: delta; fpr: at FPR; lm_weight: LM weight; insertion_penalty: insertion penalty; "
        "beta_adapt: beta; lam: lambda; alpha: alpha; beta: beta; "
        "kernel_bandwidth: kernel bandwidth; strength: strength; "
        "client_lr: client lr; server_lr: server lr"
    ),
    "": (
        "unit: unit; neighbours: neighbours; data: data; sampling: sampling; "
        "accountant: accountant; released: released; not_covered: does not cover; vote: vote on; "
        "audit_verdict: verdict; lms: LMs; form: form; criterion: chosen by; "
        "at_edge: at the edge of the grid; mechanism: mechanism; only_for: which small units"
    ),
    ".4g": (
        "noise_multiplier: noise by clip; relative_noise: of a mean gradient; "
        "clip: clip; "
        "vote_noise: noise, votes; threshold: threshold, votes; published_scale: scale; "
        "published_equation: called epsilon where scale is 1/lambda; "
        "published_figures: called epsilon where scale is lambda"
    ),
    ",.4g": "agreement: share or number",
    ".3g": (
        "lower_once: at least, said once; lower_often: at least, said often; "
        "lm_lower: LM: epsilon at least; lm_broken: LM: with less noise; "
        "audit_lower: epsilon at least; audit_broken: with less noise; "
        "audit_noise_free: without noise; audit_largest: could show; "
        "paper_epsilon: words x rounds x epsilon; "
        "paper_average: an average unit, words x rounds x epsilon; paper_largest: the heaviest; "
        "published_average: average, with our smoothing; "
        "published_largest: heaviest, with our smoothing; canary_lower: epsilon at least, canaries"
    ),
    ".0%": "audit_confidence: confidence",
    ".3f": (
        "auc: AUC; tpr: TPR; shard_guessed: shard guessed; chance: by chance; "
        "perturbed_auc: AUC, perturbed; perturbed_tpr: TPR, perturbed; blind_auc: AUC, blind; "
        "blind_tpr: TPR, blind"
    ),
    "+.3f": "beyond_blind: AUC - blind; perturbed_beyond_blind: perturbed AUC - blind",
    "+.4f": (
        "advantage: advantage; less_control: less the control; nce_difference: NCE difference; "
        "ece_difference: ECE difference; ece_mass_difference: ECE (equal mass) difference; "
        "confidence_auc_difference: AUC difference"
    ),
    "p": "advantage_p: p (Holm); less_control_p: less the control: p (Holm)",
    ".4f": (
        "member_distance: distance to members; other_distance: to others; dev_loss: dev loss; "
        "fold_loss: held-out loss; "
        "nce: NCE; ece: ECE; ece_mass: ECE (equal mass); confidence_auc: AUC"
    ),
}

#: Metric -> its title and the format of its values.
METRICS: Mapping[str, tuple[str, str]] = {
    name: (title, form)
    for form, titles in _TITLES.items()
    for name, title in (entry.split(": ", 1) for entry in titles.split("; "))
}


def title_of(metric: str) -> str:
    """The heading of a metric's column."""
    return METRICS[metric][0]


def text_of(metric: str, value: float | str | None) -> str:
    """A value as tables show it; epsilons are rounded up.

    >>> text_of("wer", 12.345), text_of("epsilon", math.inf), text_of("wer", None)
    ('12.35', 'infinite', '–')
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


def gap_closed(public: Any, private: Any, not_private: Any) -> float | None:
    """The share of the way from the public down to the not private figure.

    ``None``: there is no way, as private data make nothing better even without privacy.

    >>> gap_closed(20.0, 15.0, 10.0), gap_closed(20.0, 15.0, 21.0), gap_closed(None, 1.0, 2.0)
    (0.5, None, None)
    """
    if None in (public, private, not_private) or public <= not_private:
        return None
    return float((public - private) / (public - not_private))
