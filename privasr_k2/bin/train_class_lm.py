"""Earlier name of train_ngram; its --out-lm is --out-class-lm."""

import sys

from privasr_k2.bin import cli, train_ngram


def main() -> None:
    """Call it by its flags of now."""
    sys.argv[1:] = ["--out-class-lm" if word == "--out-lm" else word for word in sys.argv[1:]]
    train_ngram.main()


if __name__ == "__main__":
    cli.run(main)
