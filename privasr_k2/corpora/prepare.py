"""From a corpus to a manifests folder: read, normalize, check, write."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.corpora.base import ROLES, Corpus, CorpusInput
from privasr_k2.data.manifests import check_cuts, save_cuts
from privasr_k2.data.problems import FILE, CorpusProblems
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, open_text, read_lines, write_json, write_text
from privasr_k2.text.entities import moved
from privasr_k2.text.languages import ENGLISH, language_code
from privasr_k2.text.normalize import CASES, in_case

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

_PROBABILITY = re.compile(r"[01]?\.\d+(e-?\d+)?", re.IGNORECASE)
_VARIANT = re.compile(r"(?<=.)\(\w+\)$")
log = logging.getLogger(__name__)


def prepare(
    corpus: Corpus,
    given: CorpusInput,
    *,
    lm_text: Sequence[Path] = (),
    lexicon: Path | None = None,
) -> dict[str, Any]:
    """Write the manifests to ``given.out_dir`` atomically, and return the content of corpus.json.

    Args:
        lm_text: files to take instead of the corpus's own text for language models.
        lexicon: a file to take instead of the corpus's own lexicon.

    Raises:
        DataError: all problems of the corpus at once; they stand in ``problems.tsv`` beside the
            manifests folder.
    """
    if given.raw_dir is not None:
        _refuse_inside(given.out_dir, given.raw_dir)
    listed = given.out_dir.with_name(FILE)
    listed.unlink(missing_ok=True)  # of an earlier attempt
    try:
        return _prepare(corpus, given, lm_text, lexicon)
    except CorpusProblems as error:
        raise error.write(listed) from None


def _prepare(
    corpus: Corpus, given: CorpusInput, lm_text: Sequence[Path], lexicon: Path | None
) -> dict[str, Any]:
    case = given.option("text_case", "", ("", *CASES))
    if case:
        change = in_case(corpus.normalize, case)
        units = {change(unit): change(scored) for unit, scored in corpus.scored_units.items()}
        corpus = replace(corpus, normalize=change, scored_units=units)
    left_out = not_scored(given.option("not_scored", ""), corpus.normalize)
    rate = int(given.number("sampling_rate", corpus.sampling_rate, least=1))
    language = given.option("language", corpus.language)
    corpus = replace(
        corpus,
        scored_units={**corpus.scored_units, **left_out},
        sampling_rate=rate,
        language=language_code(language, f"language={language}"),
    )
    with atomic_path(given.out_dir) as folder:
        folder.mkdir()
        given = replace(given, out_dir=folder)
        cuts = corpus.read(given)
        place: str | Path
        if unknown := sorted(set(cuts) - set(ROLES)):
            place, expected = f"corpus {corpus.name}", f"the roles {' '.join(ROLES)}"
            raise DataError(place, expected, " ".join(unknown), "rename the roles")
        drop_empty = given.flag("drop_empty")
        words = {
            role: _normalized(cuts[role], role, corpus, drop_empty and role != "pool")
            for role in ROLES
            if role in cuts
        }
        option, place = "max_characters_per_second", given.raw_dir or f"corpus {corpus.name}"
        densest = given.number(option, corpus.max_characters_per_second)
        check_cuts(
            words,
            rate,
            densest,
            num_jobs=given.num_jobs,
            place=place,
            needed_roles=corpus.needed_roles,
        )
        if not corpus.name:
            name = given.raw_dir.resolve().name if given.raw_dir is not None else "user"
            corpus = replace(corpus, name=given.option("name", name))
        about = {**describe(corpus, words), "text_case": case or case_of(words)}
        for role, of_role in words.items():
            save_cuts(map(_without_place, of_role), folder, role)
        lexicon = lexicon or corpus.lexicon(given)
        if lexicon is not None:
            write_text(folder / "lexicon.txt", "".join(_lexicon_lines(lexicon, corpus.normalize)))
        texts = list(lm_text) or corpus.lm_text(given)
        if texts:
            lines = (line for path in texts for line in read_lines(path))
            about["lm_text"] = _copy_text(lines, folder / "lm_text.txt.gz", corpus.normalize)
        write_json(folder / "corpus.json", about)
    return about


def case_of(cuts_by_role: Mapping[str, CutSet]) -> str:
    """The case of :data:`CASES` that all text is in."""
    texts = [cut.supervisions[0].text for cuts in cuts_by_role.values() for cut in cuts]
    cases = {"lower": str.lower, "upper": str.upper}
    whole = (name for name, change in cases.items() if all(t == change(t) for t in texts))
    return next(whole, "keep")


def _refuse_inside(out_dir: Path, raw_dir: Path) -> None:
    if out_dir.resolve().is_relative_to(raw_dir.resolve()):
        found = f"one inside {raw_dir}, where nothing is ever written"
        way_out = "choose another folder with --work-dir"
        raise ConfigError(f"--out-dir {out_dir}", "a folder outside the corpus", found, way_out)


def not_scored(text: str, normalize: Callable[[str], str]) -> dict[str, str]:
    """The comma-separated words of the option ``not_scored``, as :attr:`Corpus.scored_units`.

    Raises:
        ConfigError: an item that is not exactly one word in the transcripts.

    >>> not_scored("Uh,um", str.lower)
    {'uh': '', 'um': ''}
    """
    units = {}
    for word in text.split(",") if text else ():
        words = normalize(word).split()
        if len(words) != 1:
            expected, found = "single words parted by commas", f"{word!r}, in transcripts {words}"
            way_out = f"write {','.join(words)}" if words else "leave it out"
            raise ConfigError(f"--set not_scored={text}", expected, found, way_out)
        units[words[0]] = ""
    return units


def _normalized(cuts: CutSet, role: str, corpus: Corpus, drop_empty: bool) -> CutSet:
    from lhotse import CutSet

    normalized = [_normalize_cut(cut, role, corpus) for cut in cuts]
    kept = [cut for cut in normalized if cut.supervisions[0].text or not drop_empty]
    if dropped := len(normalized) - len(kept):
        log.warning("%d utterances without words were left out", dropped)
    return CutSet.from_cuts(kept)


def _normalize_cut(cut: Cut, role: str, corpus: Corpus) -> Cut:
    from lhotse.utils import fastcopy

    if len(cut.supervisions) != 1:
        expected = "one supervision in each cut"
        raise DataError(cut.id, expected, str(len(cut.supervisions)), "cut it in utterances")
    supervision = cut.supervisions[0]
    found = supervision.text or ""
    text, custom = corpus.normalize(found), dict(supervision.custom or {})
    if "entities" in custom:
        entities = moved(found.split(), custom["entities"], len(text.split()), corpus.words)
        custom["entities"] = [list(entity) for entity in entities]
    if found != text and found.upper() != found:
        # Upper case only, as LibriSpeech's, tells no more than the normalized text does.
        custom.setdefault("cased", found)
    said = dict(text=text, speaker=corpus.user_of(supervision))
    changed = fastcopy(supervision, **said, custom=custom or None)
    return fastcopy(cut, supervisions=[changed], custom={"part": role, **(cut.custom or {})})


def _without_place(cut: Cut) -> Cut:
    from lhotse.utils import fastcopy

    return fastcopy(cut, custom={key: value for key, value in cut.custom.items() if key != "place"})


def describe(corpus: Corpus, cuts_by_role: Mapping[str, CutSet]) -> dict[str, Any]:
    """The content of corpus.json: the corpus's source and amounts."""
    roles = {}
    for role, cuts in cuts_by_role.items():
        parts = Counter(cut.custom["part"] for cut in cuts)
        speakers = {cut.supervisions[0].speaker for cut in cuts}
        roles[role] = {
            "utterances": len(cuts),
            "hours": round(sum(cut.duration for cut in cuts) / 3600, 4),
            "speakers": len(speakers),
            "parts": dict(sorted(parts.items())),
            "text_only": all(cut.custom.get("text_only", False) for cut in cuts),
        }
    counts = Counter(cut.custom["part"] for cuts in cuts_by_role.values() for cut in cuts)
    for part, expected in corpus.expected_utterances.items():
        if 0 < counts[part] != expected:
            message = "%s has %d utterances of the %d of the official edition"
            log.warning(message, part, counts[part], expected)
    some = any(cut.custom.get("synthetic") for cuts in cuts_by_role.values() for cut in cuts)
    return {
        "name": corpus.name,
        "synthetic": corpus.synthetic or some,
        "license": corpus.license,
        **({} if corpus.language == ENGLISH else {"language": corpus.language}),
        "sampling_rate": corpus.sampling_rate,
        "public_roles": list(corpus.public_roles),
        "scored_units": dict(corpus.scored_units),
        "unit": corpus.unit,
        "groups": list(corpus.groups),
        "train_groups": list(corpus.train_groups),
        "roles": roles,
    }


def _lexicon_lines(path: Path, normalize: Callable[[str], str]) -> Iterator[str]:
    """``word token token``, each once; ``WORD(2)`` is WORD; ``<unk>`` and its like are left out."""
    seen = set()
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(";;;"):
            continue
        word, *tokens = line.split()
        if not tokens:
            way_out = "add the tokens, or remove the line"
            raise DataError(f"{path}:{number}", "a word and its tokens", repr(line), way_out)
        if _PROBABILITY.fullmatch(tokens[0]):
            found = f"the probability {tokens[0]}, as in Kaldi's lexiconp.txt"
            way_out = "give lexicon.txt, or take the second column out"
            raise DataError(f"{path}:{number}", f"the tokens of {word}", found, way_out)
        words = normalize(_VARIANT.sub("", word)).split()
        entry = f"{' '.join([*words, *tokens])}\n"
        if len(words) == 1 and entry not in seen:
            seen.add(entry)
            yield entry


def _copy_text(
    lines: Iterable[tuple[int, str]], path: Path, change: Callable[[str], str]
) -> dict[str, int]:
    """Write the changed lines that are not empty; count them and their words."""
    counts = {"sentences": 0, "words": 0}
    with open_text(path, "w") as file:
        for text in filter(None, (change(line) for _, line in lines)):
            counts["sentences"] += 1
            counts["words"] += text.count(" ") + 1
            file.write(text + "\n")
    return counts
