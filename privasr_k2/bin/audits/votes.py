"""Attack a release of words: does it show that a speaker of words of their own was there?"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    from privasr_k2.federated.word_audit import WordAuditConfig, audit_votes
    from privasr_k2.federated.word_release import mechanism_of

    config = cli.load(WordAuditConfig, args)
    found = audit_votes(mechanism_of(args.in_votes), config)
    for line in found.lines():
        log.info("a speaker of words of their own: %s", line)
    write_json(args.out_audit, {"own_words": {"whole_release": found.to_json()}})
