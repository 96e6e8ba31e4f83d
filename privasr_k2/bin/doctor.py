"""Check the environment: packages, needs of each recipe, and versions of k2, torch and CUDA.

    privasr doctor

Ends with 0 where the recipe "ctc" can run; otherwise with 2 and with ways out.
"""

from __future__ import annotations

import argparse
import os
import sys

from privasr_k2 import environment
from privasr_k2.environment import Finding
from privasr_k2.errors import ConfigError


def main() -> int:
    """Print the report; return the exit code."""
    formatter = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(
        prog="doctor", description=__doc__, formatter_class=formatter
    ).parse_args()
    stack = os.environ.get("PRIVASR_STACK") or "torch1"
    try:
        expected = environment.locked_versions(environment.lock_files(stack))
    except ConfigError as error:  # not by bin.cli, which imports what may be missing here
        print(f"error: {error}", file=sys.stderr)
        return 2
    findings = [
        *environment.check_machine(environment.ROOT),
        *environment.check_packages(expected, environment.installed_version),
        environment.check_fit(*environment.built_with()),
    ]
    if findings[-1].ok:
        findings += [environment.check_imports(), *environment.check_gpus()]
    print(f"stack {stack}; expected versions from requirements/\n")
    print(f"{'':3}{'what':24}{'found':38}expected")
    for finding in findings:
        print(_line(finding))
    print()
    for recipe in environment.RECIPES:
        missing = environment.missing_for(recipe, findings)
        names = [f.name for f in missing]
        shown = names if len(names) <= 5 else [*names[:4], f"and {len(names) - 4} more"]
        print(f"{recipe:12}{'no: ' + ', '.join(shown) if missing else 'ready'}")
    missing = environment.missing_for("ctc", findings)
    if missing:
        print("\nways out:")
        for way_out in dict.fromkeys(f"  {f.name}: {f.way_out}" for f in missing):
            print(way_out)
    return 2 if missing else 0


def _line(finding: Finding) -> str:
    mark = "!!" if not finding.ok else "" if finding.found else "-"
    differs = finding.expected and finding.found and finding.expected != finding.found
    shown = finding.expected if differs or not finding.found else ""
    return f"{mark:3}{finding.name:24}{finding.found or 'missing':38}{shown}".rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
