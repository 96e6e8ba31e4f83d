"""Spelling of words in tokens: phones from lexicons and espeak-ng, characters, or BPE pieces."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path
from privasr_k2.graph.g2p import ARPABET, espeak_pronunciations, ipa_pronunciations
from privasr_k2.graph.lang import read_lexicon

log = logging.getLogger(__name__)

WORD_START = "▁"  # SentencePiece's mark, used for characters too

Pronunciations = dict[str, list[tuple[str, ...]]]


@dataclass(frozen=True)
class Spellings:
    """The lexicon's content.

    Args:
        tokens: all tokens but the blank, in their order.
        variants: the spellings of each word.
        sources: numbers of words by source.
        made_up: words that no lexicon has, said by a G2P.
    """

    tokens: tuple[str, ...]
    variants: Pronunciations
    sources: Mapping[str, int]
    made_up: frozenset[str] = frozenset()

    @property
    def made_up_share(self) -> float:
        """Of all words, 0 to 1."""
        return len(self.made_up) / max(len(self.variants), 1)

    @property
    def from_lexicon(self) -> Set[str]:
        """Words that a pronunciation lexicon has; none where words are spelled as written."""
        return frozenset() if spell_words(self.tokens) else self.variants.keys() - self.made_up


def load_pronunciations(path: Path, only: Container[str] | None = None) -> Pronunciations:
    """A pronouncing dictionary, its variants together; ARPAbet vowels lose their stress digits.

    A token that begins with ``#`` starts a comment, as in CMUdict. Of words in lower case ``only``
    those are read, in any case.

    Raises:
        DataError: a word without tokens, or text that is not UTF-8.
    """
    pronunciations: Pronunciations = {}
    for _, word, tokens in read_lexicon(path, only):
        spelled = takewhile(lambda token: not token.startswith("#"), tokens)
        phones = tuple(_without_stress(token) for token in spelled)
        if phones and phones not in pronunciations.setdefault(word, []):
            pronunciations[word].append(phones)
    return pronunciations


def _in_lower_case(dictionary: Pronunciations) -> Pronunciations:
    lowered: Pronunciations = {}
    for word, variants in dictionary.items():
        known = lowered.setdefault(word.lower(), [])
        known.extend(phones for phones in variants if phones not in known)
    return lowered


def _without_stress(phone: str) -> str:
    return phone[:-1] if phone[-1:] in "012" and phone[:-1] in ARPABET else phone


def spell_words(tokens: Iterable[str]) -> bool:
    """Whether tokens join to words, as characters and pieces do; phones do not.

    >>> spell_words(["<blk>", "▁", "a"]), spell_words(["<blk>", "AA"])
    (True, False)
    """
    return any(token.startswith(WORD_START) for token in tokens)


def cmudict_path(setting: str) -> Path | None:
    """CMUdict's path: ``auto`` is pocketsphinx's copy, ``none`` is none, else a path.

    Raises:
        ConfigError: there is none.
    """
    if setting == "none":
        return None
    if setting != "auto":
        path = Path(setting)
    else:
        # Found, not imported: only the data file is used.
        spec = importlib.util.find_spec("pocketsphinx")
        origin = spec.origin if spec is not None else None
        path = Path(origin or "pocketsphinx").parent / "model" / "en-us" / "cmudict-en-us.dict"
    if not path.is_file():
        way_out = "install pocketsphinx, or --set cmudict=FILE or cmudict=none"
        raise ConfigError(f"cmudict={setting}", "CMUdict", f"no file {path}", way_out)
    return path


def spell_in_phones(
    must: Iterable[str],
    may: Iterable[str],
    *,
    corpus_lexicon: Path | None,
    cmudict: Path | None,
    g2p: str,
) -> Spellings:
    """Phones of words: from the corpus's own lexicon, then CMUdict, then espeak-ng.

    The last two are ARPAbet, and are not used where the corpus's lexicon is not. Case counts in the
    corpus's lexicon only.

    Args:
        must: words that need a pronunciation: of the training text, further text and name lists.
        may: words that are left out without a pronunciation.
        g2p: ``espeak``, ``none``, or ``espeak:LANGUAGE``: without a lexicon all words are said in
            IPA by that voice; the tokens are the phones of ``must``.

    Raises:
        DataError: words of ``must`` without pronunciation, with their number and the first ten.
    """
    must, may = sorted(set(must)), sorted(set(may))
    wanted = [*must, *(word for word in may if word not in set(must))]
    own = load_pronunciations(corpus_lexicon) if corpus_lexicon is not None else {}
    variants = {word: own[word] for word in wanted if word in own}
    sources = {"corpus": len(variants)}
    own_phones = {phone for entry in own.values() for phones in entry for phone in phones}
    made_up: Mapping[str, tuple[str, ...]] = {}
    voice = g2p.partition(":")[2]
    if voice and not own:
        made_up = ipa_pronunciations(wanted, voice)
        tokens: Sequence[str] = sorted({p for w in must if w in made_up for p in made_up[w]})
        if must:  # else whoever asks knows the tokens
            known = set(tokens)
            made_up = {word: said for word, said in made_up.items() if known.issuperset(said)}
        variants = {word: [phones] for word, phones in made_up.items()}
        sources["espeak"] = len(made_up)
    elif own_phones <= set(ARPABET):
        if cmudict is not None:
            unknown = [word for word in wanted if word not in variants]
            sought = {word.lower() for word in unknown}
            dictionary = _in_lower_case(load_pronunciations(cmudict, sought))
            unknown = [word for word in unknown if word.lower() in dictionary]
            variants.update({word: dictionary[word.lower()] for word in unknown})
            sources["cmudict"] = len(variants) - sources["corpus"]
        if g2p == "espeak":
            made_up = espeak_pronunciations(word for word in wanted if word not in variants)
            variants.update({word: [phones] for word, phones in made_up.items()})
            sources["espeak"] = len(made_up)
        tokens = ARPABET
    else:
        log.info("the corpus's lexicon has phones other than ARPAbet: only its own words are used")
        tokens = sorted(own_phones)
    missing = [word for word in must if word not in variants]
    if missing:
        listed = f"{' '.join(missing[:10])}{' ...' if len(missing) > 10 else ''}"
        place = corpus_lexicon or "the lexicon"
        expected = "a pronunciation of every word of the training text, further text and name lists"
        way_out = "add them to lexicon.txt, use g2p=espeak (ARPAbet only; without a lexicon "
        way_out += "g2p=espeak:LANGUAGE), or units=char or bpe_N"
        raise DataError(place, expected, f"none for {len(missing)} words: {listed}", way_out)
    sources["left out"] = len(wanted) - len(variants)
    ordered = {word: variants[word] for word in sorted(variants)}
    return Spellings(tuple(tokens), ordered, sources, frozenset(made_up))


def spell_in_characters(
    must: Iterable[str], may: Iterable[str], *, known: Iterable[str] | None = None
) -> Spellings:
    """Each word as a mark of its start and its characters.

    Words with a character outside of ``known`` (default: those of ``must``) are left out.

    >>> spell_in_characters(["ab"], ["ba", "x"]).variants
    {'ab': [('▁', 'a', 'b')], 'ba': [('▁', 'b', 'a')]}
    """
    must, may = set(must), set(may)
    characters = sorted(set("".join(must)) if known is None else set(known))
    usable = set(characters)
    words = sorted(word for word in must | may if usable.issuperset(word))
    return Spellings(
        (WORD_START, *characters),
        {word: [(WORD_START, *word)] for word in words},
        {"spelled": len(words), "left out": len(must | may) - len(words)},
    )


def train_bpe(sentences: Iterable[str], size: int, model: Path) -> None:
    """Train a SentencePiece BPE model whose piece 0 is the blank; deterministic.

    Raises:
        ConfigError: the text is too small for so many pieces.
    """
    import sentencepiece

    with atomic_path(model) as temporary, temporary.open("wb") as file:
        try:
            # The unknown piece is never an output, so its number 0 goes to the blank of CTC.
            blank = {"unk_id": 0, "unk_piece": "<blk>", "bos_id": -1, "eos_id": -1, "pad_id": -1}
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=file,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                num_threads=1,
                minloglevel=2,
                **blank,
            )
        except RuntimeError as error:
            expected = "a number of pieces that fits the text"
            found = str(error).split("] ")[-1].strip()
            way_out = "take another N, or units=char"
            raise ConfigError(f"units=bpe_{size}", expected, found, way_out) from error


def spell_in_pieces(must: Iterable[str], may: Iterable[str], model: Path) -> Spellings:
    """Each word as BPE pieces; words with unknown characters are left out.

    For models of upper-case pieces only (icefall's of LibriSpeech) words are put in upper case.
    """
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    words = sorted(set(must) | set(may))
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    letters = "".join(piece for piece in pieces[1:] if piece[:1] != "<")
    upper = not any(letter.islower() for letter in letters)
    encoded = processor.encode([word.upper() for word in words] if upper else words)
    unknown = processor.unk_id()
    pairs = zip(words, encoded)
    spelled = {word: numbers for word, numbers in pairs if numbers and unknown not in numbers}
    return Spellings(
        tuple(pieces[1:]),
        {word: [tuple(pieces[number] for number in numbers)] for word, numbers in spelled.items()},
        {"spelled": len(spelled), "left out": len(words) - len(spelled)},
    )
