"""Releases that begin and end at once, and those that are refused."""

from __future__ import annotations

import dataclasses

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events, release
from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import Ledger
from tests.support.made_spending import COUNTS

UTTERANCE = dataclasses.replace(COUNTS, unit="utterance", units=None)
BARE = dataclasses.replace(COUNTS, event=events.unprotected(), unit="user")


def begin(ledger, out, *, spending=COUNTS, fingerprint="a" * 64, max_epsilon=None, people=None):
    """Begin with the usual values."""
    return release.begin(
        ledger,
        beside=out / "privacy.json",
        spending=spending,
        fingerprint=fingerprint,
        max_epsilon=max_epsilon,
        people=people,
    )


def enter(ledger, out, *, finish=False, **changes):
    """A release that is given up, or finished."""
    with begin(ledger, out, **changes) as made:
        if finish:
            made.finish()
    return made


def refuse(match, ledger, out, **changes):
    """Expect an error before anything is spent."""
    before = ledger.read_bytes() if ledger.exists() else None
    with pytest.raises(PrivacyError, match=match), begin(ledger, out, **changes):
        raise AssertionError("it began")
    assert before is None or ledger.read_bytes() == before


def spent(ledger):
    """Number of entries, with the seal checked."""
    return len(Ledger(ledger, seal_of(ledger)).entries())
