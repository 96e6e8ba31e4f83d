"""Training a class LM from marked text and lists of names, and its folder.

A folder holds ``root.arpa.gz``, ``sub/<CLASS>.txt`` and ``class_lm.json``, which is written last.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from privasr_k2.constraints import Checked, Count, Different, Natural, Share, ShareBelowOne, one_of
from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import atomic_path, read_json, write_json
from privasr_k2.lm.arpa import UNK, read_arpa, write_arpa
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.names import check_spoken, mention_places, mentions
from privasr_k2.lm.ngram import DISCOUNTINGS
from privasr_k2.lm.sub_lm import (
    KINDS,
    SubLm,
    make_sub_lm,
    mix_names,
    read_sub_lm,
    within,
    write_sub_lm,
)
from privasr_k2.lm.train import NgramConfig, train_ngram
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.tags import is_tag, tag_of, with_tags

log = logging.getLogger(__name__)

SPEC, ROOT, SUBS = "class_lm.json", "root.arpa.gz", "sub"
FORMAT = "privasr_k2 class LM 1"


@dataclass(frozen=True)
class ClassLmConfig(Checked):
    """How a class LM is trained; see ``conf/common.yaml#class_lm``."""

    classes: Annotated[list[str], MinLen(1), Different()]
    order: Count
    discounting: Annotated[str, one_of(*DISCOUNTINGS)]
    max_ngrams: Natural
    sub_lm: Annotated[str, one_of(*KINDS)]
    list_weight: Share
    unknown_mass: ShareBelowOne
    cut_history: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.classes:
            if not is_tag(tag_of(name)):
                raise ValueError(f"classes must be capital letters, and not UNK or S, got {name!r}")


def train_class_lm(
    texts: Sequence[TaggedText],
    vocabulary: Sequence[str],
    lists: Mapping[str, Mapping[tuple[str, ...], float]],
    config: ClassLmConfig,
    *,
    places: Mapping[str, Mapping[tuple[str, ...], str]] | None = None,
    dev: Sequence[TaggedText] = (),
) -> ClassLm:
    """The root model of the tagged text, and a sub-model of each class's names.

    Args:
        vocabulary: words that can be spoken; names with others are left out and logged.
        lists: for some classes, names and their probabilities.
        places: file and line of names of the lists, for the log and errors.
        dev: tagged held-out text, whose perplexity under the root model is logged.

    Raises:
        DataError: a class without a name of known words.
    """
    spoken = set(vocabulary)
    counts, marked = mentions(texts), mention_places(texts)
    subs = {}
    for kind in config.classes:
        names = mix_names(counts.get(kind, {}), lists.get(kind, {}), config.list_weight)
        listed = (places or {}).get(kind, {})
        unlisted = {name: at for name, at in marked.get(kind, {}).items() if name not in listed}
        check_spoken(kind, names, spoken, {**listed, **unlisted})
        subs[kind] = _sub_lm(kind, within(names, spoken), config, _place(texts, kind))
    root = train_ngram(
        [with_tags(text).words for text in texts],
        [*vocabulary, *map(tag_of, config.classes)],
        NgramConfig(
            config.order, config.discounting, config.max_ngrams, text="train", train_repeat=1
        ),
        held_out=[with_tags(text).words for text in dev],
    )
    return ClassLm(root, subs, cut_history=config.cut_history)


def _place(texts: Sequence[TaggedText], kind: str) -> str:
    """The class and the first place of its tag in the text."""
    tagged = (text.place for text in texts if text.place and tag_of(kind) in text.words)
    place = next(tagged, "")
    return f"{place} (class {kind})" if place else f"class {kind}"


def _sub_lm(
    kind: str, names: Mapping[tuple[str, ...], float], config: ClassLmConfig, place: str
) -> SubLm:
    sub = make_sub_lm(names, config.sub_lm, unknown_mass=config.unknown_mass, place=place)
    log.info(
        "class %s: %d names, %d states, %d arcs", kind, len(names), len(sub.finals), len(sub.labels)
    )
    return sub


def save_class_lm(folder: Path, lm: ClassLm) -> None:
    """Write a class LM's folder, atomically."""
    classes = {
        kind: {
            "tag": tag_of(kind),
            "sub_lm": f"{SUBS}/{kind}.txt",
            "states": len(sub.finals),
            "arcs": len(sub.labels),
            "words": len(set(sub.words) - {UNK}),
            "unknown_names": UNK in sub.words,
        }
        for kind, sub in lm.sub_lms.items()
    }
    root = {"root": ROOT, "order": lm.root.order, "ngrams": list(lm.root.counts)}
    spec = {"format": FORMAT, **root, "cut_history": lm.cut_history, "classes": classes}
    with atomic_path(folder) as temporary:
        (temporary / SUBS).mkdir(parents=True)
        for kind, sub in lm.sub_lms.items():
            write_sub_lm(sub_file(temporary, kind), sub)
        write_arpa(lm.root, temporary / ROOT)
        write_json(temporary / SPEC, spec)


def sub_file(folder: str | Path, kind: str) -> Path:
    """The file of a class's names in a class LM's folder."""
    return Path(folder) / SUBS / f"{kind}.txt"


def is_class_lm(folder: Path) -> bool:
    """Whether a folder is a class LM's."""
    return (folder / SPEC).is_file()


def load_class_lm(folder: Path) -> ClassLm:
    """Read and check the folder of :func:`save_class_lm`.

    Raises:
        DataError: a missing file or one of another kind, or a bad sub-model.
        GraphError: a root model that is no ARPA, lacks a class, or has one without a sub-model.
    """
    if not is_class_lm(folder):
        way_out = "make it with train_ngram --out-class-lm"
        raise DataError(folder / SPEC, "a class LM", "no such file", way_out)
    spec: Any = read_json(folder / SPEC)
    if (
        not isinstance(spec, dict)
        or spec.get("format") != FORMAT
        or not isinstance(spec.get("classes"), dict)
    ):
        raise DataError(folder / SPEC, f"format {FORMAT!r} and classes", "another file", "redo it")
    root = read_arpa(folder / ROOT)
    subs = {kind: read_sub_lm(sub_file(folder, kind)) for kind in spec["classes"]}
    tags = set(filter(is_tag, root.words))
    if lone := sorted(tags - {tag_of(kind) for kind in subs}):
        raise GraphError(
            folder / SPEC, "a sub-model of every class", f"none for {lone[0]}", "retrain"
        )
    return ClassLm(root, subs, cut_history=bool(spec.get("cut_history")), name=str(folder))
