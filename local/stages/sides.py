"""Stages 0 to 4 of recipes that protect some speakers and begin with public ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.stages.data import (
    Data,
    am_layers,
    compute_features,
    feature_name,
    part_values,
    prepare_data,
    prepare_lang,
)
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Delta, from_conf, option, path_option


@dataclass(frozen=True)
class PublicOptions:
    """Options of recipes that begin with public speech, and protect other people's."""

    graph_text: Path | None = path_option(
        "public text for the words and the LM of that graph: a normalized sentence a line")
    delta: Delta = option(1e-5, "delta of the guarantee")
    audit: bool = option(True, "audit every claim, and test membership")
    roster: Path | None = path_option("public list of all speakers of train, or Kaldi's utt2spk"
                                      " (default: who is in train)")
    public_corpus: str = option("",
                                "corpus whose train is public with its texts: of egs/, or FILE.py")
    public_dir: Path | None = path_option("where --public-corpus is")
    public_feature: str = option("", "features of --public-corpus (default: --feature)")
    public_conf: Path | None = path_option("conf of --public-corpus (default: this corpus's)")
    public_feats: Path | None = path_option("public features in place of --public-corpus")
    public_epochs: Count | None = from_conf("am_ctc.epochs", "epochs of the public model")


@dataclass
class Sides:
    """The outputs of stages 0 to 2, and the lang folder of public text.

    Attributes:
        sides: the folder of those below; empty: everybody of train is private, and dev public.
        fewer: sides with so many private speakers, whose private one counts, by that number.
        people: private speakers, a key of ``fewer``; 0: all that there are.
        private, public, pool: features folders; only ``private`` is protected.
        head_sides: the sides of a public encoder's outputs, on which the public model's head is
            trained; ``sides``, unless further layers are trained.
    """

    data: Data
    sides: str
    head_sides: str
    fewer: Mapping[int, str] = field(default_factory=dict, kw_only=True)
    people: int = field(default=0, kw_only=True)

    @property
    def lang(self) -> str:
        return self.data.lang

    @property
    def dealt(self) -> str:
        """The folder of sides that says who is private."""
        return self.fewer.get(self.people, self.sides)

    @property
    def private(self) -> str:
        return f"{self.dealt}/private" if self.sides else self.data.feats

    @property
    def public(self) -> str:
        return f"{self.sides}/public" if self.sides else self.data.feats

    @property
    def pool(self) -> str:
        return f"{self.sides}/pool"


def prepare_sides(r: Recipe, o: PublicOptions, *, people: tuple[int, ...] = (),
                  lang_end: str = "") -> Sides:
    """Stages 0 to 3: data, who is private and who public, and a lang directory of public text."""
    token_type = r.data.token_type
    data = prepare_data(r, lang_name=f"{token_type}_public{lang_end}", make_lang=False)
    s = split_sides(r, o, data, people=people)
    prepare_lang(r, 3, f"lang directory of {token_type} tokens, from public text", s.lang,
                 in_public_manifests=s.public, raw_public_lm_text=o.graph_text)
    return s


def split_sides(r: Recipe, o: PublicOptions, data: Data, *, people: tuple[int, ...] = (),
                **split: Any) -> Sides:
    """Stages 1 and 2: the public corpus, and who is private and who public.

    Args:
        people: numbers of private speakers, for folders of their own; 0: all that there are.
        split: values upon section ``split_speech``.
    """
    public_feats: Path | str | None = o.public_feats
    if o.public_corpus and public_feats is None:
        feature = o.public_feature or feature_name(r)
        definition = o.public_corpus
        if "/" not in definition:
            definition = str(r.root / f"privasr_k2/corpora/{definition}.py")
        r.stage(1, "manifests of the public corpus", "prepare_corpus", in_definition=definition,
                raw_corpus=o.public_dir, out_dir="data/public/manifests", num_jobs=True,
                config=r.corpus_config(o.public_corpus, o.public_conf or r.corpus.conf))
        public_feats = compute_features(r, f"{feature} features of the public corpus",
                                        "data/public/manifests", f"data/public/feats_{feature}",
                                        kind=o.public_feature)
        if Path(definition).resolve() != r.corpus.definition.resolve():
            split["public_names"] = "own"
    if public_feats is not None and data.outputs != data.feats:
        r.refuse("--encoder-trained", "public speech of this corpus", "--public-corpus",
                 "remove --encoder-trained: the head alone is trained")

    def divide(feats: str, title: str, end: str = "", **values: Any) -> str:
        return r.stage(2, title, "split_corpus", config="split_speech", in_feats=feats,
                       in_manifests=data.manifests, in_public_roster=o.roster,
                       in_public_train=public_feats,
                       out_dir=feats.replace("feats_", "sides_") + end, set=values)

    names = dict.fromkeys((data.feats, data.outputs))
    folders = [divide(feats, "split speakers", **split) for feats in names]
    fewer = {number: divide(data.feats, f"split speakers, {number} private", f"_{number}people",
                            **split, most_private=number)
             for number in people if number}
    s = Sides(data, folders[0], folders[-1], fewer=fewer, people=people[0] if people else 0)
    shown = s.dealt if len(people) == 1 else s.sides
    r.about("sides", "speakers by side").add("sides", f"{shown}/sides.json")
    return s


def public_lm(r: Recipe, o: PublicOptions, s: Sides, lang: str, out: str, *,
              number: int = 3) -> str:
    """The n-gram LM of public text, of the words of a lang directory.

    Beside another corpus it is mixed, with the weights that dev prefers, with one of the corpus's
    own public speakers: few sentences that say much would be lost among those of others.
    """
    def train(file: str, **text: Any) -> str:
        return r.stage(number, "n-gram LM of public text", "train_ngram", config="lm_ngram",
                       in_lang=lang, raw_public_arpa=r.data.arpa, out_lm=file, **text)

    if not s.public:
        return train(out, in_public_text=o.graph_text)
    both = dict(in_public_manifests=s.public, raw_public_lm_text=o.graph_text)
    alone = not (o.public_corpus or o.public_feats)
    if alone or r.data.arpa is not None:
        return train(out, **both)
    stem = out.removesuffix(".arpa.gz")
    lms = [train(f"{stem}_all.arpa.gz", **both),
           train(f"{stem}_own.arpa.gz", in_public_text=f"{s.sides}/own/cuts_train.jsonl.gz")]
    return r.stage(number, "n-gram LM of public text, mixed", "interpolate_lms",
                   config="interpolate", in_lm=lms,
                   in_public_dev_text=f"{s.public}/cuts_dev.jsonl.gz", out_lm=out,
                   out_weights=f"{stem}_mixture.json")


def train_public(r: Recipe, o: PublicOptions, e: Sides, model: str, folder: str) -> str:
    """The public model; of a public encoder first its head, then ``--encoder-trained``."""
    head = e.head_sides == e.sides
    am = r.stage(4, f"public model, {model}", "train_am", train=True, config=am_layers(r, model),
                 in_feats=f"{e.head_sides}/public", in_lang=e.lang,
                 out_dir=f"{folder}/{'am' if head else 'head'}", set={"epochs": o.public_epochs})
    if head:
        return am
    return r.stage(4, f"public model, {model}, {r.data.encoder_trained}", "train_am", train=True,
                   config=(*am_layers(r, model), "am_upper"), in_feats=e.public, in_lang=e.lang,
                   in_init=am, in_public_encoder=r.data.encoder_model, out_dir=f"{folder}/am",
                   set=part_values(r))
