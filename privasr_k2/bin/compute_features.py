"""Compute acoustic features and store them once, or store those that come with the corpus.

With kind=encoder and --in-public-encoder they are the outputs of a public encoder, as float16; the
key encoder has its settings.

Writes cuts_<role>.jsonl.gz with features, and features.yaml, to --out-dir.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.data.features import ENCODER, FeatureConfig, compute
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse and compute."""
    args = cli.arguments(
        __doc__,
        in_manifests="PATH manifests folder",
        in_public_encoder="[PATH] of kind=encoder: the encoder's folder or file",
        in_public_noise="[PATH] lhotse's manifest of noise (cuts or recordings): a copy of train",
        in_public_rirs="[PATH] lhotse's manifest of impulse responses: a copy of train",
        out_dir="PATH features folder",
    )
    config = cli.load(FeatureConfig, args)
    if (config.kind == ENCODER) != (args.in_public_encoder is not None):
        expected = "kind=encoder and --in-public-encoder together"
        raise ConfigError("compute_features", expected, "one of them", "give both, or neither")
    extractor = None
    if args.in_public_encoder is not None:
        from privasr_k2.encoders.frozen import FrozenEncoder

        extractor = FrozenEncoder(args.in_public_encoder, config.encoder)
    compute(
        args.in_manifests,
        args.out_dir,
        config,
        args.num_jobs,
        extractor,
        noise=args.in_public_noise,
        rirs=args.in_public_rirs,
    )


if __name__ == "__main__":
    cli.run(main)
