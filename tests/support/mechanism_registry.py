"""Helpers shared with ``test_mechanism_registry.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Runs verbs one after the other: their names and flags are given as JSON.
RUN = """
import importlib, json, sys
for verb, *flags in json.loads(sys.argv[1]):
    sys.argv = [verb, *flags]
    module = importlib.import_module(f"privasr_k2.bin.{verb}")
    module.cli.run(module.main)
"""


def run_verbs(*commands: str, plugin: Path | None) -> subprocess.CompletedProcess[str]:
    """Run verbs, given as words, in one process with a plugin."""
    words = json.dumps([command.split() for command in commands])
    environment = {**os.environ, "PRIVASR_PLUGINS": "" if plugin is None else str(plugin)}
    command = [sys.executable, "-c", RUN, words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
