"""Attack n-gram models of sanitized text: which names were said in what it was made of?"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    from privasr_k2.attack.planted_names import GOLD, LISTS, read_canaries
    from privasr_k2.attack.sanitized_lms import AuditedNamesConfig, audit_names
    from privasr_k2.text.name_lists import read_name_lists, words_of
    from privasr_k2.text.normalize import normalize_english
    from privasr_k2.text.tagged_files import needs_entities, read_tagged

    config = cli.load(AuditedNamesConfig, args)
    if config.method != "replace":
        raise ConfigError("method", "replace", config.method, "the other methods keep no word")
    planted = args.in_planted
    lists = words_of(read_name_lists(planted / LISTS, normalize_english), normalize_english)
    tagged = {}
    for path in (planted / GOLD, *(args.in_tagged or ())):
        tagger = path.name.split(".")[0]
        if tagger in tagged:
            expected = "files of different names up to the first dot"
            raise ConfigError("--in-tagged", expected, f"{tagger} twice", "rename one")
        tagged[tagger] = read_tagged([path])
        needs_entities(tagged[tagger], str(path))
    texts, scored = tagged[GOLD.split(".")[0]], read_tagged([args.in_scored])
    found = audit_names(texts, read_canaries(planted), tagged, lists, scored, config)
    for name, of in found["models"].items():
        shown = ", ".join(f"{kind} {k['exposure']:.2f}" for kind, k in of["kinds"].items())
        log.info("%s: exposure in bits of %.0f: %s", name, of["possible"], shown)
    write_json(args.out_audit, found)
