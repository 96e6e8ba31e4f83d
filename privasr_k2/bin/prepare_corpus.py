"""Write the manifests of a corpus, checked.

--out-dir gets cuts_<role>.jsonl.gz, corpus.json, and lexicon.txt and lm_text.txt.gz where there are
any. Options of all corpora, with --set: drop_empty=true leaves out utterances without words,
max_characters_per_second=N is the densest text that is believed, not_scored=uh,um names words that
are left out when errors are counted, text_case=keep|lower|upper is that of all text and of the
lexicon, sampling_rate=HZ that of all audio. The others belong to the corpus. Where the corpus has
problems, all of them stand in problems.tsv beside --out-dir.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli
from privasr_k2.corpora.base import ROLES, CorpusInput, load_corpus
from privasr_k2.corpora.prepare import prepare
from privasr_k2.errors import ConfigError

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, prepare, say what was found."""
    args = cli.arguments(
        __doc__,
        in_definition="PATH a Python file that exports CORPUS",
        raw_corpus="[PATH] the corpus; nothing is written there",
        **{f"raw_{role}": f"[PATH...] manifests or Kaldi directories of {role}" for role in ROLES},
        raw_lm_text="[PATH...] text to take for language models",
        raw_lexicon="[PATH] lexicon to take instead of the corpus's own",
        out_dir="PATH manifests folder",
    )
    given = CorpusInput(
        raw_dir=args.raw_corpus,
        out_dir=args.out_dir,
        options=dict(_option(item) for item in args.set),
        config_files=tuple(args.config),
        num_jobs=args.num_jobs,
        files={role: tuple(paths) for role in ROLES if (paths := getattr(args, f"raw_{role}"))},
    )
    about = prepare(
        load_corpus(args.in_definition), given, lm_text=args.raw_lm_text, lexicon=args.raw_lexicon
    )
    shown = {"keep": "its own case", "lower": "lower case", "upper": "upper case"}
    log.info("text and lexicon: %s, Unicode NFC", shown[about["text_case"]])
    for role, of_role in about["roles"].items():
        log.info("%s: %d utterances, %.2f h, %d speakers", role, *list(of_role.values())[:3])


def _option(item: str) -> tuple[str, str]:
    name, sign, value = item.partition("=")
    if not sign:
        raise ConfigError("--set", "key=value", repr(item), f"write --set {item}=VALUE")
    return name, value


if __name__ == "__main__":
    cli.run(main)
