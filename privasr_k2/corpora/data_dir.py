"""Data that is prepared already: Kaldi data directories, or lhotse manifests.

Accepted is a folder with ``train/``, ``test/`` and perhaps ``dev/``, ``adapt/``, ``pool/``, each a
Kaldi data directory; or one such directory, split by speakers into train, dev and test; or lhotse's
``cuts_<role>.jsonl.gz`` (or ``recordings_`` and ``supervisions_<role>.jsonl.gz``). A missing dev is
split from train, and so is ``adapt`` with ``adapt_fraction`` above 0, for recipes that need it.
``lexicon.txt`` in the folder is used. Options: ``allow_pipes=true`` (run commands of ``wav.scp``),
``dev_fraction=0.09 test_fraction=0.1 adapt_fraction=0 split_seed=0``, ``sampling_rate=16000``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import ROLES, Corpus, CorpusInput
from privasr_k2.corpora.kaldi_dir import Pipes, is_kaldi_dir, read_kaldi_dir
from privasr_k2.corpora.utterances import split_by_speaker
from privasr_k2.errors import DataError

if TYPE_CHECKING:
    from lhotse import CutSet

_LHOTSE_STORAGE = ("lilcom_chunky", "lilcom_files", "lilcom_hdf5", "numpy_files", "numpy_hdf5")
_SAFE_STORAGE = (*_LHOTSE_STORAGE, "kaldiio")


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of the roles that the folder holds, or that are split from it."""
    fractions = ("dev_fraction", "test_fraction", "adapt_fraction")
    given.refuse_unknown(*fractions, "split_seed", "sampling_rate")
    folder = given.folder().absolute()
    seed = int(given.number("split_seed", 0))
    dev_fraction = given.number("dev_fraction", 0.09)
    test_fraction = given.number("test_fraction", 0.1)
    adapt_fraction = given.number("adapt_fraction", 0.0)
    cuts = _lhotse_cuts(folder) or _kaldi_cuts(folder, given)
    if "train" not in cuts:
        found = f"only those of {' '.join(cuts)}"
        raise DataError(folder, "lhotse manifests of train", found, "add cuts_train.jsonl.gz")
    if "test" not in cuts:
        # Next to train/ it is missing; a single folder is there to be split.
        if "test_fraction" not in given.options and not is_kaldi_dir(folder):
            found = f"only {' '.join(cuts)} among {_names(folder)}"
            way_out = "name it test, or make speakers of train the test part:"
            way_out += " --corpus-options test_fraction=0.1"
            raise DataError(folder, "test beside train", found, way_out)
        cuts["train"], cuts["test"] = _split(cuts["train"], "test", test_fraction, seed)
    if "dev" not in cuts:
        cuts["train"], cuts["dev"] = _split(cuts["train"], "dev", dev_fraction, seed)
    if "adapt" not in cuts and adapt_fraction:
        cuts["train"], cuts["adapt"] = _split(cuts["train"], "adapt", adapt_fraction, seed)
    return cuts


def _split(cuts: CutSet, part: str, fraction: float, seed: int) -> tuple[CutSet, CutSet]:
    at_least = 2 if len({cut.supervisions[0].speaker for cut in cuts}) > 4 else 1
    rest, taken = split_by_speaker(cuts, fraction=fraction, at_least=at_least, seed=seed)
    for cut in taken:  # tables name parts: this one was never trained on
        cut.custom["part"] = part
    return rest, taken


def _kaldi_cuts(folder: Path, given: CorpusInput) -> dict[str, CutSet]:
    parts = {role: folder / role for role in ROLES if is_kaldi_dir(folder / role)}
    if not parts and is_kaldi_dir(folder):
        parts = {"train": folder}
    if "train" not in parts:
        expected = "train/ with text, utt2spk and wav.scp or feats.scp, or lhotse's"
        expected, found = f"{expected} cuts_train.jsonl.gz", _names(folder) or "an empty folder"
        raise DataError(folder, expected, found, "give the folder that holds them")
    rate = int(given.number("sampling_rate", CORPUS.sampling_rate))
    cuts = {}
    for role, path in parts.items():
        pipes = Pipes(given.flag("allow_pipes"), given.out_dir / "audio" / role, given.num_jobs)
        cuts[role] = read_kaldi_dir(path, part=role, pipes=pipes, sampling_rate=rate)
    return cuts


def _names(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir())[:10])


def _lhotse_cuts(folder: Path) -> dict[str, CutSet]:
    from lhotse import CutSet, RecordingSet, SupervisionSet

    cuts = {}
    for role in ROLES:
        whole = _first(folder, f"cuts_{role}.jsonl")
        recordings = _first(folder, f"recordings_{role}.jsonl")
        supervisions = _first(folder, f"supervisions_{role}.jsonl")
        if whole is not None:
            cuts[role] = _plain_cuts(CutSet.from_jsonl(whole), folder, role)
        elif recordings is not None and supervisions is not None:
            sets = RecordingSet.from_jsonl(recordings), SupervisionSet.from_jsonl(supervisions)
            cuts[role] = _plain_cuts(CutSet.from_manifests(*sets), folder, role)
    return cuts


def _first(folder: Path, name: str) -> Path | None:
    """The manifest, compressed or not; lhotse's recipes prefix the corpus's name."""
    paths = [*sorted(folder.glob(f"{name}*")), *sorted(folder.glob(f"*_{name}*"))]
    return next((path for path in paths if path.suffix in (".jsonl", ".gz")), None)


def _plain_cuts(cuts: CutSet, folder: Path, role: str) -> CutSet:
    """One cut a supervision, with absolute paths and a part."""
    from lhotse import CutSet

    made = []
    for cut in cuts.trim_to_supervisions(keep_overlapping=False):
        if cut.has_features and cut.features.storage_type not in _SAFE_STORAGE:
            place = f"{folder}: {cut.id}"
            found = f"{cut.features.storage_type}, which may hold pickles"
            way_out = "store them again: cuts.copy_feats(LilcomChunkyWriter(...))"
            raise DataError(place, f"features stored as {', '.join(_SAFE_STORAGE)}", found, way_out)
        supervision = cut.supervisions[0]
        cut = cut.with_recording_path_prefix(folder) if cut.has_recording else cut
        cut = cut.with_features_path_prefix(folder) if cut.has_features else cut
        custom = cut.custom or {}
        cut.custom = {**custom, "part": custom.get("part", role), "place": supervision.id}
        made.append(cut.with_id(supervision.id))
    return CutSet.from_cuts(made)


def lexicon(given: CorpusInput) -> Path | None:
    """``lexicon.txt`` in the folder."""
    path = given.raw_dir / "lexicon.txt" if given.raw_dir is not None else None
    return path if path is not None and path.is_file() else None


CORPUS = Corpus(name="", read=read, lexicon=lexicon, groups=("gender",))
