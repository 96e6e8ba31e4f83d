"""Earlier name of export."""

from privasr_k2.bin import cli
from privasr_k2.bin.export import main

if __name__ == "__main__":
    cli.run(main)
