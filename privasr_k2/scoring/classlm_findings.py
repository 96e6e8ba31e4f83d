"""Which of the shapes that turan2022 found hold in a run of recipe ``classlm``, in plain words.

A shape holds by error rate where the figures have it and the difference is significant (Holm's p below 0.05);
where they have it and the difference is not significant, that is said. Perplexities are not tested. There is
a loss to recover only where a model of original text is better than that of sanitized text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from privasr_k2.scoring.bootstrap import Difference
from privasr_k2.scoring.classlm_comparisons import (
    BEST,
    Pair,
    RecallTested,
    Tested,
    exact_and_static,
    rivals,
    smallest_size,
)
from privasr_k2.scoring.classlm_results import (
    ADAPT,
    DIRECT,
    ORIGINAL,
    SANITIZED,
    Measured,
    System,
    in_order,
    setting_of,
)
from privasr_k2.scoring.report import interval_text, number, p_text

ALPHA = 0.05
HOLDS, NOT, UNSURE = "holds", "does not hold", "not significant"
NO_LOSS = "no loss to recover"
_MODELS = ("M1", "M2", "M3", "M4")


@dataclass(frozen=True)
class Measure:
    """A figure of which less is better.

    Attributes:
        name: as headings show it.
        values: of each system.
        p_values: of pairs in either order; ``None``: this measure is not tested.
    """

    name: str
    values: Mapping[System, float]
    p_values: Mapping[frozenset[System], float | None] | None

    def verdict(self, better: System, worse: System) -> str:
        """Whether the first system is better than the second."""
        if not self.values[better] < self.values[worse]:
            return NOT
        p_value = self.p_value(better, worse)
        return HOLDS if self.p_values is None or (p_value is not None and p_value < ALPHA) else UNSURE

    def p_value(self, one: System, other: System) -> float | None:
        """Holm's."""
        return None if self.p_values is None else self.p_values.get(frozenset((one, other)))

    def shown(self, before: System, after: System) -> str:
        """Both figures and the p-value."""
        text = f"{self.values[before]:.2f} to {self.values[after]:.2f}"
        p_value = self.p_value(before, after)
        return text if p_value is None else f"{text}, p {p_text(p_value)}"

    def has(self, *systems: System) -> bool:
        """Whether all of them were measured."""
        return all(system in self.values for system in systems)


def error_rates(systems: Mapping[System, Measured], tests: Mapping[Pair, Tested]) -> Measure:
    """WER in per cent, or PER, with the p-values of the comparisons."""
    rates = {system: measured.result.counts.percent for system, measured in systems.items()}
    return Measure(
        next(iter(systems.values())).score.rate_name,
        {system: rate for system, rate in rates.items() if rate is not None},
        {frozenset(pair): tested.adjusted_p for pair, tested in tests.items()},
    )


def findings(
    measures: Sequence[Measure],
    increase: Difference | None,
    recall: Mapping[Pair, RecallTested],
    systems: Mapping[System, Measured],
) -> list[str]:
    """A sentence for each shape and measure.

    Args:
        measures: error rates, where there are any, and perplexities.
        increase: of :func:`privasr_k2.scoring.classlm_comparisons.increase_difference`.
        recall: the comparisons of recall.
        systems: for their recall.
    """
    said = []
    for measure in measures:
        said.append(_harm(measure, increase if measure.p_values is not None else None))
    for measure in measures:
        said += _recovery(measure)
    for measure in measures:
        said += _against_direct(measure)
    for measure in measures:
        title = f"Mixing probabilities exactly (eq. 3) is better than mixing root models, by {measure.name}"
        said.append(_grouped(title, measure, exact_and_static(measure.values)))
    for measure in measures:
        said.append(_best(measure))
    if recall:
        said.append(_names(recall, systems))
    return said


def _harm(measure: Measure, tested: Difference | None) -> str:
    title = f"Sanitizing hurts M1 most and M2 least, by {measure.name}"
    pairs = {model: (System(ORIGINAL, model), System(SANITIZED, model)) for model in _MODELS}
    pairs = {model: pair for model, pair in pairs.items() if measure.has(*pair)}
    if not {"M1", "M2"} <= set(pairs):
        return f"{title}: not measured."
    ratios = {
        m: _ratio(measure.values[after], measure.values[before]) for m, (before, after) in pairs.items()
    }
    most, least = max(ratios, key=lambda m: ratios[m]), min(ratios, key=lambda m: ratios[m])
    verdict = HOLDS if (most, least) == ("M1", "M2") and ratios["M1"] > 1 else NOT
    if verdict == HOLDS and measure.p_values is not None and (tested is None or tested.p_value >= ALPHA):
        verdict = UNSURE
    figures = "; ".join(f"{m} {100 * (ratios[m] - 1):+.1f} % ({measure.shown(*pairs[m])})" for m in pairs)
    if measure.p_values is None:
        figures += ". Nothing of it is tested"
    if tested is not None:
        figures += (
            ". Tested is M1 against M2 alone, no other place in the order: M1's relative increase less that "
            f"of M2: {100 * tested.value:+.1f} points, interval over speakers "
            f"{interval_text(tested.interval)}, p {p_text(tested.p_value)}"
        )
    return f"{title}: **{verdict}**. {figures}."


def _recovery(measure: Measure) -> list[str]:
    sizes = sorted({system.size for system in measure.values if system.kind == ADAPT})
    found = []
    for size in sizes:
        systems = [system for system in in_order(measure.values) if system.setting == setting_of(ADAPT, size)]
        cases = [
            (system, System(SANITIZED, system.model))
            for system in systems
            if measure.has(System(ORIGINAL, system.model))
        ]
        title = f"Adapting to {size:g} % recovers part of what sanitizing costs, by {measure.name}"
        found.append(_grouped(title, measure, cases, _recovered))
    return found or [f"Adapting recovers part of what sanitizing costs, by {measure.name}: not measured."]


def _recovered(measure: Measure, better: System, worse: System) -> tuple[str, str]:
    """The verdict on (adapted, sanitized), and how much of the loss came back."""
    original = System(ORIGINAL, worse.name)
    loss, verdict = measure.verdict(original, worse), measure.verdict(better, worse)
    if loss == NOT:
        return NO_LOSS, f", original text {measure.values[original]:.2f}"
    if verdict == NOT:
        return NOT, ""
    lost = measure.values[worse] - measure.values[original]
    share = f", {100 * (measure.values[worse] - measure.values[better]) / lost:.0f} % of the loss"
    if loss == UNSURE:
        return UNSURE, f"{share}, which is not significant: {measure.shown(original, worse)}"
    return verdict, share


def _against_direct(measure: Measure) -> list[str]:
    size = smallest_size(measure.values)
    how_much = f" to {size:g} %" if size else ""
    title = f"Adapting{how_much} is better than training with the same text at once, by {measure.name}"
    systems = [system for system in in_order(measure.values) if system.setting == setting_of(ADAPT, size)]
    cases = [(system, System(setting_of(DIRECT, size), system.model)) for system in systems]
    return [_grouped(title, measure, cases)]


def _plain(measure: Measure, better: System, worse: System) -> tuple[str, str]:
    return measure.verdict(better, worse), ""


def _grouped(
    title: str,
    measure: Measure,
    cases: Sequence[Pair],
    judge: Callable[[Measure, System, System], tuple[str, str]] = _plain,
) -> str:
    """The cases (better, worse) by verdict; ``judge`` gives that, and what is to be added to the figures."""
    by_verdict: dict[str, list[str]] = {HOLDS: [], UNSURE: [], NOT: [], NO_LOSS: []}
    for better, worse in cases:
        if measure.has(better, worse):
            verdict, extra = judge(measure, better, worse)
            by_verdict[verdict].append(f"{better.name} ({measure.shown(worse, better)}{extra})")
    said = [f"**{verdict}** for {', '.join(texts)}" for verdict, texts in by_verdict.items() if texts]
    return f"{title}: {'; '.join(said) or 'not measured'}."


def _best(measure: Measure) -> str:
    title = f"M1 + M2 + M4 is best of all that see no more original text, by {measure.name}"
    others = [system for system in rivals(in_order(measure.values)) if measure.has(system)]
    if not measure.has(BEST) or not others:
        return f"{title}: not measured."
    own = measure.values[BEST]
    worse = [system for system in others if measure.verdict(BEST, system) == NOT]
    unsure = [system for system in others if measure.verdict(BEST, system) == UNSURE]
    if worse:
        listed = ", ".join(f"{system} {measure.values[system]:.2f}" for system in worse)
        return f"{title}: **{NOT}**: {own:.2f}; no worse are {listed}."
    if unsure:
        listed = ", ".join(f"{s} ({measure.shown(s, BEST)})" for s in unsure)
        return f"{title}: **{UNSURE}**: {own:.2f} is lowest, but not significantly below {listed}."
    second = min(others, key=lambda system: measure.values[system])
    return f"{title}: **{HOLDS}**: {own:.2f}; next is {second} ({measure.shown(second, BEST)})."


def _names(recall: Mapping[Pair, RecallTested], systems: Mapping[System, Measured]) -> str:
    by_verdict: dict[str, list[str]] = {HOLDS: [], UNSURE: [], NOT: []}
    for (first, second), tested in recall.items():
        significant = tested.adjusted_p is not None and tested.adjusted_p < ALPHA
        verdict = NOT if tested.found.value <= 0 else HOLDS if significant else UNSURE
        rates = " to ".join(number(_recall(systems[system])) for system in (second, first))
        by_verdict[verdict].append(f"{first} ({rates}, p {p_text(tested.adjusted_p)})")
    said = [f"**{verdict}** for {', '.join(texts)}" for verdict, texts in by_verdict.items() if texts]
    return f"M2 recognizes more words of names than M1 of the same setting, recall in %: {'; '.join(said)}."


def _recall(measured: Measured) -> float | None:
    found = measured.result.entities
    together = found.together if found else None
    return None if together is None or together.recall is None else 100 * together.recall


def _ratio(after: float, before: float) -> float:
    return after / before if before else float("inf")
