"""Data that is prepared already: Kaldi data directories, or lhotse manifests.

Accepted is a folder with ``train/``, ``test/`` and perhaps ``dev/``, ``adapt/``, ``pool/``, each a
Kaldi data directory; or one such directory, split by speakers into train, dev and test; or lhotse's
manifests, named as its recipes and icefall name them (:mod:`.parts`). Files that a user names for a
role take the place of what the folder holds; with files for train the folder is not looked into. A
missing dev is split from train, and so is ``adapt`` with ``adapt_fraction`` above 0, for recipes
that need it. ``lexicon.txt`` in the folder is used. Options: ``allow_pipes=true`` (run commands of
``wav.scp``), ``dev_fraction=0.09 test_fraction=0.1 adapt_fraction=0 split_seed=0``,
``speaker=recording`` (manifests name no speakers, and each recording is
one), ``name`` of the corpus, where there is no folder.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import ROLES, Corpus, CorpusInput
from privasr_k2.corpora.kaldi_dir import Pipes, is_kaldi_dir, read_kaldi_dir
from privasr_k2.corpora.lhotse_checks import Checks
from privasr_k2.corpora.manifest_files import read_manifests
from privasr_k2.corpora.parts import Part, given_parts, named_parts
from privasr_k2.corpora.perturbed import is_copy, named_originals
from privasr_k2.corpora.splits import OPTIONS, complete, refuse_missing_test
from privasr_k2.data.problems import CorpusProblems
from privasr_k2.errors import ConfigError, DataError

if TYPE_CHECKING:
    from lhotse import CutSet

log = logging.getLogger(__name__)


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of the roles that files or the folder hold, or that are split from train."""
    given.refuse_unknown(*OPTIONS, "speaker", "name")
    parts = _parts(given)
    if "train" not in parts:
        found, way_out = f"only those of {' '.join(parts)}", "add cuts_train.jsonl.gz"
        raise DataError(_place(given), "lhotse manifests of train", found, way_out)
    # Next to train/ it is missing; a single folder is there to be split.
    alone = given.raw_dir is not None and is_kaldi_dir(given.raw_dir)
    alone = alone and not any(given.files.values())
    if not alone:
        there = "" if given.raw_dir is None else f" among {_names(given.raw_dir)}"
        way_out = "name it test, give it with --test FILE"
        refuse_missing_test(parts, given, place=_place(given), there=there, way_out=way_out)
    return complete(_cuts(parts, given), given)


def _place(given: CorpusInput) -> str:
    named = (str(path) for paths in given.files.values() for path in paths)
    return str(given.raw_dir.absolute()) if given.raw_dir is not None else " ".join(named)


def _parts(given: CorpusInput) -> dict[str, list[Part]]:
    """Role -> its parts."""
    files = {role: given_parts(paths, role) for role, paths in given.files.items() if paths}
    if "train" in files:
        return files
    if given.raw_dir is None:
        expected, found = "--train FILE --dev FILE --test FILE", "no file for train"
        raise ConfigError("the corpus", expected, found, "name files, or a folder: data:DIR")
    folder = given.folder().absolute()
    return {**(named_parts(folder) or _kaldi_parts(folder)), **files}


def _kaldi_parts(folder: Path) -> dict[str, list[Part]]:
    parts = {role: [Part(role, (folder / role,))] for role in ROLES if is_kaldi_dir(folder / role)}
    if not parts and is_kaldi_dir(folder):
        parts = {"train": [Part("train", (folder,))]}
    if "train" not in parts:
        expected = "train/ with text, utt2spk and wav.scp or feats.scp, or lhotse's"
        expected, found = f"{expected} cuts_train.jsonl.gz", _names(folder) or "an empty folder"
        way_out = "give the folder that holds them, or name files: --train FILE --test FILE"
        raise DataError(folder, expected, found, way_out)
    return parts


def _cuts(parts: Mapping[str, Sequence[Part]], given: CorpusInput) -> dict[str, CutSet]:
    """Role -> its cuts; copies bear their originals' names."""
    from lhotse import CutSet

    rate = int(given.number("sampling_rate", CORPUS.sampling_rate))
    pipes = given.flag("allow_pipes")
    checks = Checks(pipes, given.option("speaker", "given", ("given", "recording")))
    cuts = {}
    for role, of_role in parts.items():
        read: list[CutSet] = []
        for number, part in enumerate(of_role):
            if part.files[0].is_dir():
                audio = given.out_dir / "audio" / role / str(number)
                kept = Pipes(pipes, audio, given.num_jobs)
                [folder] = part.files
                try:
                    found = read_kaldi_dir(folder, part=part.name, pipes=kept, sampling_rate=rate)
                    read.append(found)
                except CorpusProblems as error:  # those of the other parts are told, too
                    checks.problems += error.problems
            else:
                read.append(read_manifests(part.files, part.name, checks))
        cuts[role] = CutSet.from_cuts(named_originals(cut for of_part in read for cut in of_part))
    way_out = "mend the files, for example with lhotse or utils/fix_data_dir.sh"
    checks.report(_place(given), given.num_jobs, way_out)
    for role in ("dev", "test"):
        if copies := sum(map(is_copy, cuts.get(role, ()))):
            log.warning("%s: %d utterances are perturbed copies", role, copies)
    return cuts


def _names(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir())[:10])


def lexicon(given: CorpusInput) -> Path | None:
    """``lexicon.txt`` in the folder."""
    path = given.raw_dir / "lexicon.txt" if given.raw_dir is not None else None
    return path if path is not None and path.is_file() else None


CORPUS = Corpus(name="", read=read, lexicon=lexicon, groups=("gender",))
