"""Earlier name of train_ngram."""

from privasr_k2.bin import cli
from privasr_k2.bin.train_ngram import main

if __name__ == "__main__":
    cli.run(main)
