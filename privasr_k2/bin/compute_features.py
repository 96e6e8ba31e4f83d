"""Compute acoustic features and store them once, or store those that come with the corpus.

Writes cuts_<role>.jsonl.gz with features, and features.yaml, to --out-dir.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.data.features import FeatureConfig, compute


def main() -> None:
    """Parse and compute."""
    args = cli.arguments(
        __doc__, in_manifests="PATH manifests folder", out_dir="PATH features folder"
    )
    compute(args.in_manifests, args.out_dir, cli.load(FeatureConfig, args), args.num_jobs)


if __name__ == "__main__":
    cli.run(main)
