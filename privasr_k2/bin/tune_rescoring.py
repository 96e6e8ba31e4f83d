"""Earlier name of tune_weights."""

from privasr_k2.bin import cli
from privasr_k2.bin.tune_weights import main

if __name__ == "__main__":
    cli.run(main)
