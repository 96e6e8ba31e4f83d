"""Files in the layouts that icefall's scripts write: lang folders and HLG.pt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from privasr_k2.graph.lang import symbols_text

SPECIAL = (("!SIL", "SIL"), ("<SPOKEN_NOISE>", "SPN"), ("<UNK>", "SPN"))
PHONES = "ANN AE1 N\nBOB B AA1 B\nCALL K AO1 L\nCALL K AO0 L\nLEE L IY1\nLEA L IY1\nLEAN L IY1 N\n"


def entries_of(lexicon: str) -> list[tuple[str, tuple[str, ...]]]:
    """The entries of lines of text, in their order."""
    return [(word, tuple(spelled)) for word, *spelled in map(str.split, lexicon.splitlines())]


def with_marks(
    entries: Sequence[tuple[str, tuple[str, ...]]],
) -> tuple[list[tuple[str, tuple[str, ...]]], int]:
    """Entries with disambiguation symbols, and the largest one."""
    count = Counter(spelled for _, spelled in entries)
    prefixes = {spelled[:n] for _, spelled in entries for n in range(1, len(spelled))}
    used: Counter[tuple[str, ...]] = Counter()
    marked = []
    for word, spelled in entries:
        if count[spelled] > 1 or spelled in prefixes:
            used[spelled] += 1
            spelled = (*spelled, f"#{used[spelled]}")
        marked.append((word, spelled))
    return marked, max(used.values(), default=0)


def write_lang(
    folder: Path,
    lexicon: str = PHONES,
    *,
    tokens: Sequence[str] = (),
    silence: float | None = 0.5,
    special: Sequence[tuple[str, str]] = SPECIAL,
) -> Path:
    """A lang folder: ``prepare_lang.py``'s with silence, else ``prepare_lang_bpe.py``'s.

    Args:
        tokens: in their order, the blank first; by default ``<eps>`` and those of the lexicon.
    """
    folder.mkdir(parents=True)
    entries = [(word, (token,)) for word, token in special] + entries_of(lexicon)
    marked, most = with_marks(entries)
    tokens = tokens or ["<eps>", *sorted({token for _, spelled in entries for token in spelled})]
    symbols = [*tokens, *(f"#{n}" for n in range(most + 1))]
    words = ["<eps>", *sorted({word for word, _ in entries}), "#0", "<s>", "</s>"]
    (folder / "tokens.txt").write_text(symbols_text(symbols))
    (folder / "words.txt").write_text(symbols_text(words))
    for name, kept in (("lexicon.txt", entries), ("lexicon_disambig.txt", marked)):
        lines = "".join(f"{word} {' '.join(spelled)}\n" for word, spelled in kept)
        (folder / name).write_text(lines)
    ids = {token: n for n, token in enumerate(symbols)}, {word: n for n, word in enumerate(words)}
    for name, kept in (("L.pt", entries), ("L_disambig.pt", marked)):
        L = lexicon_fsa(kept, *ids, silence=silence, loops="disambig" in name)
        torch.save(L.as_dict(), str(folder / name))
    return folder


def lexicon_fsa(
    entries: Sequence[tuple[str, tuple[str, ...]]],
    token_ids: dict[str, int],
    word_ids: dict[str, int],
    *,
    silence: float | None,
    loops: bool,
) -> Any:
    """L as k2's automaton: words begin and end in one state, maybe with SIL behind them."""
    import k2

    loop, pause, free = (0, -1, 1) if silence is None else (1, 2, 3)
    ends = {loop: 0.0}
    arcs: list[tuple[int, int, int, int, float]] = []
    if silence is not None:
        ends = {loop: math.log(1 - silence), pause: math.log(silence)}
        arcs += [(0, state, 0, 0, score) for state, score in ends.items()]
        arcs.append((pause, loop, token_ids["SIL"], 0, 0.0))
    for word, spelled in entries:
        source, said = loop, word_ids[word]
        for token in spelled[:-1]:
            arcs.append((source, free, token_ids[token], said, 0.0))
            source, said, free = free, 0, free + 1
        arcs += [(source, end, token_ids[spelled[-1]], said, cost) for end, cost in ends.items()]
    if loops:
        arcs.append((loop, loop, token_ids["#0"], word_ids["#0"], 0.0))
    arcs.append((loop, free, -1, -1, 0.0))
    lines = [" ".join(map(str, arc)) for arc in sorted(arcs, key=lambda arc: arc[0])]
    return k2.Fsa.from_str("\n".join([*lines, str(free)]), acceptor=False)


def compile_hlg(lang: Path, G: str, *, modified: bool = False) -> Any:
    """HLG as icefall's ``compile_hlg.py`` makes it, of G in OpenFst's text format."""
    import k2

    tokens = k2.SymbolTable.from_file(str(lang / "tokens.txt"))
    words = k2.SymbolTable.from_file(str(lang / "words.txt"))
    first_mark = tokens["#0"]
    L = k2.arc_sort(k2.Fsa.from_dict(torch.load(str(lang / "L_disambig.pt"), weights_only=False)))
    LG = k2.connect(k2.compose(L, k2.arc_sort(k2.Fsa.from_openfst(G, acceptor=False))))
    LG = k2.connect(k2.determinize(LG))
    labels = LG.labels.clone()
    labels[labels >= first_mark] = 0
    LG.labels = labels
    LG.aux_labels.values[LG.aux_labels.values >= words["#0"]] = 0
    LG = k2.connect(k2.remove_epsilon(LG))
    LG.aux_labels = LG.aux_labels.remove_values_eq(0)
    H = k2.ctc_topo(first_mark - 1, modified=modified)
    return k2.arc_sort(k2.connect(k2.compose(H, k2.arc_sort(LG), inner_labels="tokens")))
