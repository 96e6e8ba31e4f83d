"""Stages 0 to 6 of recipes pate and dpsgd: data, public and private speakers, reference models."""

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from local.stages.data import (
    Data,
    am_layers,
    compute_features,
    feature_name,
    part_values,
    prepare_data,
    prepare_lang,
    upon,
)
from local.stages.whisper_decoder import import_decoder, own_search, prepare_whisper
from privasr_k2.recipe.declare import Declared, Recipe
from privasr_k2.recipe.options import (
    Count,
    Delta,
    Positives,
    Words,
    from_conf,
    option,
    path_option,
)

Model = Literal["ctc", "rnnt", "ctc_attention", "las", "whisper"]
Models = Annotated[tuple[Model, ...], MinLen(1)]
MODEL_LABELS = {"rnnt": "RNN-T", "ctc_attention": "CTC/attention", "las": "LAS", "ctc": "CTC",
                "whisper": "Whisper"}


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


@dataclass(frozen=True)
class E2eOptions(PublicOptions):
    """Options of pate and dpsgd."""

    models: Models = option(("ctc",), "models to train")
    graph: bool = option(False, "ctc: search words in a graph with the public LM; always of phones")
    init: Literal["public", "scratch"] = option("public", "initial weights of private training")
    privacy_unit: Literal["speaker", "utterance"] = option("speaker", "what a guarantee hides")
    dpsgd_trained: Words = option(
        (), "parts that DP-SGD trains: all output last_block bias norm lora (default: by conf)")
    whisper: Path | None = path_option(
        "folder of a Whisper model for CTranslate2: its own decoder, beside the models")
    private_epochs: Count | None = from_conf("am_finetune.epochs",
                                             "epochs of models of private data")


@dataclass
class Sides:
    """The outputs of stages 0 to 2, and the lang folder of public text.

    Attributes:
        private, public, pool: features folders; only ``private`` is protected.
        all_private: everybody of train is private, and the model public as it comes; dev is public.
        head_sides: the sides of a public encoder's outputs, on which the public model's head is
            trained; ``sides``, unless further layers are trained.
    """

    data: Data
    sides: str
    head_sides: str
    all_private: bool = field(default=False, kw_only=True)

    @property
    def lang(self) -> str:
        return self.data.lang

    @property
    def private(self) -> str:
        return self.data.feats if self.all_private else f"{self.sides}/private"

    @property
    def public(self) -> str:
        return self.data.feats if self.all_private else f"{self.sides}/public"

    @property
    def pool(self) -> str:
        return f"{self.sides}/pool"


@dataclass
class E2e(Sides):
    """The outputs of stages 0 to 6.

    Attributes:
        base: folder of models without a claim; ``tuned``: of those that depend on ``--init``.
        name: of public encoder, tokens and decoder, in names of folders.
        graph: the decoding graph of public words and their LM; empty for end-to-end decoding.
        planted: the private side with canaries, where an attack has put some; empty: none.
        decoded: systems to decode: each with its architecture, its model's folder and settings.
        own: Whisper's own search, or nothing.
        public_model, not_private, dpsgd: systems by model (and by epsilon).
    """

    base: str
    tuned: str
    dpsgd_exp: str
    protects: str
    graph: str = ""
    name: str = ""
    planted: str = ""
    decoded: list[tuple[Declared, str, str, dict[str, str]]] = field(default_factory=list)
    own: list[Declared] = field(default_factory=list)
    public_model: dict[str, Declared] = field(default_factory=dict)
    not_private: dict[str, Declared] = field(default_factory=dict)
    dpsgd: dict[tuple[str, float], Declared] = field(default_factory=dict)

    @property
    def private(self) -> str:
        """What private models learn from."""
        return self.planted or super().private

    def public_am(self, model: str) -> str:
        """The public model of an architecture."""
        return f"{self.base}/{model}/public/am"

    @property
    def decoding(self) -> str | tuple[str, ...]:
        """Sections of the search."""
        if self.graph:
            return "decode"
        return ("decode_e2e", "decode_whisper") if self.all_private else "decode_e2e"

    def weights(self, model: str) -> str:
        """What dev chose for the public model of an architecture."""
        return f"{self.base}/{model}/weights.json"


def shown(number: float) -> str:
    """A number as names of folders have it."""
    return f"{number:g}"


def am_config(r: Recipe, o: E2eOptions, model: str) -> tuple[str, ...]:
    """Settings of a private training: shorter where it starts at the public model."""
    upper = () if r.data.encoder_trained == "head" else ("am_upper",)
    finetune = o.init == "public" and model != "whisper"
    return (*am_layers(r, model), *upper, *(["am_finetune"] if finetune else []))


def prepare_e2e(r: Recipe, o: E2eOptions) -> E2e:
    """Stages 0 to 3: data, who is private and who public, and a lang directory of public text."""
    d = r.data
    protects = f"each {o.privacy_unit} of {r.people}/train"
    trained = "".join(f"_{part}" for part in o.dpsgd_trained)
    if "whisper" in o.models:
        data, name = prepare_whisper(r, o), f"{upon(r)}{d.token_type}"
        base, dpsgd = f"exp/e2e_{name}", f"exp/dpsgd_{name}{trained}_{o.privacy_unit}"
        return E2e(data, "", "", base, base, dpsgd, protects, name=name, all_private=True)
    has_graph = o.graph or d.token_type == "phone"
    if has_graph and o.models != ("ctc",):
        r.refuse("--models", "ctc alone with a graph, which phones need", " ".join(o.models),
                 "add --models ctc, or --token-type char --graph false")
    if o.graph_text is not None and not has_graph:
        r.refuse("--graph-text", "a graph", "end-to-end decoding", "add --graph true")
    s = prepare_sides(r, o)
    graph = public_graph(r, o, s) if has_graph else ""
    # Phones always have a graph; with other tokens it is another decoder, in folders of its own.
    name = f"{upon(r)}{d.token_type}{'_graph' * (o.graph and d.token_type != 'phone')}"
    base = f"exp/e2e_{name}"
    scratch = "_scratch" if o.init == "scratch" else ""
    return E2e(s.data, s.sides, s.head_sides, base, base + scratch,
               f"exp/dpsgd_{name}{trained}_{o.privacy_unit}{scratch}", protects, graph=graph,
               name=name)


def prepare_sides(r: Recipe, o: PublicOptions) -> Sides:
    """Stages 0 to 3: data, who is private and who public, and a lang directory of public text."""
    d = r.data
    data = prepare_data(r, lang_name=f"{d.token_type}_public", make_lang=False)
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
    if public_feats is not None and data.outputs != data.feats:
        r.refuse("--encoder-trained", "public speech of this corpus", "--public-corpus",
                 "remove --encoder-trained: the head alone is trained")
    names = dict.fromkeys((data.feats, data.outputs))
    split = [r.stage(2, "split speakers", "split_corpus", config="split_speech", in_feats=feats,
                     in_manifests=data.manifests, in_public_roster=o.roster,
                     in_public_train=public_feats, out_dir=feats.replace("feats_", "sides_"))
             for feats in names]
    sides, head_sides = split[0], split[-1]
    prepare_lang(r, 3, f"lang directory of {d.token_type} tokens, from public text", data.lang,
                 in_public_manifests=f"{sides}/public", raw_public_lm_text=o.graph_text)
    r.about("sides", "speakers by side").add("sides", f"{sides}/sides.json")
    return Sides(data, sides, head_sides)


def public_lm(r: Recipe, o: PublicOptions, s: Sides, lang: str, out: str, *,
              number: int = 3) -> str:
    """The n-gram LM of public text, of the words of a lang directory.

    Beside another corpus it is mixed, with the weights that dev prefers, with one of the corpus's
    own public speakers: few sentences that say much would be lost among those of others.
    """
    def train(file: str, **text: Any) -> str:
        return r.stage(number, "n-gram LM of public text", "train_ngram", config="lm_ngram",
                       in_lang=lang, raw_arpa=r.data.arpa, out_lm=file, **text)

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


def public_graph(r: Recipe, o: E2eOptions, s: Sides) -> str:
    """Stage 3: the n-gram LM of public text, and its graph."""
    lm = public_lm(r, o, s, s.lang, f"data/lm/{s.data.lang_name}.arpa.gz")
    return r.stage(3, "decoding graph", "compile_graph", config="graph", in_lang=s.lang,
                   in_lm=lm, out_dir=f"data/graph_{s.data.lang_name}")


def recognize(r: Recipe, e: E2e, number: int, title: str, *, model: str, role: str, feats: str,
              out: str, weights: str | None = None, **settings: str) -> str:
    """Decode a role, with the weights that dev chose or over a grid of them."""
    return r.stage(number, title, "decode", jobs=r.run.nj, device=True,
                   config=e.decoding, in_model=model,
                   in_graph=e.graph or None, in_feats=feats, in_weights=weights,
                   out_hyps=f"{out}/JOB.jsonl", set={"role": role, **settings})


def train_references(r: Recipe, o: E2eOptions, e: E2e) -> None:
    """Stages 4 and 5: a model of public data alone, and one of all private data."""
    e.own = own_search(r, e.data, o.whisper)
    for model in o.models:
        folder = f"{e.base}/{model}/public"
        e.public_model[model] = public = r.system(
            f"{model}/public", label="public only", method="public", folder=folder, model=model,
            compare_with=e.own)
        am = (import_decoder(r, e.lang, folder) if model == "whisper"
              else train_public(r, o, e, model, folder))
        recognize(r, e, 4, f"decode dev, public {model}", model=am, role="dev", feats=e.public,
                  out=f"{folder}/decode_dev")
        what = "LM weight and insertion penalty" if e.graph else "insertion penalty"
        r.stage(4, f"{what} of {model}, chosen on dev", "tune_weights",
                in_hyps=f"{folder}/decode_dev",
                in_manifests=e.data.manifests, out_weights=e.weights(model))
        e.decoded.append((public, model, am, {}))
    for model in o.models:
        e.not_private[model] = system = r.system(
            f"{model}/nonprivate", label="not private", method="not_private",
            folder=f"{e.tuned}/{model}/nonprivate",
            compare_with=[e.public_model[model], *e.own], model=model)
        am = r.stage(5, f"{model} of all private data", "train_am", train=True,
                     config=am_config(r, o, model), in_feats=e.private, in_lang=e.lang,
                     in_init=public_init(o, e, model), out_dir=f"{system.folder}/am",
                     set={"epochs": o.private_epochs, **part_values(r)})
        e.decoded.append((system, model, am, {}))


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


def public_init(o: E2eOptions, e: E2e, model: str) -> str | None:
    """Where a private training begins."""
    return e.public_am(model) if o.init == "public" else None


def dpsgd_config(model: str) -> tuple[str, ...]:
    """Sections of DP-SGD."""
    return ("dpsgd", "dpsgd_whisper") if model == "whisper" else ("dpsgd",)


def train_dpsgd(r: Recipe, o: E2eOptions, e: E2e, epsilons: Positives) -> None:
    """Stage 6: DP-SGD at each epsilon (privasr_k2.dpsgd.train), and the audit of its claim."""
    scratch = {"init": "scratch"} if o.init == "scratch" else {}
    for model in o.models:
        for epsilon in epsilons:
            name = shown(epsilon)
            claims = epsilon < inf
            system = r.system(f"{model}/dpsgd_{name}", label=f"DP-SGD, epsilon {name}",
                              method="dpsgd", folder=f"{e.dpsgd_exp}/{model}/dpsgd_{name}",
                              compare_with=[e.public_model[model], *e.own],
                              public=e.public_model[model],
                              not_private=e.not_private[model],
                              protects=e.protects if claims else "", headline=claims, model=model,
                              epsilon=epsilon)
            e.dpsgd[model, epsilon] = system
            data = {"data": f"{r.people}/train", "unit": o.privacy_unit, "delta": o.delta}
            data |= {"epsilon": epsilon} if claims else {}
            data |= {"trained": list(o.dpsgd_trained)} if o.dpsgd_trained else part_values(r)
            am = r.stage(6, f"DP-SGD, {model}, epsilon {name}", "train_dpsgd", train=True,
                         config=dpsgd_config(model), spends=claims, in_private_feats=e.private,
                         in_public_dev=e.public, in_lang=e.lang, in_public_init=e.public_am(model),
                         out_dir=f"{system.folder}/am",
                         out_privacy=system.path("privacy", "privacy.json") if claims else None,
                         set={**data, **scratch})
            e.decoded.append((system, model, am, {}))
            if o.audit and claims:
                r.stage(6, f"audit of DP-SGD, {model}, epsilon {name}", "audit", device=True,
                        num_jobs=True, config=(*dpsgd_config(model), "audit_dpsgd"),
                        in_private_feats=e.private, in_public_dev=e.public, in_lang=e.lang,
                        in_init=e.public_am(model),
                        out_audit=system.path("audit", "audit.json"), set={**data, **scratch})


def decode_all(r: Recipe, e: E2e, number: int) -> None:
    """Decode test with every system and its architecture's insertion penalty; count errors."""
    for system, model, am, settings in e.decoded:
        weights = e.weights(model)
        recognize(r, e, number, f"decode test, {system.name}", model=am, role="test",
                  feats=e.data.feats, weights=weights, out=f"{system.folder}/decode_test",
                  **settings)
        r.stage(number, f"score {system.name}", "wer", config="wer",
                in_hyps=f"{system.folder}/decode_test",
                in_weights=weights, in_manifests=e.data.manifests, in_lang=e.lang,
                out_dir=system.path("score_test"), set={"role": "test"})
