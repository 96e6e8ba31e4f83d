"""Manifests of ``lhotse.recipes`` as the cuts of a corpus."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lhotse import CutSet


def call_recipe(prepare: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """What a recipe of lhotse returns, without its progress bars."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return prepare(*args, **settings)


def cuts_of(
    manifests: Mapping[str, Any], part: str, places: Mapping[str, str] | None = None
) -> CutSet:
    """One cut for each supervision of one part, named and sorted by its id.

    Alignments are left out: no recipe reads them, and they are longer than all the rest.

    Args:
        manifests: ``recordings`` and ``supervisions``; ``features`` may be in place of the former.
        part: for ``custom["part"]``.
        places: id -> ``file:line`` of the transcript, for messages.
    """
    from lhotse import CutSet

    made = {}
    for cut in CutSet.from_manifests(**manifests).trim_to_supervisions(keep_overlapping=False):
        supervision, places = cut.supervisions[0], places or {}
        supervision.alignment, name = None, supervision.id
        cut.custom = {"part": part, "place": places.get(name, name)}
        made[name] = cut.with_id(name)
    return CutSet.from_cuts(made[name] for name in sorted(made, key=str.encode))
