"""What to look at where a recognizer has no word right."""

from __future__ import annotations

from privasr_k2.scoring.counts import ErrorCounts


def hint(counts: ErrorCounts, *, no_path: int, utterances: int) -> str:
    """What to check where no word is right; empty where one is.

    Args:
        counts: of the words of ``utterances`` utterances.
        no_path: utterances whose search found nothing.

    >>> hint(ErrorCounts(hits=1, deletions=9), no_path=0, utterances=2)
    ''
    >>> hint(ErrorCounts(deletions=9), no_path=2, utterances=2)[:34]
    'nothing was recognized: all 9 word'
    """
    if counts.hits or not counts.ref_words:
        return ""
    if counts.deletions == counts.ref_words and not counts.insertions:
        return (
            f"nothing was recognized: all {counts.ref_words} words are deleted, {no_path} of "
            f"{utterances} utterances have no path. Check that the training has learned (dev.json "
            "and train_log.jsonl of am/: little speech needs more epochs), that features and "
            "tokens are those of the model, and that the text is what is spoken"
        )
    return (
        f"none of {counts.ref_words} words is right. Compare recogs-*.txt: case, script and signs "
        "of the references and of words.txt; audio and text may belong to different utterances"
    )
