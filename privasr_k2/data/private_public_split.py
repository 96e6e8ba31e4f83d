"""Split a corpus by speakers: private speech, public transcribed speech, and an untranscribed pool.

No speaker is in two parts. The split is public: speakers are named, or drawn by the roster and the
seed, so that nobody's data decide which side somebody is on.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privasr_k2.constraints import Checked, Natural, ShareBelowOne, one_of
from privasr_k2.data.features import ABOUT
from privasr_k2.data.manifests import cuts_path, load_cuts, save_cuts
from privasr_k2.data.roster import SPEAKER, UTTERANCE, file_name, read_speakers, write_roster
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_yaml, write_json
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

PRIVATE, PUBLIC, POOL, OWN = "private", "public", "pool", "own"
FILE = "sides.json"
FORMAT = "privasr_k2 sides 1"
_WAY_OUT = "name other speakers, or give another corpus"


@dataclass(frozen=True)
class SplitConfig(Checked):
    """The split of train's speakers; defaults in section ``split_speech`` of ``conf/pate.yaml``.

    Args:
        public_speakers: speakers who are public with their texts.
        pool_speakers: speakers of the pool.
        public_share: share of the speakers, where no other speech is public.
        pool_share: the same for the pool.
        pool_of_public: share of the speakers of another, public corpus who are the pool, so that
            train has none; 0: they all are public with their texts.
        public_names: names of speakers of another, public corpus are ``shared`` with this one, so
            that equal names are one person, or are its ``own``.
        most_private: so many private speakers, drawn by the roster; the others are left out; 0: all
            of them. Who is among 10 is also among 20.
        seed: of the draw.
    """

    public_speakers: list[str]
    pool_speakers: list[str]
    public_share: ShareBelowOne
    pool_share: ShareBelowOne
    pool_of_public: ShareBelowOne
    public_names: Annotated[str, one_of("shared", "own")]
    most_private: Natural
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.public_share + self.pool_share >= 1:
            expected = "must leave somebody private"
            raise ValueError(f"public_share and pool_share {expected}, got a sum of 1 or more")


def split_speakers(
    speakers: Iterable[str], config: SplitConfig, *, public: bool, pool: bool
) -> dict[str, list[str]]:
    """The speakers of train by side, each sorted.

    Args:
        public: whether other speech is public with its texts.
        pool: whether other speech is in the pool.

    Raises:
        DataError: a named speaker whom train lacks or who is named twice, or a side without
            speakers.

    >>> shares = dict(public_share=0.5, pool_share=0.25, pool_of_public=0.0)
    >>> config = SplitConfig(["a"], [], **shares, public_names="shared", most_private=0, seed=1)
    >>> split = split_speakers("abcdefgh", config, public=False, pool=False)
    >>> {side: len(names) for side, names in split.items()}
    {'private': 5, 'public': 1, 'pool': 2}
    """
    names = sorted(set(speakers))
    named = {PUBLIC: sorted(set(config.public_speakers)), POOL: sorted(set(config.pool_speakers))}
    place, either = "public_speakers and pool_speakers", {*named[PUBLIC], *named[POOL]}
    if unknown := sorted(either - set(names)):
        raise DataError(place, "speakers of train", unknown[0], _WAY_OUT)
    if both := sorted(set(named[PUBLIC]) & set(named[POOL])):
        raise DataError(place, "a speaker in one of them", both[0], _WAY_OUT)
    rest = [name for name in names if name not in either]
    order = [rest[place] for place in stream(config.seed, "sides").permutation(len(rest))]
    wanted = ((PUBLIC, public, config.public_share), (POOL, pool, config.pool_share))
    for side, elsewhere, share in wanted:
        if not named[side] and not elsewhere:
            taken = math.ceil(share * len(names))
            named[side], order = sorted(order[:taken]), order[taken:]
            if not named[side] and side == PUBLIC:
                way_out = f"set {side}_share, or name some"
                raise DataError(f"the {side} side", "a speaker at least", "none", way_out)
    if not order:
        way_out = "leave some of train to it"
        raise DataError("the private side", "a speaker at least", "none", way_out)
    if config.most_private > len(order):
        expected, found = f"{config.most_private} private speakers", f"{len(order)}"
        raise DataError("most_private", expected, found, "ask for as many, or give more speech")
    return {PRIVATE: sorted(order[: config.most_private or None]), **named}


def split_speech(
    feats: Path,
    folder: Path,
    config: SplitConfig,
    *,
    public_feats: Path | None,
    manifests: Path | None = None,
    roster: Path | None = None,
) -> dict[str, list[str]]:
    """Write features folders ``private/``, ``public/``, ``pool/`` and ``sides.json`` atomically.

    Private and public have the roles ``train`` and ``dev`` (the corpus's, which is public); the
    pool has the role ``pool``, without texts and at one speed, and no folder where nobody is in it.
    Where another corpus is public, ``own/`` has the cuts of train's own public speakers, or all of
    public if there are none.
    ``roster_speaker.txt`` and ``roster_utterance.txt`` name the private units. Returns the speakers
    of each side, of the private one those of the roster.

    Args:
        feats: the corpus: train, dev, and perhaps a pool of its own, which is public.
        public_feats: another corpus, whose train is public with its texts.
        manifests: of the corpus before features, whose train is the roster where none is given;
            ``None``: the features'.
        roster: the public list of train's speakers, or of its utterances and their speakers.

    Raises:
        DataError: a speaker or an utterance that the roster lacks, a side without speakers, a
            speaker on two sides or also in dev or test, a duplicate utterance, or features of two
            kinds.
    """
    train, dev = load_cuts(feats, "train"), load_cuts(feats, "dev")
    own_pool = [*load_cuts(feats, "pool")] if cuts_path(feats, "pool").is_file() else []
    other: list[Cut] = []
    if public_feats is not None:
        _check_form(feats, public_feats)
        other += load_cuts(public_feats, "train")
    if config.pool_of_public:
        if not other or own_pool or config.pool_speakers:
            expected = "another corpus that is public, and no other pool"
            found = "no such corpus" if not other else "another pool"
            raise DataError("pool_of_public", expected, found, "set it to 0, or remove the pool")
        own_pool, other = _drawn_pool(other, config)
    given = dict(public=bool(other), pool=bool(own_pool))
    names, utterances = _roster(train, load_cuts(manifests or feats, "train"), roster)
    sides = split_speakers(names, config, **given)
    side_of = {name: side for side, names in sides.items() for name in names}
    cuts: dict[str, list[Cut]] = {PRIVATE: [], PUBLIC: [*other], POOL: own_pool}
    for cut in train:
        if (side := side_of.get(_speaker(cut))) is not None:
            cuts[side].append(cut)
    own = cuts[PUBLIC][len(other) :]
    unperturbed = (cut for cut in cuts[POOL] if "original_id" not in (cut.custom or {}))
    cuts[POOL] = [*map(_without_text, unperturbed)]
    test = load_cuts(feats, "test", lazy=True) if cuts_path(feats, "test").is_file() else ()
    _check_people(feats, {**cuts, "dev": dev, "test": test}, _other_people(cuts, config, other))
    summary: dict[str, Any] = {
        side: {"speakers": sorted(set(map(_speaker, of_side)))} for side, of_side in cuts.items()
    }
    summary[PRIVATE] = {"speakers": sides[PRIVATE]}  # whether they have data is private
    private = {
        name: person for name, person in utterances.items() if side_of.get(person) == PRIVATE
    }
    # No sums over the private side: exact ones would leak.
    for side in (PUBLIC, POOL):
        seconds = sum(cut.duration for cut in cuts[side])
        summary[side] |= {"utterances": len(cuts[side]), "hours": round(seconds / 3600, 4)}
    with atomic_path(folder) as temporary:
        for side, of_side in cuts.items():
            if side == POOL and not of_side:
                continue
            here, final = temporary / side, folder / side
            save_cuts(of_side, here, POOL if side == POOL else "train", final=final)
            if side != POOL:
                save_cuts(dev, here, "dev", final=final)
            if (feats / ABOUT).is_file():
                shutil.copyfile(feats / ABOUT, here / ABOUT)
        if other:
            save_cuts(own or cuts[PUBLIC], temporary / OWN, "train", final=folder / OWN)
        write_roster(temporary / file_name(SPEAKER), dict.fromkeys(sides[PRIVATE], ""), SPEAKER)
        write_roster(temporary / file_name(UTTERANCE), private, UTTERANCE)
        about = {"format": FORMAT, "unit": "speaker", "seed": config.seed, **summary}
        write_json(temporary / FILE, about)
    return {side: of_side["speakers"] for side, of_side in summary.items()}


def _drawn_pool(other: Iterable[Cut], config: SplitConfig) -> tuple[list[Cut], list[Cut]]:
    """The cuts of drawn speakers of a public corpus, and those of its other speakers."""
    of_speaker: dict[str, list[Cut]] = {}
    for cut in other:
        of_speaker.setdefault(_speaker(cut), []).append(cut)
    names = sorted(of_speaker)
    taken = math.ceil(config.pool_of_public * len(names))
    if taken == len(names):
        expected, found = "two speakers of the public corpus or more", f"{len(names)}"
        raise DataError("pool_of_public", expected, found, "give more public speech")
    order = stream(config.seed, "pool of public").permutation(len(names))
    drawn = {names[place] for place in order[:taken]}
    sides: tuple[list[Cut], list[Cut]] = ([], [])
    for name, of_one in of_speaker.items():
        sides[name not in drawn].extend(of_one)
    return sides


def _speaker(cut: Cut) -> str:
    speaker = cut.supervisions[0].speaker
    if not speaker:
        way_out = "name the speakers: sides are dealt out by people"
        raise DataError(cut.id, "a speaker", "none", way_out)
    return str(speaker)


def _roster(
    train: Iterable[Cut], listed: Iterable[Cut], roster: Path | None
) -> tuple[list[str], dict[str, str]]:
    """Speakers of train and its utterances with their speakers: listed, or as far as they are."""
    said = {_original(cut): _speaker(cut) for cut in train}
    speakers, utterances = (None, None) if roster is None else read_speakers(roster)
    if utterances is None:
        utterances = {_original(cut): _speaker(cut) for cut in listed}
    names = set(utterances.values()) if speakers is None else set(speakers)
    lacking = {*said.values(), *utterances.values()} - names
    if unknown := lacking | (set(said) - set(utterances)):
        place, expected = roster or "the manifests", "all speakers and utterances of train"
        raise DataError(place, expected, f"no {min(unknown)}", "complete the roster")
    return sorted(names), utterances


def _original(cut: Cut) -> str:
    return str((cut.custom or {}).get("original_id", cut.id))


def _without_text(cut: Cut) -> Cut:
    from lhotse.utils import fastcopy

    silent = [fastcopy(supervision, text="", custom=None) for supervision in cut.supervisions]
    return fastcopy(cut, supervisions=silent)


def _check_form(feats: Path, public: Path) -> None:
    """Refuse features that models of the other corpus cannot read."""
    both = (read_yaml(folder / ABOUT) for folder in (feats, public))
    forms = [(about["dim"], about["frame_shift"]) for about in both]
    if forms[0] != forms[1]:
        expected = f"{forms[0][0]} features each {forms[0][1]} s, as the private corpus has"
        way_out = "compute both with one kind: --feature and --public-feature"
        raise DataError(public / ABOUT, expected, f"{forms[1][0]} each {forms[1][1]} s", way_out)


def _other_people(
    cuts: Mapping[str, Iterable[Cut]], config: SplitConfig, other: Iterable[Cut]
) -> set[str]:
    """Utterances of a public corpus whose speakers are surely not of this one."""
    if config.public_names == "shared":
        return set()
    drawn = cuts[POOL] if config.pool_of_public else ()
    return {cut.id for cut in (*other, *drawn)}


def _check_people(
    feats: Path, cuts: Mapping[str, Iterable[Cut] | CutSet], elsewhere: Container[str]
) -> None:
    """Each person on one side, and each utterance once; ``elsewhere``: of people not of here."""
    owners: dict[tuple[bool, str], str] = {}
    ids: dict[str, str] = {}
    for side, of_side in cuts.items():
        for cut in of_side:
            person = (cut.id in elsewhere, _speaker(cut))
            if (owner := owners.setdefault(person, side)) != side:
                found = f"{person[1]} in {owner} and {side}"
                raise DataError(feats, "a person on one side only", found, _WAY_OUT)
            if cut.id in ids:
                found = f"{cut.id} in {ids[cut.id]} and {side}"
                raise DataError(feats, "an utterance that stands once", found, _WAY_OUT)
            ids[cut.id] = side
