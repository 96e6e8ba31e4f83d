"""Result files with the names and the shape that users of icefall read and parse.

``recogs-<part>-<setting>.txt`` holds references and hypotheses, ``errs-<part>-<setting>.txt`` the
error rate, every alignment and counts for each word, ``wer-summary-<part>.txt`` a line for each
setting, the best one first. ``speakers-<part>-<setting>.txt`` is ours: a line a speaker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from privasr_k2.scoring.align import Pair
from privasr_k2.scoring.counts import ErrorCounts, total
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.results import ScoredUtterance

GAP = "*"
"""Stands for no word in a substitution, deletion or insertion."""


def part_files(
    part: str,
    weights: Weights,
    utterances: Sequence[ScoredUtterance],
    settings: Mapping[Weights, ErrorCounts],
) -> dict[str, str]:
    """All files of one part: file name -> text.

    Args:
        part: its name; a slash in it becomes an underscore in file names.
        weights: the setting at which ``utterances`` were scored.
        settings: error counts of all settings of the summary.
    """
    name = part.replace("/", "_")
    by_speaker: dict[str, ErrorCounts] = {}
    for u in utterances:
        by_speaker[u.speaker] = by_speaker.get(u.speaker, ErrorCounts()) + u.counts
    return {
        f"recogs-{name}-{weights.setting}.txt": recogs(utterances),
        f"errs-{name}-{weights.setting}.txt": errs(utterances),
        f"speakers-{name}-{weights.setting}.txt": speakers(by_speaker),
        f"wer-summary-{name}.txt": wer_summary({w.setting: c for w, c in settings.items()}),
    }


def recogs(utterances: Iterable[ScoredUtterance]) -> str:
    """References and hypotheses, two lines an utterance, sorted by id."""
    lines = []
    for u in _sorted(utterances):
        lines += [f"{u.id}:\tref={list(u.ref)}", f"{u.id}:\thyp={list(u.hyp)}"]
    return _text(lines)


def wer_summary(counts: Mapping[str, ErrorCounts]) -> str:
    """Error rates of settings in per cent, the smallest first.

    >>> wer_summary({"b": ErrorCounts(hits=3, deletions=1), "a": ErrorCounts(hits=4)}).splitlines()
    ['settings\\tWER', 'a\\t0.00', 'b\\t25.00']
    """
    ordered = sorted(counts, key=lambda setting: (counts[setting].errors, setting))
    lines = (f"{setting}\t{_percent(counts[setting])}" for setting in ordered)
    return _text(["settings\tWER", *lines])


def speakers(counts: Mapping[str, ErrorCounts]) -> str:
    """A line for each speaker, tab-separated, sorted by name."""
    lines = ["speaker\tWER\twords\tinsertions\tdeletions\tsubstitutions"]
    for name in sorted(counts):
        c = counts[name]
        columns = (name, _percent(c), c.ref_words, c.insertions, c.deletions, c.substitutions)
        lines.append("\t".join(map(str, columns)))
    return _text(lines)


def errs(utterances: Iterable[ScoredUtterance]) -> str:
    """The error rate, each utterance's alignment, and which words were confused how often."""
    ordered = _sorted(utterances)
    c = total(u.counts for u in ordered)
    pairs = Counter(pair for u in ordered for pair in u.pairs)
    substituted = {f"{r} -> {h}": n for (r, h), n in pairs.items() if None not in (r, h) and r != h}
    lines = [
        f"%WER = {_percent(c)}",
        f"Errors: {c.insertions} insertions, {c.deletions} deletions, {c.substitutions}"
        f" substitutions, over {c.ref_words} reference words ({c.hits} correct)",
        "Search below for sections starting with PER-UTT DETAILS:, SUBSTITUTIONS:, "
        "DELETIONS:, INSERTIONS:, PER-WORD STATS:",
        "",
        "PER-UTT DETAILS: corr or (ref->hyp)  ",
        *(f"{u.id}:\t{alignment_line(u.pairs)}" for u in ordered),
        "",
        "SUBSTITUTIONS: count ref -> hyp",
        *_most_frequent(substituted),
        "",
        "DELETIONS: count ref",
        *_most_frequent({str(r): n for (r, h), n in pairs.items() if h is None}),
        "",
        "INSERTIONS: count hyp",
        *_most_frequent({str(h): n for (r, h), n in pairs.items() if r is None}),
        "",
        "PER-WORD STATS: word  corr tot_errs count_in_ref count_in_hyp",
        *_word_lines(pairs),
    ]
    return _text(lines)


def alignment_line(pairs: Sequence[Pair]) -> str:
    """An alignment in one line; neighbouring errors share one bracket, ``*`` stands for no word.

    >>> alignment_line([("the", "a"), ("cat", None), ("sat", "sat"), (None, "down")])
    '(the cat->a) sat (*->down)'
    """
    return " ".join(_groups(pairs))


def _groups(pairs: Sequence[Pair]) -> Iterator[str]:
    refs: list[str] = []
    hyps: list[str] = []
    for ref, hyp in [*pairs, ("", "")]:  # the last pair, which is right, closes an open bracket
        if ref != hyp:
            refs += [ref] if ref is not None else []
            hyps += [hyp] if hyp is not None else []
            continue
        if refs or hyps:
            yield f"({' '.join(refs) or GAP}->{' '.join(hyps) or GAP})"
            refs, hyps = [], []
        if ref:
            yield ref


def error_line(counts: ErrorCounts) -> str:
    """The counts in one line, as Kaldi prints them.

    >>> error_line(ErrorCounts(hits=8, substitutions=1, insertions=1, deletions=1))
    '%WER 30.00 [ 3 / 10, 1 ins, 1 del, 1 sub ]'
    """
    return (
        f"%WER {_percent(counts)} [ {counts.errors} / {counts.ref_words}, {counts.insertions} ins, "
        f"{counts.deletions} del, {counts.substitutions} sub ]"
    )


def _most_frequent(counts: Mapping[str, int]) -> Iterator[str]:
    for text in sorted(counts, key=lambda t: (-counts[t], t)):
        yield f"{counts[text]}   {text}"


def _word_lines(pairs: Mapping[Pair, int]) -> Iterator[str]:
    correct: Counter[str] = Counter()
    in_ref: Counter[str] = Counter()
    in_hyp: Counter[str] = Counter()
    for (ref, hyp), n in pairs.items():
        if ref is not None:
            in_ref[ref] += n
        if hyp is not None:
            in_hyp[hyp] += n
        if ref is not None and ref == hyp:
            correct[ref] += n
    # A substitution is an error of both its words.
    errors = {w: in_ref[w] + in_hyp[w] - 2 * correct[w] for w in in_ref | in_hyp}
    for w in sorted(errors, key=lambda w: (-errors[w], w)):
        yield f"{w}   {correct[w]} {errors[w]} {in_ref[w]} {in_hyp[w]}"


def _percent(counts: ErrorCounts) -> str:
    return "-" if counts.percent is None else f"{counts.percent:.2f}"


def _sorted(utterances: Iterable[ScoredUtterance]) -> list[ScoredUtterance]:
    return sorted(utterances, key=lambda u: u.id)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
