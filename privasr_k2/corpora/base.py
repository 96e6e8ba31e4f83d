"""Interface of corpora: one :class:`Corpus` value holds the reader and the facts of a corpus.

A corpus is one Python file that exports ``CORPUS = Corpus(...)``; ``docs/new_corpus.md`` shows how
to write one.
Importing this module imports neither lhotse nor torch.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.text.normalize import normalize_english

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.supervision import SupervisionSegment

GENERAL_OPTIONS = ("allow_pipes", "drop_empty", "max_characters_per_second", "not_scored")
"""Options of ``bin.prepare_corpus`` that every corpus takes."""

ROLES = ("train", "adapt", "dev", "test", "pool")
"""The parts that recipes know: what a corpus calls its own parts stands in
``cut.custom["part"]``.
"""


@dataclass(frozen=True)
class CorpusInput:
    """Arguments of :attr:`Corpus.read`, from ``bin.prepare_corpus``.

    Attributes:
        raw_dir: the user's corpus; read only. ``None`` where the corpus needs none.
        out_dir: where a corpus may write audio of its own (``out_dir / "audio"``). It is the
            manifests folder
            under a temporary name: do not keep it.
        options: the words of ``--set``, as text.
        config_files: the YAML layers of ``--config``.
        num_jobs: processes to use; must not change the result.
    """

    raw_dir: Path | None
    out_dir: Path
    options: Mapping[str, str]
    config_files: tuple[Path, ...]
    num_jobs: int

    def folder(self) -> Path:
        """``raw_dir``, which must be given and be a folder.

        Raises:
            DataError: it was not given, or there is no such folder.
        """
        if self.raw_dir is None:
            raise DataError(
                "--corpus-dir", "the folder of the corpus", "nothing", "add --corpus-dir DIR"
            )
        if not self.raw_dir.is_dir():
            found = "a file" if self.raw_dir.exists() else "nothing"
            raise DataError(self.raw_dir, "the folder of the corpus", found, "correct --corpus-dir")
        return self.raw_dir

    def option(self, name: str, default: str, choices: tuple[str, ...] = ()) -> str:
        """The option ``name`` of ``--set``, or ``default``; one of ``choices`` where there are
        any.
        """
        value = self.options.get(name, default)
        if choices and value not in choices:
            raise ConfigError(
                f"--set {name}={value}",
                " or ".join(choices),
                repr(value),
                f"write --set {name}={choices[0]}",
            )
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
            way_out = f"for example --set {name}={default:g}"
            raise ConfigError(
                f"--set {name}={text}", f"a number of at least {least:g}", repr(text), way_out
            )
        return value

    def refuse_unknown(self, *known: str) -> None:
        """Refuse options that the corpus does not know.

        Raises:
            ConfigError: naming the first unknown option and those that are known.
        """
        for name in self.options:
            if name not in (*known, *GENERAL_OPTIONS):
                raise ConfigError(
                    f"--set {name}=...",
                    f"one of: {' '.join(known) or 'no option'}",
                    repr(name),
                    "correct or remove it",
                )


def nothing(given: CorpusInput) -> None:
    """No lexicon of its own."""
    return None


def no_files(given: CorpusInput) -> list[Path]:
    """No text for a language model besides the transcripts."""
    return []


def speaker(supervision: SupervisionSegment) -> str:
    """The user of an utterance is its speaker."""
    return str(supervision.speaker)


@dataclass(frozen=True)
class Corpus:
    """Reader and facts of a corpus.

    Attributes:
        name: lower case, as in ``egs/<name>``; empty: that of the corpus's folder.
        read: gives the cuts of each role (``train``, ``dev``, ``test``; ``adapt`` and ``pool``
            where there are any).
            A cut holds one supervision with ``text`` as found, ``speaker``, and maybe
            ``cut.custom["part"]``, the name in tables where that is not the role's; it has a
            recording, or features that come with the corpus, or neither where only text is wanted
            (then ``duration`` is an estimate and ``cut.custom["text_only"]`` is true).
        normalize: turns a text as found into words parted by single blanks.
        lexicon: the corpus's own lexicon, if it has one; asked for after ``read``, as ``lm_text``.
        lm_text: files (``.txt`` or ``.txt.gz``) with one sentence a line, if there is more text
            than the transcripts.
        user_of: the unit of privacy of an utterance: written to ``supervision.speaker``.
        expected_utterances: part -> count in the official edition; other counts give a warning.
        public_roles: the roles that are not private, from which a private recipe may take
            vocabulary and models.
        scored_units: recognized unit -> scored unit, where several count as one (TIMIT's 48 -> 39
            phones); a unit that maps to ``""`` is not scored, as the words of the option
            ``not_scored``.
        unit: what the transcripts are made of: ``word`` or ``phone``, so that tables say WER or
            PER.
        sampling_rate: of the audio, in Hz. Audio of another rate is a problem that ``check_cuts``
            reports.
        synthetic: whether the speech is made by a machine; tables say so.
        max_characters_per_second: of normalized text, blanks included; denser text is a problem
            that ``check_cuts`` reports. Fast English has about 20.
    """

    name: str
    read: Callable[[CorpusInput], dict[str, CutSet]]
    normalize: Callable[[str], str] = normalize_english
    lexicon: Callable[[CorpusInput], Path | None] = nothing
    lm_text: Callable[[CorpusInput], list[Path]] = no_files
    user_of: Callable[[SupervisionSegment], str] = speaker
    expected_utterances: Mapping[str, int] = field(default_factory=dict)
    public_roles: tuple[str, ...] = ()
    scored_units: Mapping[str, str] = field(default_factory=dict)
    unit: str = "word"
    sampling_rate: int = 16000
    synthetic: bool = False
    max_characters_per_second: float = 30.0

    def words(self, tokens: Sequence[str]) -> list[str]:
        """The normalized words of tokens."""
        return self.normalize(" ".join(tokens)).split()


def load_corpus(definition: Path) -> Corpus:
    """The ``CORPUS`` that a Python file exports. The file is imported as a plain module, from its
    path.

    Raises:
        DataError: there is no such file, it cannot be imported, or it exports no ``CORPUS``.
    """
    if not definition.is_file():
        raise DataError(
            definition,
            "a Python file that exports CORPUS",
            "nothing",
            "correct the path of the corpus",
        )
    name = f"privasr_k2_corpus_{definition.stem}"
    spec = importlib.util.spec_from_file_location(name, definition)
    if spec is None or spec.loader is None:
        raise DataError(
            definition, "a file whose name ends in .py", definition.name, "rename the file"
        )
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and spawned processes look their module up by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError, NameError) as error:
        found = f"{type(error).__name__}: {error}"
        raise DataError(
            definition, "a Python file that can be imported", found, "correct the file"
        ) from error
    corpus = getattr(module, "CORPUS", None)
    if not isinstance(corpus, Corpus):
        found = "no CORPUS" if corpus is None else f"a {type(corpus).__name__}"
        raise DataError(
            definition,
            "CORPUS = Corpus(...)",
            found,
            "see docs/new_corpus.md: from privasr_k2.corpora.base import Corpus",
        )
    return corpus
