"""Any corpus that a recipe of lhotse knows, by the recipe's name: ``lhotse.recipes.prepare_NAME``.

Its parts get roles by the beginnings of their names (:mod:`.parts`), or as the options ``train``,
``dev``, ``test``, ``adapt`` and ``pool`` say: ``train=PART,PART``. A single part is split by
speakers, as :mod:`.splits` does. ``speaker=recording``: the corpus names no speakers, and each
recording is one. ``warnings=accept`` goes on where the recipe warns. Other options are the recipe's
own arguments. What lhotse would leave out, or read only later, is checked for every recipe alike.
"""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.corpora.base import GENERAL_OPTIONS, ROLES, Corpus, CorpusInput
from privasr_k2.corpora.layouts import audio_problems
from privasr_k2.corpora.lhotse_checks import Checks
from privasr_k2.corpora.lhotse_manifests import call_recipe
from privasr_k2.corpora.parts import by_role
from privasr_k2.corpora.perturbed import named_originals
from privasr_k2.corpora.splits import OPTIONS, complete, refuse_missing_test
from privasr_k2.data.problems import report
from privasr_k2.errors import ConfigError, DataError

if TYPE_CHECKING:
    from lhotse import CutSet

_OWN = (*GENERAL_OPTIONS, *OPTIONS, *ROLES, "name", "recipe", "speaker", "warnings")
_AUDIO = (".wav", ".flac", ".sph", ".mp3", ".ogg", ".opus")
_ERRORS = (
    AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError,
)  # fmt: skip
"""What recipes raise on folders of another kind; ``SyntaxError``: their XML."""
log = logging.getLogger(__name__)


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of the roles that the recipe's parts have, or that are split from train."""
    from lhotse import CutSet

    name, folder = given.option("recipe", ""), given.folder().absolute()
    prepare = recipe_of(name)
    parts = dict(_flat(_called(prepare, name, folder, given)))
    if not parts:
        expected = f"a part of lhotse.recipes.prepare_{name}"
        raise DataError(folder, expected, "none", "correct --corpus-dir")
    roles = _roles(parts, given, folder)
    checks = Checks(speaker=given.option("speaker", "given", ("given", "recording")))
    cuts = {}
    for role, names in roles.items():
        read = (cut for part in names for cut in checks.cuts(parts[part], part))
        cuts[role] = CutSet.from_cuts(named_originals(read))
    _note_unused(folder, checks.files)
    checks.report(folder, given.num_jobs, "mend the corpus, or unpack it again")
    return complete(cuts, given)


def recipe_of(name: str) -> Callable[..., Any]:
    """``lhotse.recipes.prepare_NAME``.

    Raises:
        ConfigError: there is none; the error has names that are like it.
    """
    import lhotse.recipes

    known = [n.removeprefix("prepare_") for n in dir(lhotse.recipes) if n.startswith("prepare_")]
    if name not in known:
        near = difflib.get_close_matches(name.lower(), known, 3, cutoff=0.5)
        way_out = f"did you mean {' or '.join(near)}?" if near else f"it has: {' '.join(known)}"
        raise ConfigError(f"lhotse:{name}", "a recipe of lhotse", repr(name), way_out)
    return getattr(lhotse.recipes, f"prepare_{name}")  # type: ignore[no-any-return]


def _called(prepare: Callable[..., Any], name: str, folder: Path, given: CorpusInput) -> Any:
    """What the recipe returns.

    Raises:
        ConfigError: an option that it does not have, or one that it needs.
        DataError: it fails, or warns.
    """
    from lhotse.audio import AudioLoadingError

    place = f"lhotse.recipes.prepare_{name}"
    first, *others = inspect.signature(prepare).parameters.values()
    accepted = {parameter.name: parameter for parameter in others}
    settings: dict[str, Any] = {}
    for option, text in given.options.items():
        if option in accepted and option not in ("name", "recipe"):
            settings[option] = _value(accepted[option].annotation, text)
        elif option not in _OWN:
            expected = f"one of: {' '.join(accepted)}, train, dev, test"
            raise ConfigError(f"--set {option}=...", expected, repr(option), "correct or remove it")
    if "num_jobs" in accepted:
        settings.setdefault("num_jobs", given.num_jobs)
    needed = [n for n, p in accepted.items() if p.default is p.empty and n not in settings]
    if "output_dir" in needed:  # some convert audio
        needed.remove("output_dir")
        settings["output_dir"] = given.out_dir / "lhotse"
    if needed:
        way_out = f"add --corpus-options '{needed[0]}=...'"
        raise ConfigError(place, " and ".join(needed), "nothing", way_out)
    try:
        with _warnings() as said:
            found = call_recipe(prepare, folder, **settings)
    except (AudioLoadingError, *_ERRORS) as error:
        _find_bad_audio(folder, given.num_jobs)
        expected = f"what {place} reads as its {first.name}"
        shown = f"{type(error).__name__}: {error}".strip(": ").splitlines()[0]
        way_out = "compare the folder with the documentation of this recipe of lhotse"
        raise DataError(folder, expected, shown, way_out) from error
    if said and given.option("warnings", "refuse", ("refuse", "accept")) == "refuse":
        more = f", and {len(said) - 1} more" if len(said) > 1 else ""
        way_out = "mend the corpus, or go on with what is left: --corpus-options warnings=accept"
        raise DataError(folder, f"no warning of {place}", f"{said[0]}{more}", way_out)
    return found


def _value(annotation: Any, text: str) -> Any:
    """The text of an option as a recipe's argument: a truth value, number, list or text."""
    if text in ("true", "false"):
        return text == "true"
    if "int" in str(annotation) and text.lstrip("-").isdigit():
        return int(text)
    return text.split(",") if "," in text else text


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect the warnings that are logged; they are shown, too."""
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Keep(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger().removeHandler(handler)


def _flat(found: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parts of what a recipe returns, which may stand within languages or microphones."""
    if not isinstance(found, Mapping):
        return
    if {"supervisions", "cuts"} & set(found):
        yield "/".join(names) or "all", found
    else:
        for name, inner in found.items():
            yield from _flat(inner, (*names, str(name)))


def _roles(parts: Mapping[str, Any], given: CorpusInput, folder: Path) -> dict[str, list[str]]:
    """Role -> names of parts, as the options or the names say."""
    chosen = {role: given.option(role, "").split(",") for role in ROLES if role in given.options}
    place, listed = f"{folder}: parts of lhotse", " ".join(sorted(parts))
    for role, names in chosen.items():
        if wrong := [name for name in names if name not in parts]:
            expected = f"{role}=PART with parts among {listed}"
            raise ConfigError(place, expected, wrong[0], "correct --corpus-options")
    taken = {name for names in chosen.values() for name in names}
    rest = [name for name in parts if name not in taken]
    if not chosen and len(rest) == 1:
        return {"train": rest}
    last = {name.rpartition("/")[2]: [] for name in rest}
    for name in rest:
        last[name.rpartition("/")[2]].append(name)
    named = {role: [n for key in keys for n in last[key]] for role, keys in by_role(last).items()}
    roles = {role: chosen.get(role) or named.get(role) for role in ROLES}
    found = {role: names for role, names in roles.items() if names}
    way_out = "say which is which: --corpus-options 'train=PART,PART dev=PART test=PART'"
    if "train" not in found:
        raise DataError(place, "one whose name begins with train", listed, way_out)
    refuse_missing_test(found, given, place=place, there=f" of {listed}", way_out=way_out)
    used = {name for names in found.values() for name in names}
    if left_out := sorted(set(parts) - used):
        log.warning("parts of no role are left out: %s", " ".join(left_out))
    return found


def _audio(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in _AUDIO)


def _find_bad_audio(folder: Path, num_jobs: int) -> None:
    """Raise DataError where a recipe may have failed on audio, whose file it does not name."""
    problems = audio_problems(dict.fromkeys(sorted(_audio(folder)), "audio"), num_jobs)
    report(problems, place=folder, way_out="replace the files, or leave them out")


def _note_unused(folder: Path, used: Mapping[str, Any]) -> None:
    if unused := [path for path in _audio(folder) if str(path) not in used]:
        message = "%d audio files are in no part that is used, such as %s"
        log.warning(message, len(unused), min(unused))


CORPUS = Corpus(name="", read=read, groups=("gender",))
