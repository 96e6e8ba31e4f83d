"""LibriSpeech [Panayotov et al. 2015] in its official layout, whole or any subset of it.

Without a dev part, speakers are cut from train, but none of ``recovered_transcripts.txt``. Options:
``dev_fraction=0.06`` of the duration, ``dev_min_speakers=1 dev_seed=0``; ``unlabelled=DIR``, audio
without transcripts, by other speakers: the role ``pool``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.layouts import cuts_of_transcripts, without_transcripts
from privasr_k2.corpora.utterances import make_cuts, split_by_speaker
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet

PARTS = {
    "train": ("train-clean-100", "train-clean-360", "train-other-500", "train-clean-5"),
    "dev": ("dev-clean", "dev-other", "dev-clean-2"),
    "test": ("test-clean", "test-other"),
}
_UTTERANCES = {"train_clean_100": 28539, "train_clean_360": 104014, "train_other_500": 148688}
_UTTERANCES |= {"dev_clean": 2703, "dev_other": 2864, "test_clean": 2620, "test_other": 2939}


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of the parts that are there."""
    from lhotse.recipes import prepare_librispeech

    given.refuse_unknown("dev_fraction", "dev_min_speakers", "dev_seed", "unlabelled")
    folder = given.folder().absolute()
    cuts = cuts_of_transcripts(prepare_librispeech, folder, PARTS, given.num_jobs)
    if unlabelled := given.option("unlabelled", ""):
        cuts["pool"] = make_cuts(without_transcripts(Path(unlabelled)), given.num_jobs)
    if "dev" not in cuts:
        share, least = given.number("dev_fraction", 0.06), int(given.number("dev_min_speakers", 1))
        path = folder / "recovered_transcripts.txt"
        never = {line.split("-")[0] for _, line in (read_lines(path) if path.is_file() else ())}
        drawn = dict(fraction=share, at_least=least, seed=int(given.number("dev_seed", 0)))
        cuts["train"], cuts["dev"] = split_by_speaker(cuts["train"], never=never, **drawn)
    return cuts


def lm_text(given: CorpusInput) -> list[Path]:
    """The official text for language models, or the books beside a subset."""
    if given.raw_dir is None:
        return []
    folders, name = (given.raw_dir, given.raw_dir.parent), "librispeech-lm-norm.txt.gz"
    paths = (*(folder / name for folder in folders), folders[1] / "books" / "books.txt.gz")
    return [path for path in paths if path.is_file()][:1]


CORPUS = Corpus(
    "librispeech", read, lm_text=lm_text, expected_utterances=_UTTERANCES, license="CC BY 4.0"
)
