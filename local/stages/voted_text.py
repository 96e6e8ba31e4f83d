"""Stage 10 of classlm: words of private text by votes of its users, and M1 of sanitized text.

Sanitizing replaces names; votes say which of the names on public lists, and of further public
words, many users have written or said. The mixture of both has two releases about the same people.
"""

from dataclasses import dataclass
from typing import Any

from local.stages import class_lms
from local.stages.class_lms import BASE, LmSystem
from local.stages.sanitized import PROTECTS, SanitizedOptions
from local.stages.voted_words import Lms, VoteOptions
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Delta, Finite, from_conf, option


@dataclass(frozen=True)
class VotedTextOptions(VoteOptions, SanitizedOptions):
    """Those of sanitized text, and of words by votes beside it."""

    word_votes: Finite | None = option(
        None, "epsilon of words of private text by votes: M1 is mixed with their LM, in one row")
    delta: Delta | None = from_conf("vote_words.delta", "delta of these votes")
    audit: bool = option(True, "audit the claim of these votes")


@dataclass
class TextLms(Lms):
    """LMs of votes upon one of sanitized text.

    Candidates are words of the public lists and of ``--word-list`` alone: words of the sanitized
    text tell who took part, which sanitizing does not hide.

    Attributes:
        text: what stages 0 to 6 have made.
    """

    text: Any = None

    @property
    def voters(self) -> dict[str, Any]:
        """Flags of the votes: the text whose names are replaced, and public candidates."""
        return {"in_private_text": self.text.part("background"),
                "in_public_lists": self.text.public_lists, "in_public_words": self.o.word_list}

    @property
    def dev(self) -> str:
        """The text that weights are chosen on; it counts as public."""
        return self.text.part("dev")


def only_released(r: Recipe, o: VotedTextOptions, released: bool) -> bool:
    """``released``, whether all words are; else --word-votes is refused: nothing would hold."""
    if o.word_votes is not None and not released:
        r.refuse("--word-votes", "a vocabulary of released words alone", "all private words",
                 "add --adapt-percent '' --original false, or --adapt-percent '' --max-epsilon X")
    return released


def word_lists(o: VotedTextOptions) -> list[str]:
    """Public words that votes may release."""
    return [str(o.word_list)] if o.word_votes is not None and o.word_list is not None else []


def add_voted(c: class_lms.Lms, o: VotedTextOptions) -> None:
    """M1 of sanitized text with words by votes, beside M1 without them; nothing if not asked."""
    if o.word_votes is None:
        return
    base = c.systems[BASE]
    declared = c.r.system(
        "voted/M1", label=f"M1, sanitized, with words at epsilon {o.word_votes:g}",
        setting="voted", model="M1", method="classlm", word_votes=o.word_votes,
        compare_with=[base.declared], protects=PROTECTS)
    lms = TextLms(c.r, o, c.s, c.lang, number=10, text=c.s)
    lm = lms.of_votes(declared, o.word_votes, base.lm)
    if c.s.am:  # as for M1 of sanitized text: what finds its words has no guarantee
        del declared.artifacts["privacy"]
    else:
        declared.add("privacy_words", declared.artifacts["privacy"])
        declared.add("privacy", c.s.privacy)
    declared.add("perplexity", f"{c.r.exp}/perplexity_test.json#{lm}")
    c.systems["voted", "M1"] = LmSystem("M1", declared, lm)
