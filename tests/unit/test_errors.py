"""Errors say where, what was expected, what was found, and the way out."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError, DataError, GraphError, PrivacyError, PrivasrError


@pytest.mark.parametrize("cls", [ConfigError, DataError, GraphError, PrivacyError])
def test_message_and_parts(cls: type[PrivasrError]) -> None:
    error = cls(Path("data/text:3"), "two fields", "one", "add the transcript")
    assert isinstance(error, PrivasrError)
    assert (
        str(error) == "data/text:3: expected two fields, found one\n  way out: add the transcript"
    )
    expected = ("data/text:3", "two fields", "one", "add the transcript")
    for one in (error, pickle.loads(pickle.dumps(error))):  # as it comes out of a pool
        assert (type(one), str(one)) == (cls, str(error))
        assert (one.place, one.expected, one.found, one.way_out) == expected
