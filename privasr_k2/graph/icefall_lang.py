"""icefall's lang folders (``lang_phone``, ``lang_bpe_500``, ...) as language folders of ours.

Tokens and words keep their numbers. What differs: the blank is called ``<blk>``, disambiguation
symbols of tokens are made anew when a graph is compiled, ``<s>`` and ``</s>`` behind ``#0`` go, and
optional silence is noted in ``lang.yaml``.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from privasr_k2.errors import GraphError
from privasr_k2.fileio import atomic_path, write_text
from privasr_k2.graph.g2p import ARPABET
from privasr_k2.graph.k2_files import SavedFsa, read_fsa
from privasr_k2.graph.lang import (
    BACKOFF,
    BLANK,
    EPSILON,
    Silence,
    lexicon_text,
    load_lang,
    read_lexicon,
    read_symbols,
    symbols_text,
)

LEXICONS, FSTS, PIECES = (
    ("lexicon.txt", "lexicon_disambig.txt"),
    ("L.pt", "L_disambig.pt"),
    "bpe.model",
)
_ENDS = ("<s>", "</s>")
_FORM = "a lexicon of icefall's form"
_MAKE = "make the folder with icefall's local/prepare_lang.py or prepare_lang_bpe.py"
Entries = list[tuple[str, tuple[str, ...]]]


def import_icefall_lang(source: Path, folder: Path) -> dict[str, Any]:
    """Write a language folder with icefall's tokens, words and pronunciations, all or nothing.

    Args:
        source: with ``tokens.txt``, ``words.txt``, and ``lexicon.txt``, ``lexicon_disambig.txt``,
            ``L.pt`` or ``L_disambig.pt``; with several of them, all must have the same entries.

    Returns:
        The content of ``lang.yaml``.

    Raises:
        GraphError: symbols out of icefall's order, no disambiguation symbols, or a lexicon of other
            words or tokens.
        DataError: a missing or damaged file; a pickle that would run code.
    """
    tokens, words = (
        read_icefall_tokens(source / "tokens.txt"),
        read_icefall_words(source / "words.txt"),
    )
    lexicons = {name: source / name for name in LEXICONS if (source / name).is_file()}
    fsts = {name: source / name for name in FSTS if (source / name).is_file()}
    entries, silence, of = None, None, ""
    for name, path in lexicons.items():
        entries, of = _same(entries, _lexicon(path, tokens, words), path, of), of or name
    for name, path in fsts.items():
        found, silence = lexicon_of_fst(read_fsa(path), tokens, words, path)
        entries, of = _same(entries, found, path, of), of or name
    if entries is None:
        expected = f"one of {' '.join((*LEXICONS, *FSTS))}"
        raise GraphError(source, expected, "none of them", _MAKE)
    if not fsts and "SIL" in tokens:
        expected = "L.pt or L_disambig.pt, which tell whether SIL may stand between words"
        raise GraphError(source, expected, "neither", _MAKE)
    has_pieces = (source / PIECES).is_file()
    info = _about(tokens, words, entries, silence, has_pieces=has_pieces)
    with atomic_path(folder) as temporary:
        temporary.mkdir(parents=True)
        write_text(temporary / "tokens.txt", symbols_text(tokens))
        write_text(temporary / "words.txt", symbols_text(words))
        write_text(temporary / "lexicon.txt", lexicon_text(entries))
        write_text(temporary / "lang.yaml", yaml.safe_dump(info, sort_keys=False))
        if has_pieces:
            shutil.copyfile(source / PIECES, temporary / PIECES)
        load_lang(temporary)
    return info


def read_icefall_tokens(path: Path) -> tuple[str, ...]:
    """The tokens without disambiguation symbols; the blank, token 0, as ``<blk>``.

    Raises:
        GraphError: another token 0, or no ``#0 #1 ...`` at the end.
    """
    symbols = read_symbols(path)
    if symbols[0] not in (BLANK, EPSILON):
        expected = f"{BLANK} or {EPSILON} as number 0, the blank of CTC"
        raise GraphError(path, expected, repr(symbols[0]), _MAKE)
    is_mark = [symbol[:1] == "#" and symbol[1:].isdigit() for symbol in symbols]
    size = is_mark.index(True) if True in is_mark else len(symbols)
    if list(symbols[size:]) != [f"#{n}" for n in range(len(symbols) - size)] or not any(is_mark):
        found = " ".join(symbols[size : size + 4]) or "none"
        expected = "the disambiguation symbols #0 #1 ... behind the tokens"
        raise GraphError(path, expected, found, _MAKE)
    if BLANK in symbols[1:size]:
        raise GraphError(path, f"{BLANK} as number 0 alone", "it again", _MAKE)
    return (BLANK, *symbols[1:size])


def read_icefall_words(path: Path) -> tuple[str, ...]:
    """``<eps>``, the words, and ``#0``; without ``<s>`` and ``</s>``, which follow.

    Raises:
        GraphError: another order, or no ``#0``.
    """
    symbols = read_symbols(path)
    size = symbols.index(BACKOFF) if BACKOFF in symbols else -1
    if symbols[0] != EPSILON or size < 0 or symbols[size + 1 :] not in ((), _ENDS):
        expected = f"{EPSILON} as number 0, and behind the words {BACKOFF} {' '.join(_ENDS)}"
        found = f"{symbols[0]} ... {' '.join(symbols[-3:])}"
        raise GraphError(path, expected, found, _MAKE)
    return symbols[: size + 1]


def lexicon_of_fst(
    fsa: SavedFsa, tokens: Sequence[str], words: Sequence[str], path: Path
) -> tuple[Entries, Silence | None]:
    """The entries of ``L`` or ``L_disambig`` in its order, and its optional silence.

    Labels from C on are disambiguation symbols.

    Raises:
        GraphError: words beyond ``words.txt``, or no lexicon of icefall's form.
    """
    spoken = np.diff(fsa.splits)
    if int(fsa.words.max(initial=0)) >= len(words) or int(spoken.max()) > 1:
        expected = f"word numbers below {len(words)}, one on an arc"
        way_out = "give the words.txt that it was made with"
        raise GraphError(path, expected, str(int(fsa.words.max(initial=0))), way_out)
    word_of = np.zeros(len(spoken), dtype=np.int64)
    word_of[spoken > 0] = fsa.words
    [*loops] = np.unique(fsa.sources[fsa.labels < 0]).tolist()
    if len(loops) != 1:
        raise GraphError(path, _FORM, f"{len(loops)} states that end", _MAKE)
    loop, pause, silence = loops[0], -1, None
    if loop != 0:
        pause, silence = _silence(fsa, loop, tokens, path)
    # Without the end, the start, the ways to silence, and the loop of #0.
    is_loop = (word_of == len(words) - 1) & (fsa.sources == fsa.targets)
    kept = (fsa.labels >= 0) & ~is_loop & ~np.isin(fsa.targets, [pause])
    kept &= ~np.isin(fsa.sources, [pause, *([0] if loop else [])])
    columns = (fsa.sources[kept], fsa.targets[kept], fsa.labels[kept], word_of[kept])
    begins: list[tuple[int, int, int]] = []
    following: dict[int, tuple[int, int]] = {}
    for source, target, label, word in zip(*(column.tolist() for column in columns)):
        if (source == loop) != (word > 0) or label == 0 or source in following:
            raise GraphError(path, _FORM, f"other arcs out of state {source}", _MAKE)
        if word:
            begins.append((target, label, word))
        else:
            following[source] = (target, label)
    entries = []
    for state, label, word in begins:
        labels = [label]
        while state != loop:
            if state not in following:
                raise GraphError(path, _FORM, f"a dead or shared state {state}", _MAKE)
            state, label = following.pop(state)
            labels.append(label)
        spelled = tuple(tokens[label] for label in labels if label < len(tokens))
        if not spelled:
            raise GraphError(path, _FORM, f"no tokens of {words[word]!r}", _MAKE)
        entries.append((words[word], spelled))
    return entries, silence


def _silence(fsa: SavedFsa, loop: int, tokens: Sequence[str], path: Path) -> tuple[int, Silence]:
    """The state before optional silence, and the silence."""
    starts = np.flatnonzero(fsa.sources == 0)
    ways = dict(zip(fsa.targets[starts].tolist(), fsa.scores[starts].tolist()))
    [*pauses] = sorted(set(ways) - {loop})
    leaving = np.flatnonzero(fsa.sources == pauses[0]) if len(pauses) == 1 else []
    fits = len(starts) == 2 and not fsa.labels[starts].any() and len(leaving) == 1
    if not fits or fsa.targets[leaving[0]] != loop or not 0 < fsa.labels[leaving[0]] < len(tokens):
        raise GraphError(path, _FORM, "a start that is neither a word's nor silence's", _MAKE)
    prob = math.exp(ways[pauses[0]])
    if not 0 < prob < 1 or abs(math.exp(ways.get(loop, 1.0)) - (1 - prob)) > 1e-4:
        raise GraphError(path, "a probability of silence", f"{prob:.4g}", _MAKE)
    return pauses[0], Silence(tokens[int(fsa.labels[leaving[0]])], round(prob, 6))


def _lexicon(path: Path, tokens: Sequence[str], words: Sequence[str]) -> Entries:
    """The entries of a text file, without disambiguation symbols at their ends."""
    known_tokens, known_words, entries = set(tokens[1:]), set(words[1:-1]), []
    for number, word, spelled in read_lexicon(path):
        while len(spelled) > 1 and spelled[-1][:1] == "#" and spelled[-1][1:].isdigit():
            spelled = spelled[:-1]
        unknown = [token for token in spelled if token not in known_tokens]
        if unknown or word not in known_words:
            found = f"the token {unknown[0]!r}" if unknown else f"the word {word!r}"
            expected, way_out = (
                "words of words.txt and tokens of tokens.txt",
                "take all of one folder",
            )
            raise GraphError(f"{path}:{number}", expected, found, way_out)
        entries.append((word, spelled))
    return entries


def _same(known: Entries | None, found: Entries, path: Path, of: str) -> Entries:
    """The entries that were known; refuse others in another file."""
    if known is None:
        return found
    differing = Counter(found)
    differing.subtract(Counter(known))
    other = next((entry for entry, count in differing.items() if count), None)
    if other is not None:
        expected, spelled = f"the entries of {of}", " ".join((other[0], *other[1]))
        more = "more" if differing[other] > 0 else "less"
        raise GraphError(path, expected, f"{spelled!r} once {more}", _MAKE)
    return known


def _about(
    tokens: Sequence[str],
    words: Sequence[str],
    entries: Entries,
    silence: Silence | None,
    *,
    has_pieces: bool,
) -> dict[str, Any]:
    """The content of ``lang.yaml``; ``cmudict`` and ``g2p`` pronounce words to come."""
    pieces = any(token.startswith("▁") for token in tokens)
    single = {token for _, spelled in entries for token in spelled}
    arpabet = single - {"SIL", "SPN"} <= set(ARPABET)
    units = f"bpe_{len(tokens)}" if has_pieces else "char" if pieces else "phone"
    about: dict[str, Any] = {
        "units": units,
        "num_tokens": len(tokens),
        "num_words": len({word for word, _ in entries}),
        "num_pronunciations": len(entries),
        "words_from": {"icefall": len(words) - 2},
        "cmudict": "auto" if units == "phone" and arpabet else "none",
        "g2p": "espeak" if units == "phone" and arpabet else "none",
    }
    if silence is not None:
        about["silence"] = {"token": silence.token, "prob": silence.prob}
    return about
