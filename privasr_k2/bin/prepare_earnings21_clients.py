"""Earlier name of prepare_earnings21; its --out-dir is --out-clients."""

import sys

from privasr_k2.bin import cli, prepare_earnings21


def main() -> None:
    """Call it by its flags of now."""
    sys.argv[1:] = ["--out-clients" if word == "--out-dir" else word for word in sys.argv[1:]]
    prepare_earnings21.main()


if __name__ == "__main__":
    cli.run(main)
