"""Interface of corpora: a :class:`Corpus` holds the reader and the facts of a corpus.

A corpus is one Python file that exports ``CORPUS = Corpus(...)`` (``docs/new_corpus.md``).
Importing this module imports neither lhotse nor torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.plugins import import_file
from privasr_k2.text.languages import ENGLISH
from privasr_k2.text.normalize import normalize_english

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.supervision import SupervisionSegment

T = TypeVar("T")

GENERAL_OPTIONS = (
    *("allow_pipes", "drop_empty", "language", "max_characters_per_second", "not_scored"),
    *("sampling_rate", "text_case"),
)
"""Options of ``bin.prepare_corpus`` that every corpus takes."""

ROLES = ("train", "adapt", "dev", "test", "pool")
"""The parts that recipes know; the corpus's own names stand in ``cut.custom["part"]``."""


@dataclass(frozen=True)
class CorpusInput:
    """Arguments of :attr:`Corpus.read`, from ``bin.prepare_corpus``.

    Attributes:
        raw_dir: the user's corpus, read only; ``None`` where the corpus needs none.
        out_dir: the manifests folder under a temporary name; audio goes to ``out_dir / "audio"``.
        options: the words of ``--set``.
        config_files: the YAML layers of ``--config``.
        num_jobs: processes to use; must not change the result.
        files: role -> manifests or Kaldi data directories that the user names for it.
    """

    raw_dir: Path | None
    out_dir: Path
    options: Mapping[str, str]
    config_files: tuple[Path, ...]
    num_jobs: int
    files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def folder(self) -> Path:
        """``raw_dir``.

        Raises:
            DataError: it was not given, or is no folder.
        """
        expected = "the folder of the corpus"
        if self.raw_dir is None:
            raise DataError("--corpus-dir", expected, "nothing", "add --corpus-dir DIR")
        if not self.raw_dir.is_dir():
            found = "a file" if self.raw_dir.exists() else "nothing"
            raise DataError(self.raw_dir, expected, found, "correct --corpus-dir")
        return self.raw_dir

    def option(self, name: str, default: str, choices: tuple[str, ...] = ()) -> str:
        """The option ``name`` of ``--set``, or ``default``; one of ``choices``, if any."""
        value = self.options.get(name, default)
        if choices and value not in choices:
            way_out = f"write --set {name}={choices[0]}"
            raise ConfigError(f"--set {name}={value}", " or ".join(choices), repr(value), way_out)
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """The option ``name`` as ``true`` or ``false``."""
        return self.option(name, str(default).lower(), ("true", "false")) == "true"

    def number(self, name: str, default: float, *, least: float = 0.0) -> float:
        """The option ``name`` as a finite number of at least ``least``."""
        text = self.option(name, f"{default:g}")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            expected, way_out = f"a number of at least {least:g}", f"write --set {name}={default:g}"
            raise ConfigError(f"--set {name}={text}", expected, repr(text), way_out)
        return value

    def settings(self, cls: type[T]) -> T:
        """The configuration ``cls`` from the layers and the options that are not general.

        Raises:
            ConfigError: as :func:`privasr_k2.config.load`.
        """
        own = (
            f"{key}={value}" for key, value in self.options.items() if key not in GENERAL_OPTIONS
        )
        return config.load(cls, self.config_files, own)

    def refuse_unknown(self, *known: str) -> None:
        """Raise ConfigError for an option that is neither ``known`` nor general."""
        for name in self.options:
            if name not in (*known, *GENERAL_OPTIONS):
                expected = f"one of: {' '.join(known) or 'no option'}"
                raise ConfigError(f"--set {name}=...", expected, repr(name), "correct or remove it")


@dataclass(frozen=True)
class Corpus:
    """Reader and facts of a corpus.

    Attributes:
        name: lower case, as in ``egs/<name>``; empty: that of the corpus's folder.
        read: gives the cuts of each role of :data:`ROLES`. A cut holds one supervision with
            ``text`` as found and ``speaker``, and maybe ``cut.custom["part"]``, the name in tables.
            It has a recording, given features, or neither (``cut.custom["text_only"]`` is true).
        normalize: from text as found to words separated by single blanks.
        lexicon: the corpus's own lexicon, asked for after ``read``, as ``lm_text``.
        lm_text: files (``.txt`` or ``.txt.gz``) with one sentence a line, besides the transcripts.
        user_of: the unit of privacy of an utterance, written to ``supervision.speaker``.
        expected_utterances: part -> count in the official edition; other counts give a warning.
        public_roles: roles whose references ``wer`` may look at, too, to count false alarms of
            names. No guarantee depends on it.
        scored_units: recognized unit -> scored unit (TIMIT's 48 -> 39 phones); ``""``: not scored.
        unit: ``word`` or ``phone``, so that tables say WER or PER.
        groups: attributes of a supervision, or keys of its ``custom``, such as ``gender``: errors
            are also counted for each of their values.
        train_groups: further ones whose values depend on what train says. Where a system of a
            report claims a guarantee, its owner alone is told of them.
        sampling_rate: of the audio, in Hz; ``check_cuts`` reports another one.
        synthetic: whether the speech is made by a machine.
        license: of speech and text, for model cards; empty: not stated.
        max_characters_per_second: of normalized text, blanks included; ``check_cuts`` reports
            denser text. Fast English has about 20.
        language: as ``de`` (ISO 639); other than English, phones need a lexicon or a G2P of theirs.
        needed_roles: roles that may not be missing.
    """

    name: str
    read: Callable[[CorpusInput], dict[str, CutSet]]
    normalize: Callable[[str], str] = normalize_english
    lexicon: Callable[[CorpusInput], Path | None] = lambda given: None
    lm_text: Callable[[CorpusInput], list[Path]] = lambda given: []
    user_of: Callable[[SupervisionSegment], str] = lambda supervision: str(supervision.speaker)
    expected_utterances: Mapping[str, int] = field(default_factory=dict)
    public_roles: tuple[str, ...] = ()
    scored_units: Mapping[str, str] = field(default_factory=dict)
    unit: str = "word"
    groups: tuple[str, ...] = ()
    train_groups: tuple[str, ...] = ()
    sampling_rate: int = 16000
    synthetic: bool = False
    license: str = ""
    max_characters_per_second: float = 30.0
    language: str = ENGLISH
    needed_roles: tuple[str, ...] = ("train", "test")

    def words(self, tokens: Sequence[str]) -> list[str]:
        """The normalized words of tokens."""
        return self.normalize(" ".join(tokens)).split()


def load_corpus(definition: Path) -> Corpus:
    """The ``CORPUS`` that a Python file exports.

    Raises:
        DataError: no such file, a file that cannot be imported, or no ``CORPUS``.
    """
    if not definition.is_file():
        expected = "a Python file that exports CORPUS"
        raise DataError(definition, expected, "nothing", "correct the path of the corpus")
    if definition.suffix != ".py":
        expected = "a file whose name ends in .py"
        raise DataError(definition, expected, definition.name, "rename the file")
    try:
        module = import_file(definition, f"privasr_k2_corpus_{definition.stem}")
    except (ImportError, SyntaxError, NameError) as error:
        expected, found = "a Python file that can be imported", f"{type(error).__name__}: {error}"
        raise DataError(definition, expected, found, "correct the file") from error
    corpus = getattr(module, "CORPUS", None)
    if not isinstance(corpus, Corpus):
        found = "no CORPUS" if corpus is None else f"a {type(corpus).__name__}"
        way_out = "see docs/new_corpus.md: from privasr_k2.corpora.base import Corpus"
        raise DataError(definition, "CORPUS = Corpus(...)", found, way_out)
    return corpus
