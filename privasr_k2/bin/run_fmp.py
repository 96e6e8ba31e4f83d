"""Earlier name of rescore_fmp."""

from privasr_k2.bin import cli
from privasr_k2.bin.rescore_fmp import main

if __name__ == "__main__":
    cli.run(main)
