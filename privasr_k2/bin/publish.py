r"""Copy what a guarantee covers to a folder that may leave the machine, or check such a folder.

    privasr publish egs/mini/exp/fedlm_tdnn_phone_char_lstm/lm/fl_all_noise_1.5 --out published
    privasr publish egs/mini/exp/fmp_text_speaker/eps_user_1/marginals.safetensors --out marginals
    privasr publish --check published

PATH is what a recipe has made: the model's folder of a private training, of a student, or of an LM
of released text; labels; marginals; released words; sanitized text. A path without a release behind
it is refused, and so is one that any unprotected, unknown or changed input went into.

--out gets weights or released files, tokens, public settings, privacy.json with all releases behind
them, a model card (README.md), and published.json with hashes. Nothing else is copied: no
checkpoints, no logs, no results. --check verifies files, hashes, releases, and every epsilon.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse; publish or check."""
    parser = cli.parser(
        __doc__,
        out="[DIR] a new folder",
        check="[DIR] a published folder to verify",
        ledger="[FILE] of the private data (default: WORK_DIR/privacy/ledger.json)",
        ledger_copy="[DIR] its second copy (default: WORK_DIR.ledger)",
    )
    parser.add_argument("path", nargs="?", type=Path, metavar="PATH", help="what a recipe has made")
    parser.add_argument("--license", default="", metavar="TEXT", help="a sentence for the card")
    args = cli.parse(parser, config=False)
    if (args.path is None) != (args.out is None) or (args.out is None) == (args.check is None):
        expected = "PATH --out DIR, or --check DIR"
        raise ConfigError("the command line", expected, "something else", "see --help")

    if args.check is not None:
        from privasr_k2.publish.check import check_published

        print(f"{args.check}: whole, releases behind it: {len(check_published(args.check))}")
        return
    from privasr_k2.publish.folder import publish

    second = args.ledger_copy
    source = publish(args.path, args.out, ledger=args.ledger, second=second, license=args.license)
    print(f"{args.out}: {source.kind.name}, releases behind it: {len(source.entries)}")


if __name__ == "__main__":
    cli.run(main)
