"""Earlier name of decode."""

from privasr_k2.bin import cli
from privasr_k2.bin.decode import main

if __name__ == "__main__":
    cli.run(main)
