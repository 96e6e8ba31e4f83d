"""Earlier name of privacy_plan --kind queries."""

import sys

from privasr_k2.bin import cli, privacy_plan


def main() -> None:
    """Call it by its name of now."""
    sys.argv[1:1] = ["--kind", "queries"]
    privacy_plan.main()


if __name__ == "__main__":
    cli.run(main)
