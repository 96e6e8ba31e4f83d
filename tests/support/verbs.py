"""Helpers shared with ``test_language_verbs.py``."""

from __future__ import annotations

import importlib
import sys

import pytest

from privasr_k2.bin import cli


def call(monkeypatch: pytest.MonkeyPatch, verb: str, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [verb, *map(str, arguments)])
    cli.run(importlib.import_module(f"privasr_k2.bin.{verb}").main)
