r"""Replace, tag or delete the names in tagged text, as a release.

    privasr verb sanitize_text --in-private-text data/manifests/cuts_train.jsonl.gz \
        --in-public-lists data/manifests/public_lists --out-dir exp/sanitized \
        --out-privacy exp/sanitized_privacy.json --ledger privacy/ledger.json \
        --config conf/classlm.yaml#sanitize --set data=mini/train

Names are replaced word by word, by names of public lists. --out-dir gets sanitized.jsonl.gz (tagged
text), text.txt.gz (its sentences), class_text.txt.gz (tags such as <PER> for names) and about.json.
Texts have new ids, a random order and no users; replacements are not recorded. Sanitized text is
not private: see docs/sanitization.md. report_entities counts missed names.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.privacy import release
from privasr_k2.privacy.public_inputs import begin_release
from privasr_k2.privacy.spending import guarantees
from privasr_k2.text.name_lists import read_name_lists, words_of
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.sanitize import needs_lists, needs_users
from privasr_k2.text.sanitized_release import (
    SanitizeConfig,
    guarantee,
    people_of,
    sanitize,
    spending,
)
from privasr_k2.text.tagged_files import needs_entities, read_tagged

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, spend, draw, write."""
    args = cli.arguments(
        __doc__,
        in_private_text="FILE... tagged text or cuts",
        in_public_lists="[DIR] name lists; needed to replace",
        out_dir="DIR sanitized text",
        out_privacy="FILE privacy.json",
        ledger="FILE of the private text",
        max_epsilon="[X] refuse to spend beyond it",
    )
    config = cli.load(SanitizeConfig, args)
    if not config.data:
        expected = "a corpus and its part"
        raise ConfigError("data", expected, "nothing", "name it: --set data=mini/train")
    texts = read_tagged(args.in_private_text)
    needs_entities(texts, "--in-private-text")
    if config.method == "replace" and args.in_public_lists is None:
        place = "the command line"
        raise ConfigError(place, "--in-public-lists", "none", "name lists, or --set method=tag")
    if config.utterances_per_user is not None:
        needs_users(texts)
    lists = {}
    if config.method == "replace":
        names = read_name_lists(args.in_public_lists, normalize_english)
        lists = words_of(names, normalize_english)
        needs_lists(texts, lists)
    protected = guarantee(config, {label: len(words) for label, words in lists.items()})
    inputs = [*args.in_private_text, *([args.in_public_lists] if lists else [])]
    fingerprint = release.fingerprint_of(config, inputs)
    people = people_of(texts, protected.unit, " ".join(map(str, args.in_private_text)))
    with begin_release(args, spending(config, protected), fingerprint, people) as begun:
        sanitize(args.out_dir, texts, lists, config, begun)
    for line in guarantees([begun.entry.spending])[0].lines():
        log.info(line)


if __name__ == "__main__":
    cli.run(main)
