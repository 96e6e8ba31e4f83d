"""Sanitizing as a release: its spending, and its files, written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from privasr_k2.constraints import Checked, Count, Natural, Share, one_of
from privasr_k2.fileio import atomic_path, open_text, read_json, write_json
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.people import People
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.replacement import ReplacementGuarantee, uniform_replacement
from privasr_k2.privacy.spending import Spending
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.sanitize import METHODS, Replacement, anonymous, replace_words
from privasr_k2.text.tagged_files import write_tagged
from privasr_k2.text.tags import with_tags, without_entities

SANITIZED, ABOUT = "sanitized.jsonl.gz", "about.json"
_WHAT = {
    "replace": "replaced word by word",
    "tag": "replaced by the tag of their class",
    "delete": "left out",
}


@dataclass(frozen=True)
class SanitizeConfig(Checked):
    """How text is sanitized; defaults in ``conf/classlm.yaml#sanitize``.

    Args:
        data: whose releases are added up: a corpus and its part.
        keep_prob: the probability that a word is kept.
        mentions, words_per_mention: bounds on kept words of one utterance (document).
        utterances_per_user: bound on utterances of a user that keep words, for a guarantee per
            user; ``None``: no bound and no such guarantee.
    """

    data: str
    method: Annotated[str, one_of(*METHODS)]
    keep_prob: Share
    consistency: Annotated[str, one_of("mention", "document")]
    mentions: Natural
    words_per_mention: Count
    utterances_per_user: Count | None
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.utterances_per_user is not None and self.consistency != "mention":
            raise ValueError("utterances_per_user must be null with consistency=document")


def guarantee(config: SanitizeConfig, sizes: Mapping[str, int]) -> ReplacementGuarantee:
    """The guarantee for every class: that of the longest list, whose kept words tell the most.

    Args:
        sizes: class -> number of different words on its list; empty where nothing is drawn.
    """
    return uniform_replacement(
        keep_probability=config.keep_prob if sizes else 0.0,
        num_names=max(sizes.values(), default=2),
        mentions=config.mentions,
        words_per_mention=config.words_per_mention,
        off_list="replaced",
        consistency="document" if config.consistency == "document" else "mention",
        utterances_per_user=config.utterances_per_user,
    )


def spending(config: SanitizeConfig, found: ReplacementGuarantee) -> Spending:
    """The entry of the ledger."""
    return Spending(
        data=config.data,
        released=f"sanitized text: names that were found are {_WHAT[config.method]}",
        unit=found.unit,
        units=None,
        relation=Relation.REPLACE_ONE,
        event=events.composed() if found.event is None else found.event,
        sampling="all texts once",
        delta=config.delta,
        does_not_cover=found.does_not_cover,
    )


def people_of(texts: Sequence[TaggedText], unit: str, source: Path | str) -> People | None:
    """The users behind the units of a guarantee; ``None`` where no text has a user.

    Args:
        unit: ``utterance``, ``document`` (a text without one is its own) or ``user``.

    Raises:
        DataError: some texts have a user, others have none.
    """
    if not any(text.user for text in texts):
        return None
    names = {"utterance": "id", "document": "document"}
    name = names.get(unit, "user")
    pairs = ((getattr(text, name) or text.id, text.user) for text in texts)
    return People.of(pairs, source=source)


def worth(config: SanitizeConfig, lists: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Settings and guarantee as plain values, independent of the text.

    ``epsilon_per_word`` is per class by its own list; the others are sums for the longest list, at
    delta 0.
    """
    sizes = {label: len(words) for label, words in lists.items()}
    bound = guarantee(config, sizes)
    of_class = {
        label: guarantee(config, {label: size}).epsilon_per_word for label, size in sizes.items()
    }
    unit = {"document": "document", "mention": "utterance"}[config.consistency]
    of_user = {} if bound.epsilon_per_user is None else {"epsilon_per_user": bound.epsilon_per_user}
    return {
        "method": config.method,
        "keep_prob": config.keep_prob if lists else 0.0,
        "consistency": config.consistency,
        "mentions": config.mentions,
        "words_per_mention": config.words_per_mention,
        "utterances_per_user": config.utterances_per_user,
        "words_on_lists": sizes,
        "epsilon_per_word": of_class,
        "epsilon_per_mention": bound.epsilon_per_mention,
        f"epsilon_per_{unit}": bound.epsilon_per_utterance,
        **of_user,
    }


def sanitize(
    out: Path,
    texts: Sequence[TaggedText],
    lists: Mapping[str, Sequence[str]],
    config: SanitizeConfig,
    begun: Release,
) -> None:
    """Write sanitized text to the folder ``out``, unless this release has, and finish the release.

    Args:
        texts: with entities.
        lists: class -> different words, for the method ``replace``.
        begun: the release; its noise is the same again after a kill.

    Raises:
        DataError: a class without a list.
        PrivacyError: the release is finished, and its files are gone.
    """
    about = out / ABOUT
    if not (about.exists() and read_json(about)["release"] == begun.entry.release):
        sanitized = anonymous(_sanitized(texts, lists, config, begun), begun.noise("order"))
        facts = worth(config, lists)
        if events.is_unprotected(begun.entry.spending.event):
            facts = {key: value for key, value in facts.items() if "epsilon" not in key}
        _write(out, sanitized, facts, begun.entry.release)
    begun.finish()


def _sanitized(
    texts: Sequence[TaggedText],
    lists: Mapping[str, Sequence[str]],
    config: SanitizeConfig,
    begun: Release,
) -> list[TaggedText]:
    if config.method == "tag":
        return [with_tags(text) for text in texts]
    if config.method == "delete":
        return [without_entities(text) for text in texts]
    bounds = (config.mentions, config.words_per_mention, config.utterances_per_user)
    how = Replacement(config.keep_prob, config.consistency == "document", *bounds)
    return replace_words(texts, lists, how, begun.noise)


def _write(out: Path, texts: Sequence[TaggedText], about: Mapping[str, Any], release: str) -> None:
    with atomic_path(out) as folder:
        folder.mkdir()
        write_tagged(folder / SANITIZED, texts)
        for file, of_file in (("text", texts), ("class_text", map(with_tags, texts))):
            with open_text(folder / f"{file}.txt.gz", "w") as lines:
                lines.writelines(" ".join(text.words) + "\n" for text in of_file if text.words)
        what = "sanitized, not private: names that were not found stay as they were said"
        write_json(folder / ABOUT, {"text": what, **about, "release": release})
