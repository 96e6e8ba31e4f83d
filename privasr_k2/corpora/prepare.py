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
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, open_text, read_lines, write_json, write_text
from privasr_k2.text.entities import moved

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

_VARIANT = re.compile(r"(?<=.)\(\w+\)$")
log = logging.getLogger(__name__)


def prepare(
    corpus: Corpus,
    given: CorpusInput,
    *,
    lm_text: Sequence[Path] = (),
    lexicon: Path | None = None,
) -> dict[str, Any]:
    """Write the manifests of ``corpus`` to ``given.out_dir``, whole or not at all, and return what
    corpus.json holds.

    Args:
        corpus: its definition.
        given: where it is and where it goes, with its options.
        lm_text: files to take instead of the corpus's own text for language models.
        lexicon: a file to take instead of the corpus's own lexicon.

    Raises:
        DataError: all problems of the corpus at once.
    """
    if given.raw_dir is not None:
        _refuse_inside(given.out_dir, given.raw_dir)
    left_out = not_scored(given.option("not_scored", ""), corpus.normalize)
    corpus = replace(corpus, scored_units={**corpus.scored_units, **left_out})
    with atomic_path(given.out_dir) as folder:
        folder.mkdir()
        given = replace(given, out_dir=folder)
        cuts = corpus.read(given)
        unknown = sorted(set(cuts) - set(ROLES))
        if unknown:
            raise DataError(
                f"corpus {corpus.name}",
                f"the roles {' '.join(ROLES)}",
                f"{' '.join(unknown)}",
                "rename the roles",
            )
        drop_empty = given.flag("drop_empty")
        words = {
            role: _normalized(cuts[role], role, corpus, drop_empty and role != "pool")
            for role in ROLES
            if role in cuts
        }
        check_cuts(
            words,
            sampling_rate=corpus.sampling_rate,
            max_characters_per_second=given.number(
                "max_characters_per_second", corpus.max_characters_per_second
            ),
            num_jobs=given.num_jobs,
            place=given.raw_dir or f"corpus {corpus.name}",
        )
        if not corpus.name and given.raw_dir is not None:
            corpus = replace(corpus, name=given.raw_dir.resolve().name)
        about = describe(corpus, words)
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


def _refuse_inside(out_dir: Path, raw_dir: Path) -> None:
    if out_dir.resolve().is_relative_to(raw_dir.resolve()):
        raise ConfigError(
            f"--out-dir {out_dir}",
            "a folder outside the corpus",
            f"one inside {raw_dir}, where nothing is ever written",
            "choose another folder with --work-dir",
        )


def not_scored(text: str, normalize: Callable[[str], str]) -> dict[str, str]:
    """The words of the option ``not_scored``, parted by commas, as :attr:`Corpus.scored_units`.

    They are left out of references and hypotheses when errors are counted: hesitations, for
    example.

    Raises:
        ConfigError: what is one word in the option is none, or several, in the transcripts.

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

    made = [_normalize_cut(cut, role, corpus) for cut in cuts]
    kept = [cut for cut in made if cut.supervisions[0].text] if drop_empty else made
    if len(kept) < len(made):
        log.warning("%d utterances without words were left out", len(made) - len(kept))
    return CutSet.from_cuts(kept)


def _normalize_cut(cut: Cut, role: str, corpus: Corpus) -> Cut:
    from lhotse.utils import fastcopy

    if len(cut.supervisions) != 1:
        raise DataError(
            cut.id,
            "one supervision in each cut",
            str(len(cut.supervisions)),
            "cut it in utterances",
        )
    supervision = cut.supervisions[0]
    found = supervision.text or ""
    text, custom = corpus.normalize(found), dict(supervision.custom or {})
    if "entities" in custom:
        entities = moved(found.split(), custom["entities"], len(text.split()), corpus.words)
        custom["entities"] = [list(entity) for entity in entities]
    if found != text and found.upper() != found:
        # Upper case only, as LibriSpeech's, tells no more than the normalized text does.
        custom.setdefault("cased", found)
    changed = fastcopy(
        supervision, text=text, speaker=corpus.user_of(supervision), custom=custom or None
    )
    return fastcopy(cut, supervisions=[changed], custom={"part": role, **(cut.custom or {})})


def _without_place(cut: Cut) -> Cut:
    from lhotse.utils import fastcopy

    return fastcopy(cut, custom={key: value for key, value in cut.custom.items() if key != "place"})


def describe(corpus: Corpus, cuts_by_role: Mapping[str, CutSet]) -> dict[str, Any]:
    """Return the content of corpus.json: the corpus's source and amounts."""
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
    counts: Counter[str] = Counter()
    for of_role in roles.values():
        counts.update(of_role["parts"])
    for part, expected in corpus.expected_utterances.items():
        if 0 < counts[part] != expected:
            log.warning(
                "%s has %d utterances of the %d of the official edition",
                part,
                counts[part],
                expected,
            )
    return {
        "name": corpus.name,
        "synthetic": corpus.synthetic
        or any(c.custom.get("synthetic") for cuts in cuts_by_role.values() for c in cuts),
        "sampling_rate": corpus.sampling_rate,
        "public_roles": list(corpus.public_roles),
        "scored_units": dict(corpus.scored_units),
        "unit": corpus.unit,
        "roles": roles,
    }


def _lexicon_lines(path: Path, normalize: Callable[[str], str]) -> Iterator[str]:
    """``word token token`` with words as in the transcripts, each pronunciation once, in the order
    found.

    ``WORD(2)`` is another pronunciation of WORD. An entry whose word is no single word (``<unk>``,
    ``!SIL``) is left out.
    """
    seen = set()
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(";;;"):
            continue
        word, *tokens = line.split()
        if not tokens:
            raise DataError(
                f"{path}:{number}",
                "a word and its tokens",
                repr(line),
                "add the tokens, or remove the line",
            )
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

    def changed() -> Iterator[str]:
        for _, line in lines:
            text = change(line)
            if text:
                counts["sentences"] += 1
                counts["words"] += text.count(" ") + 1
                yield text + "\n"

    with open_text(path, "w") as file:
        file.writelines(changed())
    return counts
