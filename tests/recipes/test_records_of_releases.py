"""What stands in a work folder beside a release proves no guess at the private inputs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from privasr_k2.recipe.fingerprint import HashCache
from tests.support.private_tools import private_recipe
from tests.support.released import plain_digests


def test_no_plain_digest_in_a_work_folder_with_a_release(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "work")
    tree.run()
    private = [tree.path / name for name in ("corpus.txt", "data/d.txt", "exp/mean.txt")]
    plain = HashCache(Path(os.devnull), tree.path)
    digests = [*plain_digests(private), str(plain.digest("exp/sums")).encode()]
    files = [path for path in tree.path.rglob("*") if path.is_file()]
    assert {"sums.json", "hashes.json", "key"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        assert not any(digest in content for digest in digests), path
    assert stat.S_IMODE((tree.path / ".stages/key").stat().st_mode) == 0o600
    assert tree.run().count("up to date") == 5
