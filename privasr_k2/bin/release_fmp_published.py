"""Earlier name of release_fmp."""

from privasr_k2.bin import cli
from privasr_k2.bin.release_fmp import main

if __name__ == "__main__":
    cli.run(main)
