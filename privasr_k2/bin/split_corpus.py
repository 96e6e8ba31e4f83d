r"""Split a corpus by its people: tagged text into parts, or speech into private and public sides.

    privasr verb split_corpus --in-manifests data/tagged --in-text data/manifests/written.jsonl \
        --out-dir data/split --config conf/classlm.yaml#split_text --set sizes=[12,15,20]
    privasr verb split_corpus --in-feats data/feats_fbank \
        --in-public-train data/public/feats_fbank --out-dir data/sides_fbank \
        --config conf/pate.yaml#split_speech --set 'pool_speakers=[anna,bert]'

--in-manifests: background, adaptation parts of several sizes, dev and test. They are *.jsonl.gz
files of tagged text: background, adapt_12 and so on, dev and test. about.json holds minutes of
speech, users, words and entities of each part. Text of --in-text joins the role train.
declare_unprotected enters adaptation text that is used as it is in the ledger.

--in-feats: private/ and public/ (roles train and dev), pool/ (role pool, without texts) and
sides.json, which names the speakers of each. roster_speaker.txt and roster_utterance.txt name the
private units, whether or not they have data: those of --in-public-roster (a speaker a line, or
Kaldi's utt2spk), else of train of --in-manifests. Sides are dealt out by the roster. All of that
but private/ is public, as is the corpus's dev. The pool is that of the corpus. Otherwise it has the
named speakers of train, or a drawn pool_share of them. Likewise the public speech is
--in-public-train, or speakers of train.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.data import private_public_split
from privasr_k2.data.manifests import cuts_path, roles
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, read_jsonl, write_json
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.splits import SplitConfig, describe, split_texts
from privasr_k2.text.tagged_files import needs_entities, read_tagged, write_tagged

log = logging.getLogger(__name__)
_ROLES = ("train", "adapt", "dev", "test")


def main() -> None:
    """Parse, split, write."""
    args = cli.arguments(
        __doc__,
        in_manifests="[DIR] text: cuts, tagged; speech: whose train is the roster",
        in_text="[FILE...] text: more of train, tagged",
        in_spoken="[DIR] text: cuts with speech, where --in-manifests is text",
        in_feats="[DIR] speech: features of the corpus",
        in_public_roster="[FILE] speech: all of train, also who has no data",
        in_public_train="[DIR] speech: features of another corpus, public",
        out_dir="DIR the parts, or the sides",
    )
    if args.in_feats is None and args.in_manifests is None:
        raise ConfigError("the command line", "--in-manifests or --in-feats", "neither", "give one")
    of_speech = args.in_public_train or args.in_public_roster
    if (args.in_text or args.in_spoken) if args.in_feats else of_speech:
        expected = "--in-text, --in-spoken without --in-feats, --in-public-* with it"
        raise ConfigError("the command line", expected, "one with the other", "see --help")
    (_split_speech if args.in_feats else _split_text)(args)


def _split_speech(args: argparse.Namespace) -> None:
    config = cli.load(private_public_split.SplitConfig, args)
    sides = private_public_split.split_speech(
        args.in_feats,
        args.out_dir,
        config,
        public_feats=args.in_public_train,
        manifests=args.in_manifests,
        roster=args.in_public_roster,
    )
    for side, speakers in sides.items():
        log.info("%s: %d speakers", side, len(speakers))


def _split_text(args: argparse.Namespace) -> None:
    config = cli.load(SplitConfig, args)
    if not cuts_path(args.in_manifests, "train").is_file():
        there = " ".join(roles(args.in_manifests)) or "none"
        place = args.in_manifests
        raise DataError(place, "cuts of the role train", there, "name a manifests folder")
    seconds, copies = _speech(args.in_manifests)
    if args.in_spoken is not None:
        seconds, _ = _speech(args.in_spoken)
    texts: dict[str, list[TaggedText]] = {}
    for role in _ROLES:
        path = cuts_path(args.in_manifests, role)
        if path.is_file():
            read = read_tagged([path, *(args.in_text if role == "train" else ())])
            texts[role] = [text for text in read if text.id not in copies]
            needs_entities(texts[role], f"role {role}")
    split = split_texts(texts, config)
    about = describe(split, config, seconds)
    with atomic_path(args.out_dir) as folder:
        folder.mkdir()
        for name, of_part in split.parts.items():
            write_tagged(folder / f"{name}.jsonl.gz", of_part)
        write_json(folder / "about.json", about)
    for name, counts in about["parts"].items():
        size = about["sizes"].get(name)
        percent = f", {size['percent']:.2f} % of the background's" if size else ""
        log.info("%s: %d users, %d words%s", name, counts["users"], counts["words"], percent)


def _speech(manifests: Path) -> tuple[dict[str, float], frozenset[str]]:
    """Seconds of each cut with speech, and the ids of copies at another speed."""
    seconds, copies = {}, set()
    for role in _ROLES:
        path = cuts_path(manifests, role)
        for cut in read_jsonl(path) if path.is_file() else ():
            custom = cut.get("custom") or {}
            if "original_id" in custom:
                copies.add(cut["id"])
            elif not custom.get("text_only"):
                seconds[cut["id"]] = cut.get("duration", 0.0)
    return seconds, frozenset(copies)


if __name__ == "__main__":
    cli.run(main)
