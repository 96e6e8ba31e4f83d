"""How the report of recipe ``classlm`` is to be read: what was measured how, and what no claim covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privasr_k2.scoring.classlm_comparisons import BEST, Pair, RecallTested, Tested
from privasr_k2.scoring.classlm_results import MIXED, Measured, Perplexities, System, TextPart
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.report import FEW_SPEAKERS, ROUGH_BELOW, rough, versions

EXACT_ROWS = (
    'The rows that say "exactly" are eq. 3 of turan2022: every word\'s probability is mixed. The rows of '
    "one pass are not: they mix root models."
)
_PAPER_AM = "LF-MMI"


def notes(
    texts: Sequence[TextPart],
    perplexities: Perplexities,
    systems: Mapping[System, Measured],
    corpus: CorpusInfo,
    tests: Mapping[Pair, Tested],
    recall: Mapping[Pair, RecallTested],
    *,
    acoustic_model: str,
    tagger: str,
) -> list[str]:
    """Sentences, those that apply."""
    said = [
        f"Perplexity: {perplexities.treatment}. Test has {perplexities.words:,} words and "
        f"{perplexities.sentences:,} sentence ends; {perplexities.oov:,} words are OOV.",
        "The perplexity of a class LM is that of the model with its names filled in: a word that is both a "
        "plain word and a name has the exact sum of both readings. Among what was chosen on dev, that of an "
        "adapted class LM is of text with tags for names: it tells values of beta apart, and does not "
        "compare with perplexities of words.",
        "Perplexities are compared by their figures, without a test.",
        "One list of words serves all models, so that the columns compare. Where it holds words of the "
        "private texts, as where models of original text are compared, no epsilon covers it, nor any model "
        "that has it.",
        "Adapted, directly trained and mixed models have seen adaptation text that sanitizing does not "
        "protect, and models of original text have seen all of it: no epsilon covers any of them, only "
        "sanitized text, and what is made of it and of public data alone. What was chosen on dev depends on "
        "dev.",
        _sanitized_by(tagger),
    ]
    if any(system.kind == MIXED and system != BEST for system in perplexities.ppl):
        said.append(
            "A mixture for one pass (M1_M2, M1_M2_M3) is one class LM whose root model is the mixture of the "
            "models' n-grams, of words and of tags. That loses histories: after a name that the class has "
            "given M1 knows none, after a name that was read as plain words M2 knows none. What it costs, or "
            "gains, shows beside the exact mixture (..._exact), in perplexity and among what was chosen on "
            "dev."
        )
    heard = max((part.heard for part in texts), default=0)
    if systems and heard:
        said.append(f"The acoustic model was trained with speech of {heard:,} users of the adaptation text.")
    if systems:
        said += _of_speech(systems, corpus, acoustic_model) + _of_tests(systems, tests, recall)
    return [*said, f"Versions: {versions()}."]


def _sanitized_by(tagger: str) -> str:
    if tagger == "gold":
        return "The names that were sanitized are gold annotations."
    return (
        f"The names that were sanitized were found automatically ({tagger}): what was missed stays in the "
        "sanitized text as it was said."
    )


def _of_speech(systems: Mapping[System, Measured], corpus: CorpusInfo, acoustic_model: str) -> list[str]:
    first = next(iter(systems.values()))
    options, unit = first.score.options, first.score.unit
    said = [
        f"{first.score.rate_name} is insertions, deletions and substitutions by 100 reference {unit}s, over "
        f"all {first.result.utterances:,} utterances of test ({first.result.counts.ref_words:,} {unit}s).",
        f"Intervals: {options.num_replicates:,} draws of {len(first.result.speakers):,} speakers with "
        "replacement, percentiles of the ratio of sums.",
    ]
    said.append(
        "M4 scores N-best lists again: those of its setting's M1, adapted those of sanitized text's M1, in "
        "the mixture those of M1 + M2 (one pass), as exact mixtures do."
    )
    if len(first.result.speakers) < FEW_SPEAKERS:
        said.append("With so few speakers intervals are too narrow as a rule, and their p-values too small.")
    if acoustic_model.startswith(_PAPER_AM):
        said.append(f"The acoustic model is trained with {acoustic_model}, as that of the paper.")
    else:
        said.append(
            f"The acoustic model is trained with {acoustic_model}; that of the paper is an {_PAPER_AM} "
            "(chain) TDNN. Error rates do not compare with published ones, their order may."
        )
    if any(measured.result.entities for measured in systems.values()):
        if not corpus.name:
            whose = "of an unknown annotation"
        elif corpus.entities in ("", "gold"):
            whose = "those of the corpus's own annotation"
        else:
            whose = f"automatic ({corpus.entities}), so that its mistakes count as names"
        said.append(
            f"Names in the references are {whose}. Recall is the share of their words that was recognized; "
            "precision is an upper bound: wrong names that no reference at hand holds are no false alarms."
        )
    return said


def _of_tests(
    systems: Mapping[System, Measured], tests: Mapping[Pair, Tested], recall: Mapping[Pair, RecallTested]
) -> list[str]:
    said = []
    if tests:
        said.append(
            f"p: MAPSSWE, two-sided; Holm's correction is over the {len(tests)} comparisons of the table. A "
            "difference above 0 means that the first system is worse. Significant is p (Holm) below 0.05."
        )
    if any(rough(tested.test) for tested in tests.values()):
        said.append(f"With fewer than {ROUGH_BELOW} segments a p-value is rough.")
    if recall:
        replicates = next(iter(systems.values())).score.options.num_replicates
        said.append(
            f"p of recall: both systems on the same {replicates:,} draws of speakers, two-sided; Holm's "
            f"correction is over the {len(recall)} comparisons of that table. A difference above 0 means "
            "that the first system recognizes more."
        )
    return said
