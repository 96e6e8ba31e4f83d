"""Earlier name of import_external."""

from privasr_k2.bin import cli
from privasr_k2.bin.import_external import main

if __name__ == "__main__":
    cli.run(main)
