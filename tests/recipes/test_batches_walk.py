"""Batches of icefall's kind in Python, as docs/plugin.md has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.recipe_tools import EXP

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def test_a_model_of_a_recipe_reads_a_batch_of_lhotse(copied: Path, repo_root: Path) -> None:
    page = (repo_root / "docs/plugin.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert f"egs/mini/{EXP}/am" in code
    names: dict[str, Any] = {}
    exec(code.replace("egs/mini", str(copied)), names)
    log_probs, lengths = names["log_probs"], names["lengths"]
    assert log_probs.shape[:2] == (len(names["batch"].ids), lengths.max())
    assert log_probs.exp().sum(dim=-1).allclose(log_probs.new_ones(log_probs.shape[:2]))
