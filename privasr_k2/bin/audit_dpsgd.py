"""Earlier name of audit."""

from privasr_k2.bin import cli
from privasr_k2.bin.audit import main

if __name__ == "__main__":
    cli.run(main)
