"""The command line of verbs: flags of five kinds, one typed configuration, one readable error.

``--in-*`` is read, ``--out-*`` written, ``--raw-*`` a corpus; ``--config FILE...`` and ``--set
K=V...`` make the configuration; ``--device --num-jobs --log-level`` cannot change a result. Only
here are errors printed and exit codes set: 2 for what the user can put right, 1 for anything else.
"""

from __future__ import annotations

import argparse
import errno
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from privasr_k2 import config
from privasr_k2.errors import ConfigError, PrivasrError

T = TypeVar("T")

_FOLDER, _NAME = "choose another folder with --work-dir", "correct the name"
_DISK = {
    errno.ENOSPC: ("room on the disk", "the disk is full", "free some space"),
    errno.EDQUOT: ("room in the quota", "the quota is used up", "free some space"),
    errno.EFBIG: ("a file size that is allowed", "the file-size limit", "raise it (ulimit -f)"),
    errno.EROFS: ("a place to write", "a read-only file system", _FOLDER),
    errno.EACCES: ("permission", "permission denied", f"{_FOLDER}, or change its owner"),
    errno.EPERM: ("permission", "operation not permitted", _FOLDER),
    errno.ENOENT: ("a file or folder", "nothing", f"{_NAME}, or run the stage that writes it"),
    errno.EISDIR: ("a file", "a folder", _NAME),
    errno.ENOTDIR: ("a folder", "a file", _NAME),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(self.prog, "the options of --help", message, f"{self.prog} --help")


def arguments(
    doc: str | None, *, config: bool = True, device: bool = False, **flags: str
) -> argparse.Namespace:
    """The parsed command line of a verb without groups of flags: :func:`parser`, :func:`parse`."""
    return parse(parser(doc, **flags), config=config, device=device)


def parser(doc: str | None, **flags: str) -> argparse.ArgumentParser:
    """Return a parser with :func:`add_flags`; its help is the module's docstring."""
    parser = _Parser(
        prog=f"privasr verb {Path(sys.argv[0]).stem}",
        description=doc,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    levels, jobs = ("DEBUG", "INFO", "WARNING", "ERROR"), "processes or threads; changes no result"
    parser.add_argument("--log-level", default="INFO", choices=levels)
    parser.add_argument("--num-jobs", type=_positive, default=1, metavar="N", help=jobs)
    add_flags(parser, **flags)
    if "max_epsilon" in flags:  # the verb makes a release
        add_flags(parser, ledger_copy="[DIR] second copy of the ledger (default: WORK_DIR.ledger)")
        accepts = "accept public inputs that are made of the private data: epsilon is infinite"
        words = ("true", "false")
        parser.add_argument("--public-from-private", choices=words, default="false", help=accepts)
    return parser


def add_flags(parser: argparse._ActionsContainer, **flags: str) -> None:
    """Add flags of paths and numbers, each ``name="VALUE help"``.

    ``VALUE`` is ``FILE``, ``DIR`` or another word for a path, and ``X`` for a number. ``[FILE]``
    may be left out (None). ``FILE...`` and ``[FILE+]`` take one or more, ``[FILE...]`` any number,
    as a list. ``FILE|--in-y`` gives the flag a second name, ``FILE|--in-y|--in-z`` two more.

    >>> parser = argparse.ArgumentParser()
    >>> add_flags(parser, in_lang="DIR|--in-public-lang words", in_cuts="[FILE...]", limit="[X]")
    >>> vars(parser.parse_args(["--in-public-lang", "lang"]))
    {'in_lang': PosixPath('lang'), 'in_cuts': [], 'limit': None}
    """
    for name, spec in flags.items():
        value, _, text = spec.partition(" ")
        value, *others = value.split("|")
        metavar = value.strip("[].+")
        given: dict[str, Any] = {"type": float if metavar == "X" else Path, "metavar": metavar}
        optional = value.startswith("[")
        if optional and "..." in value:
            given |= {"nargs": "*", "default": []}
        elif "..." in value or "+" in value:
            given["nargs"] = "+"
        names = (f"--{name.replace('_', '-')}", *others)
        parser.add_argument(*names, dest=name, required=not optional, help=text or None, **given)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config FILE...`` and ``--set K=V...``, read by :func:`load`."""
    layers, values = "YAML layers, the last one winning", "single values, after all files"
    # A flag given twice adds to the first: recipes put their own layers after shared ones.
    added: dict[str, Any] = {"nargs": "*", "action": "extend"}
    parser.add_argument("--config", type=Path, default=[], metavar="FILE", help=layers, **added)
    parser.add_argument("--set", default=[], metavar="K=V", help=values, **added)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number above 0 expected, found {text!r}")
    return int(text)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add ``--device auto|cpu|cuda|cuda:N``."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")


def load(cls: type[T], args: argparse.Namespace) -> T:
    """The configuration that ``--config`` and ``--set`` make."""
    return config.load(cls, args.config, args.set)


def parse(
    parser: argparse.ArgumentParser, *, config: bool = True, device: bool = False
) -> argparse.Namespace:
    """Add :func:`add_config` and :func:`add_device`, parse the command line, and set up logging."""
    if config:
        add_config(parser)
    if device:
        add_device(parser)
    args = parser.parse_args()
    logging.basicConfig(
        level=args.log_level, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    return args


def run(main: Callable[[], None]) -> None:
    """Run a verb; errors become one message and an exit code."""
    try:
        main()
    except PrivasrError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in _DISK:
            raise
        expected, found, way_out = _DISK[error.errno]
        place = error.filename or "while writing the output"
        print(f"error: {PrivasrError(place, expected, found, way_out)}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
