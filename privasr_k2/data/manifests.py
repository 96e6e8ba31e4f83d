"""The manifests of a corpus: reading, writing and checking ``cuts_<role>.jsonl.gz``.

Paths inside the data folder are relative to the manifests' folder, so that the tree can be moved;
paths of the user's own corpus are absolute.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.data import problems as kinds
from privasr_k2.data.audio import missing_samples
from privasr_k2.data.problems import Problem, report
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

_GRACE_CHARACTERS = 8
"""A short word cut tightly by a segmenter may be denser than speech is on the average."""


def cuts_path(folder: Path, role: str) -> Path:
    """The file that holds the cuts of a role."""
    return folder / f"cuts_{role}.jsonl.gz"


def role_of(cuts: Path, way_out: str) -> str:
    """The role of a file ``cuts_<role>.jsonl.gz``.

    Args:
        way_out: of the message.

    Raises:
        DataError: a file of another name.
    """
    role = cuts.name.removeprefix("cuts_").removesuffix(".jsonl.gz")
    if cuts.name != cuts_path(cuts.parent, role).name:
        raise DataError(cuts, "cuts_<role>.jsonl.gz", cuts.name, way_out)
    return role


def roles(folder: Path) -> list[str]:
    """The roles that a manifests folder holds, sorted."""
    names = (path.name for path in folder.glob("cuts_*.jsonl.gz"))
    return sorted(name.removeprefix("cuts_").removesuffix(".jsonl.gz") for name in names)


def load_cuts(folder: Path, role: str, *, lazy: bool = False) -> CutSet:
    """The cuts of one role, with absolute paths, and their features' extractors registered.

    Args:
        folder: ``data/manifests`` or ``data/feats_<kind>``.
        lazy: read again in every pass instead of keeping all in memory (about 4 kB a cut).

    Raises:
        DataError: there are no such cuts.
    """
    from lhotse import CutSet

    from privasr_k2.data import extractors  # noqa: F401  # cut.mix looks them up by name

    path, folder = cuts_path(folder, role), Path(folder).absolute()
    if not path.is_file():
        there = f"the roles {' '.join(roles(folder))}" if folder.is_dir() else "no such folder"
        expected = f"the cuts of the role {role!r}"
        raise DataError(path, expected, there, "run the stage that writes them")
    cuts = CutSet.from_jsonl_lazy(path).map(_Resolve(folder))
    return cuts if lazy else cuts.to_eager()


class _Resolve:
    """Makes relative paths absolute; picklable for data loaders, unlike a closure."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, cut: Cut) -> Cut:
        return _with_paths(cut, lambda path: os.path.normpath(self.folder / path))


def save_cuts(cuts: Iterable[Cut], folder: Path, role: str, *, final: Path | None = None) -> Path:
    """Write the cuts of one role to ``folder``, a child of the data folder, and return the file.

    Args:
        final: where the folder will stand outside of the data folder; paths are relative to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, tree = cuts_path(folder, role), folder.absolute().parent

    def shorten(name: str) -> str:
        absolute = Path(name).absolute()
        if final is None and not absolute.is_relative_to(tree):
            return str(absolute)
        return os.path.relpath(absolute, (final or folder).absolute())

    # Not by lhotse's writer, whose gzip header holds the time: the same cuts give the same bytes.
    write_jsonl(path, (_with_paths(cut, shorten).to_dict() for cut in cuts))
    return path


def _with_paths(cut: Cut, change: Any) -> Cut:
    from lhotse.utils import fastcopy

    if cut.has_recording:
        sources = [
            fastcopy(s, source=change(s.source)) if s.type == "file" else s
            for s in cut.recording.sources
        ]
        cut = fastcopy(cut, recording=fastcopy(cut.recording, sources=sources))
    if cut.has_features:
        path = change(cut.features.storage_path)
        cut = fastcopy(cut, features=fastcopy(cut.features, storage_path=path))
    return cut


def check_cuts(
    cuts_by_role: Mapping[str, CutSet],
    sampling_rate: int,
    max_characters_per_second: float = 30.0,
    *,
    num_jobs: int = 1,
    place: str | Path = "the corpus",
    needed_roles: Sequence[str] = ("train", "test"),
) -> None:
    """Report everything that would spoil a training or a test, at once.

    Checked are audio (missing, unreadable, truncated, another rate), empty or too dense text,
    duplicate ids, speakers in two roles, and roles that are empty or missing.

    Args:
        cuts_by_role: as :attr:`Corpus.read` gives them, with normalized text.
        sampling_rate: of all audio, in Hz.
        max_characters_per_second: of text, blanks included. Fast speech has about 20.
        num_jobs: threads that look at audio.
        place: named in the error, for example the corpus folder.
        needed_roles: roles that may not be missing.

    Raises:
        DataError: one error with all problems, counted by kind.
    """
    problems = [*_check_roles(cuts_by_role, needed_roles), *_check_ids(cuts_by_role)]
    for role, cuts in cuts_by_role.items():
        for cut in cuts:
            problems += _check_cut(cut, role, sampling_rate, max_characters_per_second)
    problems += _check_audio(cuts_by_role.values(), num_jobs)
    way_out = "mend the corpus, or give one without these utterances; then run this stage again"
    report(problems, place=place, way_out=way_out)


def _check_roles(cuts_by_role: Mapping[str, CutSet], needed: Sequence[str]) -> Iterator[Problem]:
    for role in dict.fromkeys((*needed, *cuts_by_role)):
        if role not in cuts_by_role or next(iter(cuts_by_role[role]), None) is None:
            yield Problem(f"role {role}", "utterances", "none")
    owner: dict[str, str] = {}
    for role, cuts in cuts_by_role.items():
        for speaker in sorted({cut.supervisions[0].speaker for cut in cuts}):
            first = owner.setdefault(speaker, role)
            if first != role:
                found = f"them in {first} and {role}"
                expected = "a speaker in one role only"
                yield Problem(f"speaker {speaker}", expected, found, kinds.SPEAKERS)


def _check_ids(cuts_by_role: Mapping[str, CutSet]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for cuts in cuts_by_role.values():
        for cut in cuts:
            if cut.id in first:
                found = f"{cut.id!r} again, after {first[cut.id]}"
                yield Problem(_place(cut), "an id that stands once", found, kinds.DOUBLE)
            first.setdefault(cut.id, _place(cut))


def _check_cut(
    cut: Cut, role: str, sampling_rate: int, max_characters_per_second: float
) -> Iterator[Problem]:
    place, text = _place(cut), cut.supervisions[0].text or ""
    if not text.strip() and role != "pool":  # which is used without its texts
        yield Problem(place, "words", f"empty text of {cut.id}", kinds.NO_WORDS)
    problem = (cut.custom or {}).get("problem")
    if problem is not None:
        path, _, what = problem.partition(": ")
        yield Problem(path, f"audio for {cut.id}", what)
        return
    if cut.has_recording and cut.recording.sampling_rate != sampling_rate:
        source, found = cut.recording.sources[0].source, f"{cut.recording.sampling_rate} Hz"
        yield Problem(source, f"audio of {sampling_rate} Hz", found, kinds.RATE)
    if len(text) > _GRACE_CHARACTERS + max_characters_per_second * cut.duration:
        expected = f"text that {cut.duration:.2f} s of speech can hold"
        yield Problem(place, expected, f"{len(text)} characters in {cut.id}", kinds.DENSE)


def _check_audio(cut_sets: Iterable[CutSet], num_jobs: int) -> Iterator[Problem]:
    recordings = (cut.recording for cuts in cut_sets for cut in cuts if cut.has_recording)
    sources = (source for recording in recordings for source in recording.sources)
    paths = dict.fromkeys(source.source for source in sources if source.type == "file")
    with ThreadPoolExecutor(max(1, num_jobs)) as pool:
        for path, missing in zip(paths, pool.map(missing_samples, map(Path, paths))):
            if missing is not None:
                yield Problem(path, "all samples of its header", missing, kinds.TRUNCATED)


def _place(cut: Cut) -> str:
    return str((cut.custom or {}).get("place", cut.id))
