r"""Enter private text that is used without protection in the ledger: its epsilon is infinite.

    privasr verb declare_unprotected --in-private-text data/split/adapt_20.jsonl.gz \
        --out-dir exp/adapt --out-privacy exp/adapt_privacy.json --ledger privacy/ledger.json \
        --config conf/classlm.yaml#declare_unprotected \
        --set data=ami/adapt purpose="LMs are adapted to it"

--out-dir gets the unchanged files. Results made from these copies have this entry in their lineage.
Any --max-epsilon makes it an error.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, one_of
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import atomic_path, read_jsonl
from privasr_k2.privacy import events, release
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.people import People
from privasr_k2.privacy.public_inputs import begin_release
from privasr_k2.privacy.spending import UNITS, Spending, guarantees

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UnprotectedConfig(Checked):
    """Fields of the ledger entry; defaults in ``conf/classlm.yaml#declare_unprotected``.

    Args:
        data: a corpus and its part: every guarantee for this data becomes infinite.
        purpose: what the text is used for.
        unit: that the entry names; none is protected.
        delta: of the entry; no delta helps.
    """

    data: str
    purpose: str
    unit: Annotated[str, one_of(*UNITS)]
    delta: float


def main() -> None:
    """Parse, enter, copy."""
    args = cli.arguments(
        __doc__,
        in_private_text="FILE... text",
        out_dir="[DIR] gets the same files",
        out_privacy="FILE privacy.json",
        ledger="FILE of the private text",
        max_epsilon="[X] any limit refuses",
    )
    config = cli.load(UnprotectedConfig, args)
    for name, example in (("data", "ami/adapt"), ("purpose", "'LMs are adapted to it'")):
        if not getattr(config, name):
            raise ConfigError(name, "some words", "nothing", f"say it: --set {name}={example}")
    names = Counter(path.name for path in args.in_private_text)
    if twice := [name for name, count in names.items() if count > 1]:
        place = "--in-private-text"
        raise ConfigError(place, "files of different names", f"{twice[0]} twice", "rename one")
    spending = Spending(
        data=config.data,
        released=f"text as it is, unprotected: {config.purpose}",
        unit=config.unit,
        units=None,
        relation=Relation.ADD_OR_REMOVE_ONE,
        event=events.unprotected(),
        sampling="all texts",
        delta=config.delta,
        does_not_cover=(
            "Everything: whoever sees what was made of this text may learn any of it.",
        ),
    )
    fingerprint = release.fingerprint_of(config, args.in_private_text)
    people = _speakers_of(args.in_private_text)
    with begin_release(args, spending, fingerprint, people) as begun:
        if args.out_dir is not None:
            with atomic_path(args.out_dir) as folder:
                folder.mkdir()
                for path in args.in_private_text:
                    shutil.copyfile(path, folder / path.name)
        begun.finish()
    for line in guarantees([begun.entry.spending])[0].lines():
        log.info(line)


def _speakers_of(paths: Sequence[Path]) -> People | None:
    """Who spoke or wrote the texts; ``None`` where a file is no JSON Lines, or a line names nobody.

    An unprotected release has no bound for anybody, so that no more is asked of the texts.
    """
    if not all(path.name.removesuffix(".gz").endswith(".jsonl") for path in paths):
        return None
    names = {_speaker(record) for path in paths for record in read_jsonl(path)}
    return None if "" in names or not names else People(frozenset(names), 1)


def _speaker(record: Any) -> str:
    match record:
        case {"supervisions": [{"speaker": str(name)}]}:
            return name
        case {"user": str(name)} | {"speaker": str(name)}:
            return name
    return ""


if __name__ == "__main__":
    cli.run(main)
