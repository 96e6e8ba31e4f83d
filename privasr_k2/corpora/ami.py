"""The AMI meetings [Carletta et al. 2005], individual headsets: NXT annotations or tables of turns.

The folder holds the manual annotations (``words/``, ``segments/``, ``corpusResources/``,
``namedEntities/``), itself or in ``ami_public_manual_1.6.2/``, or it is ``amicorpus/`` beside that
folder; or it holds ``turns.tsv.gz`` (meeting, split, turn, role, text). Where it also holds
``<meeting>/audio/<meeting>.Headset-<n>.wav``, as ``amicorpus/`` does, the manifests are those of
``lhotse.recipes.prepare_ami``. Without audio the cuts are text only, or are synthesized with
``speech=synthetic``. dev and test are those of the full-corpus-ASR partition, and no speaker is in
two roles.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from privasr_k2.constraints import Checked, Delta, Positive, one_of
from privasr_k2.corpora import voices
from privasr_k2.corpora.ami_headsets import HEADSETS, headset_cuts
from privasr_k2.corpora.ami_nxt import read_annotations
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.layouts import shown
from privasr_k2.corpora.spoken_part import SpokenPart
from privasr_k2.corpora.utterances import Utterance, make_cuts, split_turn
from privasr_k2.data.users import hold_out
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines, write_text
from privasr_k2.text.normalize import normalize_english, remove_markers

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

_IB_DEV_GROUPS = ("IB4001", "IB4002", "IB4003", "IB4004", "IB4010", "IB4011")
DEV_GROUPS = ("ES2011", "IS1008", "TS3004", *_IB_DEV_GROUPS)
TEST_GROUPS = ("ES2004", "IS1009", "TS3003", "EN2002")
_MANUAL = "ami_public_manual_1.6.2"
_ROLES = ("train", "adapt", "dev", "test")
_TRAIN_TEXT = "train.txt"


@dataclass(frozen=True)
class AmiConfig(Checked):
    """Settings of ``conf/corpora.yaml#ami``; hours limit synthetic speech only."""

    speech: Annotated[str, one_of("auto", "headset", "synthetic", "none")]
    adapt_fraction: Delta
    seed: int
    max_hours_train: Positive
    max_hours_adapt: Positive
    max_hours_dev: Positive
    max_hours_test: Positive
    conditions: voices.Ranges


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of ``train``, ``adapt``, ``dev`` and ``test``."""
    from lhotse import CutSet

    raw_dir = given.folder().absolute()
    options = given.settings(AmiConfig)
    places = (raw_dir, raw_dir / _MANUAL, raw_dir.parent / _MANUAL)
    annotations = next((place for place in places if (place / "words").is_dir()), None)
    if annotations is not None:
        utterances = list(read_annotations(annotations, normalize_english, _part))
    elif (raw_dir / "turns.tsv.gz").is_file():
        utterances = list(_turns(raw_dir / "turns.tsv.gz"))
    else:
        expected = "words/ and segments/ of the manual annotations, or turns.tsv.gz"
        way_out = "download ami_public_manual_1.6.2.zip from the corpus's page and unpack it there"
        raise DataError(raw_dir, expected, shown(raw_dir), way_out)
    headsets = []
    if annotations is not None and options.speech in ("auto", "headset"):
        headsets = sorted(raw_dir.rglob(HEADSETS))
    if options.speech == "headset" and not headsets:
        way_out = "download the headset audio, or choose --set speech=synthetic or speech=none"
        raise DataError(raw_dir, "<meeting>/audio/<meeting>.Headset-<n>.wav", "none", way_out)
    if headsets:
        cuts = headset_cuts(raw_dir, annotations, headsets, given.num_jobs)
        said = {utterance.id.partition("-")[0] for utterance in utterances}
        if silent := said - {_meeting(cut) for cut in cuts}:
            message = "%d of %d meetings have no headset audio and are left out"
            log.warning(message, len(silent), len(said))
    else:
        if options.speech == "auto":
            log.warning("no headset audio: text only (--set speech=synthetic has the text spoken)")
        cuts = make_cuts(utterances)
    by_role = _roles(cuts, options)
    if options.speech == "synthetic":
        text = "".join(f"{cut.supervisions[0].text}\n" for cut in by_role["train"])
        write_text(given.out_dir / _TRAIN_TEXT, text)
        hours = {role: getattr(options, f"max_hours_{role}") for role in _ROLES}
        part = SpokenPart("ami", hours, options.conditions, options.seed)
        by_role = part.speak(by_role, given.out_dir / "audio", given.num_jobs)
    return {role: CutSet.from_cuts(of_role) for role, of_role in by_role.items() if of_role}


def lm_text(given: CorpusInput) -> list[Path]:
    """The words of train, where only a part of them is spoken."""
    return [path] if (path := given.out_dir / _TRAIN_TEXT).is_file() else []


def _turns(path: Path) -> Iterator[Utterance]:
    """Utterances of the table; a role within a group of meetings (ES2002a-d) is one person."""
    header = ["meeting", "split", "turn", "role", "text"]
    for number, line in read_lines(path):
        row = line.split("\t")
        if number == 1 and row == header:
            continue
        if number == 1 or len(row) != len(header) or not row[2].isdigit():
            expected = f"the columns {' '.join(header)}"
            raise DataError(f"{path}:{number}", expected, repr(row), "mend the table")
        meeting, _, turn, role, text = row
        speaker = f"{_group(meeting)}_{role.replace(' ', '')}"
        for piece, tokens in enumerate(split_turn(remove_markers(text).split())):
            words = " ".join(tokens)
            if normalize_english(words):
                identity = f"{meeting}-{int(turn):04d}-{piece:02d}"
                yield Utterance(identity, words, speaker, _part(meeting), place=f"{path}:{number}")


def _group(meeting: str) -> str:
    """ES2002a -> ES2002."""
    return re.sub(r"[a-z]$", "", meeting)


def _part(meeting: str) -> str:
    group = _group(meeting)
    return "dev" if group in DEV_GROUPS else "test" if group in TEST_GROUPS else "train"


def _roles(cuts: CutSet, options: AmiConfig) -> dict[str, list[Cut]]:
    """Cuts by role: whole groups of meetings are held out, and no speaker has two roles."""
    by_role: dict[str, list[Cut]] = {role: [] for role in _ROLES}
    lengths: Counter[str] = Counter()
    for cut in cuts:
        if cut.custom["part"] == "train":
            lengths[_group(_meeting(cut))] += len(cut.supervisions[0].text)
    held = hold_out(lengths, fraction=options.adapt_fraction, at_least=1, seed=options.seed)
    for cut in cuts:
        part = cut.custom["part"]
        adapts = part == "train" and _group(_meeting(cut)) in held
        by_role["adapt" if adapts else part].append(cut)
    taken: set[str] = set()
    for role in ("test", "dev", "adapt", "train"):
        kept = [cut for cut in by_role[role] if cut.supervisions[0].speaker not in taken]
        if dropped := len(by_role[role]) - len(kept):
            log.warning("%s: %d utterances of speakers of other roles left out", role, dropped)
        for cut in kept:
            cut.custom["part"] = role
        by_role[role] = kept
        taken |= {cut.supervisions[0].speaker for cut in kept}
    return by_role


def _meeting(cut: Cut) -> str:
    return cut.id.partition("-")[0]


CORPUS = Corpus(name="ami", read=read, lm_text=lm_text, license="CC BY 4.0", groups=("gender",))
