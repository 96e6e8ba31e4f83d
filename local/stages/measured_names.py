"""classlm --measure-sanitizing: how many names taggers find, and what models tell of the others.

It stands in place of all language models of the recipe. Nothing is released.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from local.stages import voted_text
from local.stages.data import needs_lower_case, prepare_data, prepare_other_corpus
from local.stages.sanitized import public_lists
from privasr_k2.recipe import layers
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Matches, Paths, option, path_option

_TAGGER = "(spacy|gazetteer|presidio)"
Taggers = tuple[Annotated[str, Matches(rf"{_TAGGER}(\+{_TAGGER})*",
                                       "spacy, gazetteer or presidio, their union with +")], ...]
#: Labels of dates and times, which CoNLL's annotation and slots of dialogues lack.
_DATES = ("DATE", "TIME", "DATE_TIME")
_WRITTEN, _RESTORED = "as written", "restored"


@dataclass(frozen=True)
class MeasuredOptions(voted_text.VotedTextOptions):
    """Those of sanitized text and of votes, and what finding names is measured on."""

    measure_sanitizing: bool = option(False, "in place of LMs: who finds names, what models tell")
    measured_taggers: Taggers = option(("spacy", "gazetteer", "spacy+gazetteer"),
                                       "who is measured; presidio: where it is installed")
    measured_conll: Paths = option((), "annotated text (CoNLL, without dates) measured, too")
    measured_corpus: str = option("", "corpus of egs/ whose test is measured, too (without dates)")
    measured_dir: Path | None = path_option("where --measured-corpus is")


@dataclass(frozen=True)
class _Text:
    """A text with annotated names: its stages' flags and values."""

    name: str
    gold: str
    lists: str
    cased: str | None
    flags: Mapping[str, Any]
    values: Mapping[str, Any]
    has_capitals_restored: bool


def measure(r: Recipe, o: MeasuredOptions) -> None:
    """0: texts; 1: annotated names; 2, 3: taggers and their score; 4, 5: names that are planted."""
    needs_lower_case(r, "name lists")
    r.exp = "exp/classlm_measured"
    lists = public_lists(r, o)
    cased = "data/public/tagged.jsonl.gz" if lists == "data/public/lists" else None
    manifests = prepare_data(r, speech=False, features=False, make_lang=False).manifests
    own = _gold(r, r.corpus.name, cased, lists, in_definition=r.corpus.definition,
                in_text=f"{manifests}/cuts_test.jsonl.gz")
    for text in (*_of_conll(r, o), own, *_of_corpus(r, o, cased)):
        for tagger in o.measured_taggers:
            _score(r, text, tagger, _WRITTEN)
            if text.has_capitals_restored and "spacy" in tagger:
                _score(r, text, tagger, _RESTORED)
    _attack(r, o, own, manifests, lists)
    r.sort_stages()
    r.report(6, manifests=manifests, max_lines=300)


def _gold(r: Recipe, name: str, cased: str | None, lists: str, *, dates: bool = True,
          in_definition: Path | str | None = None, **source: Any) -> _Text:
    """Stage 1: annotated names of a text, in four classes."""
    values = {} if dates else dict.fromkeys((f"classes.{label}" for label in _DATES), "''")
    flags = {"in_definition": in_definition}
    gold = r.stage(1, f"annotated names, {name}", "tag_entities", config="tag_entities", **source,
                   **flags, out_text=f"data/measured/{name}/gold.jsonl.gz",
                   set={"taggers": ["gold"], **values})
    return _Text(name, gold, lists, cased, flags, values, cased is not None and "in_text" in source)


def _of_conll(r: Recipe, o: MeasuredOptions) -> list[_Text]:
    """Each file with lists and capitals of all other public text."""
    texts = []
    for file in o.measured_conll:
        name = file.name.split(".")[0]
        folder = f"data/measured/{name}"
        others = r.stage(0, f"names of public text but {name}", "tag_entities",
                         config="tag_entities", raw_conll=o.public_text or file,
                         out_text=f"{folder}/public.jsonl.gz",
                         set={"taggers": ["gold"], "leave_out": [name]})
        lists = _lists(r, f"lists without {name}", others, f"{folder}/lists")
        texts.append(_gold(r, name, others, lists, dates=False, raw_conll=file))
    return texts


def _of_corpus(r: Recipe, o: MeasuredOptions, cased: str | None) -> list[_Text]:
    if not o.measured_corpus:
        return []
    name = o.measured_corpus
    manifests = f"data/measured/{name}/manifests"
    definition = prepare_other_corpus(r, name, o.measured_dir, manifests)
    if cased is None:
        r.refuse("--measured-corpus", "--public-text, whose names are its lists", "none", "add it")
    lists = _lists(r, f"lists without dates, {name}", str(cased), f"data/measured/{name}/lists")
    return [_gold(r, name, cased, lists, dates=False, in_definition=definition,
                  in_text=f"{manifests}/cuts_test.jsonl.gz")]


def _lists(r: Recipe, title: str, tagged: str, out: str) -> str:
    return r.stage(0, title, "make_name_lists", config="name_lists", in_tagged=tagged,
                   out_lists=out, set={"dates": False})


def _tag(r: Recipe, number: int, title: str, tagger: str, text: _Text, source: str, out: str,
         seen: str = _WRITTEN) -> str:
    """Names that a tagger, or several, find in a text."""
    case = {"case": "caseless"} if seen == _RESTORED else {}
    known = {"in_public_lists": text.lists} if "gazetteer" in tagger else {}
    if text.cased and (known or case):
        known["in_public_cased"] = text.cased
    return r.stage(number, title, "tag_entities", config="tag_entities", in_text=source,
                   out_text=out, **known, **text.flags,
                   set={"taggers": tagger.split("+"), **case, **text.values})


def _score(r: Recipe, text: _Text, tagger: str, seen: str) -> None:
    """Stages 2 and 3: what a tagger finds in a text, against its annotation."""
    name = f"{tagger.replace('+', '_')}_{seen.replace(' ', '_')}"
    found = _tag(r, 2, f"names by {tagger}, {text.name}, {seen}", tagger, text, text.gold,
                 f"data/measured/{text.name}/{name}.jsonl.gz", seen)
    system = r.system(f"{text.name}/{name}", label=tagger, method="tagger",
                      measured=text.name, seen=seen)
    for kind in ("entities", "found_names"):
        system.artifacts[kind] = f"{system.folder}.json"
    r.stage(3, f"score of {tagger}, {text.name}, {seen}", "report_entities",
            config="report_entities", in_text=found, in_gold=text.gold,
            out_report=f"{system.folder}.json")


def _attack(r: Recipe, o: MeasuredOptions, own: _Text, manifests: str, lists: str) -> None:
    """Stages 4 and 5: planted names, and models of text that each tagger's names are taken of."""
    train = r.stage(4, "annotated names of train", "tag_entities", config="tag_entities",
                    in_text=f"{manifests}/cuts_train.jsonl.gz", **own.flags,
                    out_text="data/measured/train_gold.jsonl.gz", set={"taggers": ["gold"]})
    planted = r.stage(4, "names that are planted", "plant_canaries", config="plant_names",
                      in_text=train, in_public_lists=lists, **own.flags,
                      out_dir=f"{r.exp}/planted")
    known = _Text(own.name, "", f"{planted}/lists", own.cased, own.flags, own.values, False)
    tagged = [_tag(r, 4, f"planted text by {tagger}", tagger, known, f"{planted}/gold.jsonl.gz",
                   f"{r.exp}/tagged/{tagger.replace('+', '_')}.jsonl.gz")
              for tagger in o.measured_taggers]
    audit = r.stage(5, "planted names in models of sanitized text", "audit",
                    config=("sanitize", "lm_ngram", "audit_names"), device=True,
                    in_planted=planted, in_tagged=tagged, in_scored=own.gold,
                    out_audit=f"{r.exp}/planted_names.json")

    def add(name: str, label: str, **values: Any) -> Any:
        system = r.system(f"names/{name}", label=label, method="names", **values)
        system.add("planted_names", f"{audit}#{name}")
        system.add("perplexity", f"{audit}#{name}")
        return system

    original = add("original", "as it was said")
    add("unseen", "without the planted names", compare_with=[original])
    for tagger in ("gold", *o.measured_taggers):
        for keep in layers.value(r.config("audit_names"), "keep_probs"):
            add(f"{tagger.replace('+', '_')}_{float(keep):g}", f"sanitized, {tagger}",
                compare_with=[original], keep_prob=float(keep))
