"""Kinds of what is published, each with the list of the files that leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from privasr_k2.errors import PrivacyError


@dataclass(frozen=True)
class Kind:
    """What a recipe has made, by its files.

    Attributes:
        needed: patterns of files that it has, and that are published.
        more: patterns of further files that are published where they are there.
        verb: the only verb that writes it; empty: by its files.
    """

    name: str
    needed: tuple[str, ...]
    more: tuple[str, ...] = ()
    verb: str = ""

    def allows(self, name: str) -> bool:
        """Whether a published folder of this kind may hold the file.

        >>> labels = Kind("labels", ("labels.jsonl",), ("sub/*.txt",))
        >>> [labels.allows(name) for name in ("labels.jsonl", "sub/PER.txt", "PER.txt", "x/y.txt")]
        [True, True, False, False]
        """
        path = PurePosixPath(name)
        return any(
            path.match(pattern) and len(path.parts) == len(PurePosixPath(pattern).parts)
            for pattern in (*self.needed, *self.more)
        )


#: Settings of public features: of an acoustic model they are copied from its features folder.
FEATURES = "features.yaml"
KINDS = (
    Kind("acoustic model", ("model.safetensors", "model.yaml", "tokens.txt"),
         ("config.yaml", FEATURES)),
    Kind("language model", ("model.safetensors", "model.yaml", "words.txt"), ("config.yaml",)),
    Kind("class language model", ("class_lm.json", "root.arpa.gz"), ("sub/[A-Z]*.txt",)),
    Kind("labels", ("labels.jsonl",)),
    Kind("released words", ("words.tsv", "votes.json"), ("bigrams.tsv",)),
    Kind("sanitized text", ("sanitized.jsonl.gz", "text.txt.gz", "class_text.txt.gz")),
)  # fmt: skip
#: Of single files, which get this name whatever theirs was.
FILES = (
    Kind("marginals", ("marginals.safetensors",), verb="release_fmp"),
    Kind("n-gram language model", ("lm.arpa.gz",)),
)


def kind_named(name: str) -> Kind | None:
    """The kind of this name."""
    return next((kind for kind in (*KINDS, *FILES) if kind.name == name), None)


def kind_of(path: Path, verb: str) -> Kind:
    """The kind of what a recipe has made.

    Args:
        verb: that wrote it.

    Raises:
        PrivacyError: nothing that is published.
    """
    if path.is_dir():
        found = [kind for kind in KINDS if all((path / name).is_file() for name in kind.needed)]
    else:
        ends = {"marginals": ".safetensors", "n-gram language model": ".arpa.gz"}
        found = [
            kind
            for kind in FILES
            if path.name.endswith(ends[kind.name]) and kind.verb in ("", verb)
        ]
    if found:
        return found[0]
    names = ", ".join(kind.name for kind in (*KINDS, *FILES))
    way_out = "name the folder or file itself: a model's am, a release's marginals.safetensors"
    raise PrivacyError(path, f"one of: {names}", f"another output of {verb}", way_out)


def files_of(kind: Kind, path: Path) -> Iterator[tuple[str, Path]]:
    """The files that leave: the name that each gets, and where it lies."""
    if path.is_file():
        yield kind.needed[0], path
        return
    for pattern in (*kind.needed, *kind.more):
        for file in sorted(path.glob(pattern)):
            if not file.name.startswith("."):  # no lineage counts it
                yield file.relative_to(path).as_posix(), file
