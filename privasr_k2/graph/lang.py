"""The language folder: the tokens of an acoustic model, the words, and their spellings."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.fileio import read_lines, read_yaml
from privasr_k2.text.normalize import normalize_english

BLANK, EPSILON, BACKOFF = "<blk>", "<eps>", "#0"


@dataclass(frozen=True)
class Silence:
    """A token that may stand before the first word and behind each word, as in icefall's phones.

    Args:
        token: its name.
        prob: at each of these places, above 0 and below 1.
    """

    token: str
    prob: float


@dataclass(frozen=True, eq=False)
class Lang:
    """Content of a language folder.

    Args:
        tokens: the C outputs of an acoustic model; token 0 is the blank.
        words: numbered from 0 (``<eps>``) to the last (``#0``, the back-off symbol).
        pronunciations: the entries of the lexicon in its order, one for each variant.
        dev_pronunciations: of words that only dev has: targets of the loss on dev, in no graph.
        silence: what may stand between words in graphs.
    """

    folder: Path
    tokens: tuple[str, ...]
    words: tuple[str, ...]
    pronunciations: tuple[tuple[str, tuple[str, ...]], ...]
    dev_pronunciations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    silence: Silence | None = None

    @property
    def num_tokens(self) -> int:
        """C, the blank included."""
        return len(self.tokens)

    @cached_property
    def token_ids(self) -> dict[str, int]:
        """The number of each token."""
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """The number of each word that can be spoken: without ``<eps>`` and ``#0``."""
        return {word: number for number, word in enumerate(self.words[1:-1], start=1)}

    @cached_property
    def first_pronunciations(self) -> dict[str, tuple[int, ...]]:
        """The numbers of each word's tokens, in its first variant; words of dev included."""
        spelled: dict[str, tuple[int, ...]] = {}
        for word, tokens in (*self.pronunciations, *self.dev_pronunciations):
            if word not in spelled:
                spelled[word] = tuple(self.token_ids[token] for token in tokens)
        return spelled

    def normalize(self, text: str) -> str:
        """As :func:`privasr_k2.text.normalize.normalize_english`, in the case of the words.

        That is upper case where no word has a letter of lower case, as in icefall's LibriSpeech.
        """
        text = normalize_english(text)
        return text.upper() if self._is_upper else text

    @cached_property
    def _is_upper(self) -> bool:
        spoken = "".join(self.word_ids)
        return spoken.upper() == spoken and spoken.lower() != spoken

    def encode(self, text: str) -> list[int]:
        """The token numbers of a normalized text, each word in its first variant: targets of CTC.

        Raises:
            DataError: a word that the lexicon does not have.
        """
        tokens: list[int] = []
        for word in text.split():
            if word not in self.first_pronunciations:
                place, way_out = self.folder / "lexicon.txt", "prepare the lang folder again"
                raise DataError(place, f"the word {word!r}", "no such entry", way_out)
            tokens.extend(self.first_pronunciations[word])
        return tokens


def load_lang(folder: str | Path) -> Lang:
    """Read a language folder and check that its files agree.

    Raises:
        GraphError: a missing first or last symbol, or a lexicon with unknown words or tokens.
        DataError: a malformed line, or text that is not UTF-8.
    """
    folder = Path(folder)
    tokens = read_symbols(folder / "tokens.txt")
    words = read_symbols(folder / "words.txt")
    theirs = f"prepare it again; of icefall: privasr import --raw-icefall-lang {folder}"
    if tokens[0] != BLANK:
        expected = f"{BLANK} as number 0"
        raise GraphError(folder / "tokens.txt", expected, repr(tokens[0]), theirs)
    if words[0] != EPSILON or words[-1] != BACKOFF:
        expected, found = f"{EPSILON} first and {BACKOFF} last", f"{words[0]!r} and {words[-1]!r}"
        raise GraphError(folder / "words.txt", expected, found, theirs)
    known_tokens, known_words = set(tokens[1:]), set(words[1:-1])
    entries = []
    for number, word, spelled in read_lexicon(folder / "lexicon.txt"):
        unknown = [token for token in spelled if token not in known_tokens]
        if unknown or word not in known_words:
            place = f"{folder / 'lexicon.txt'}:{number}"
            found = repr(unknown[0] if unknown else word)
            expected = "a word of words.txt and tokens of tokens.txt"
            raise GraphError(place, expected, found, "prepare the lang folder again")
        entries.append((word, spelled))
    dev_lexicon = folder / "dev_lexicon.txt"
    of_dev = read_lexicon(dev_lexicon) if dev_lexicon.exists() else []
    dev_entries = tuple((word, spelled) for _, word, spelled in of_dev)
    silence = _read_silence(folder / "lang.yaml", known_tokens)
    return Lang(folder, tokens, words, tuple(entries), dev_entries, silence)


def _read_silence(path: Path, tokens: Container[str]) -> Silence | None:
    """The key ``silence`` of ``lang.yaml``, if there is one."""
    found = read_yaml(path).get("silence") if path.is_file() else None
    if found is None:
        return None
    token, prob = (found.get("token"), found.get("prob")) if isinstance(found, dict) else (0, 0)
    if token not in tokens or not isinstance(prob, float) or not 0 < prob < 1:
        expected = "silence: {token: one of tokens.txt, prob: a number between 0 and 1}"
        raise GraphError(path, expected, repr(found)[:60], "prepare the lang folder again")
    return Silence(token, prob)


def read_symbols(path: Path) -> tuple[str, ...]:
    """The symbols of a ``SYMBOL NUMBER`` file, which must be numbered from 0 without gaps."""
    symbols: list[str] = []
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 2 or fields[1] != str(len(symbols)):
            expected = f"'SYMBOL {len(symbols)}'"
            raise DataError(f"{path}:{number}", expected, repr(line), "prepare it again")
        symbols.append(fields[0])
    if not symbols or len(set(symbols)) < len(symbols):
        found = "a repeated one" if symbols else "none"
        raise DataError(path, "different symbols", found, "prepare it again")
    return tuple(symbols)


def read_tokens(path: Path) -> list[str]:
    """The tokens of a ``tokens.txt`` of a model trained elsewhere, in their order.

    Token 0 is taken for the blank, whatever its name; disambiguation symbols (``#0``, ``#1``, ...)
    at the end are left out.
    """
    tokens: list[str] = []
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or fields[1] != str(len(tokens)):
            expected = f"a token and the number {len(tokens)}"
            raise DataError(f"{path}:{number}", expected, repr(line), "number from 0, in order")
        tokens.append(fields[0])
    while tokens and tokens[-1].startswith("#") and tokens[-1][1:].isdigit():
        tokens.pop()
    return [BLANK, *tokens[1:]]


def symbols_text(symbols: Iterable[str]) -> str:
    """The text of a ``SYMBOL NUMBER`` file.

    >>> symbols_text(["<blk>", "AA"])
    '<blk> 0\\nAA 1\\n'
    """
    return "".join(f"{symbol} {number}\n" for number, symbol in enumerate(symbols))


def lexicon_text(entries: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The text of ``WORD token token...`` lines.

    >>> lexicon_text([("ab", ("A", "B"))])
    'ab A B\\n'
    """
    return "".join(f"{word} {' '.join(tokens)}\n" for word, tokens in entries)


def read_lexicon(
    path: Path, only: Container[str] | None = None
) -> list[tuple[int, str, tuple[str, ...]]]:
    """The entries of ``WORD token token...`` lines with their line numbers.

    ``WORD(2)`` is a variant of ``WORD``. Lines that are blank or begin with ``;;;`` are skipped.

    Args:
        only: words in lower case; lines of others are skipped unread.

    Raises:
        DataError: a word without tokens.
    """
    entries = []
    for number, line in read_lines(path):
        if only is not None:
            head = "".join(line.split(None, 1)[:1]).lower()
            if head not in only and head.rpartition("(")[0] not in only:
                continue
        fields = line.split()
        if not fields or fields[0].startswith(";;;"):
            continue
        if len(fields) < 2:
            expected, way_out = "a word and its tokens", "add the tokens, or take it out"
            raise DataError(f"{path}:{number}", expected, repr(line), way_out)
        word, bracket, variant = fields[0].rpartition("(")
        is_variant = bracket and word and variant[:-1].isdigit() and variant.endswith(")")
        entries.append((number, word if is_variant else fields[0], tuple(fields[1:])))
    return entries


def check_same_tokens(
    model_tokens: Sequence[str] | None, graph_tokens: Sequence[str], *, model: Path, graph: Path
) -> None:
    """Refuse an acoustic model and a graph of different tokens.

    Raises:
        GraphError: the first token in which they differ.
    """
    if model_tokens is None or tuple(model_tokens) == tuple(graph_tokens):
        return
    pairs = zip(list(model_tokens) + [None] * len(graph_tokens), graph_tokens)  # type: ignore[list-item]
    differing = next((n for n, (a, b) in enumerate(pairs) if a != b), len(graph_tokens))
    found = model_tokens[differing] if differing < len(model_tokens) else "no such token"
    wanted = graph_tokens[differing] if differing < len(graph_tokens) else "no such token"
    expected = f"the graph's token {differing}, {wanted!r}, in the model too"
    way_out = "train the model and compile the graph with the same lang folder"
    raise GraphError(f"{model} and {graph}", expected, repr(found), way_out)


def parse_units(units: str) -> tuple[str, int]:
    """``phone``, ``char``, ``tokenizer`` or ``bpe_N`` as a kind and a size (0: there is none).

    >>> parse_units("bpe_500")
    ('bpe', 500)
    """
    kind, _, size = units.partition("_")
    if units in ("phone", "char", "tokenizer"):
        return units, 0
    if kind == "bpe" and size.isdigit() and int(size) > 1:
        return "bpe", int(size)
    expected = "phone, char, tokenizer or bpe_N"
    raise ConfigError("units", expected, repr(units), "choose one of them")
