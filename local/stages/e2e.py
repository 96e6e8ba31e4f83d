"""Stages 0 to 6 of recipes pate and dpsgd: data, public and private speakers, reference models."""

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from local.stages.data import am_layers, part_values, upon
from local.stages.sides import PublicOptions, Sides, prepare_sides, public_lm, train_public
from local.stages.whisper_decoder import (
    import_decoder,
    own_search,
    prepare_whisper,
    train_on_public,
)
from privasr_k2.recipe.declare import Declared, Recipe
from privasr_k2.recipe.options import Count, Positives, Words, from_conf, option, path_option

Model = Literal["ctc", "rnnt", "ctc_attention", "las", "whisper"]
Models = Annotated[tuple[Model, ...], MinLen(1)]


@dataclass(frozen=True)
class E2eOptions(PublicOptions):
    """Options of pate and dpsgd."""

    models: Models = option(("ctc",), "models to train")
    graph: bool = option(False, "ctc: search words in a graph with the public LM; always of phones")
    init: Literal["public", "scratch"] = option("public", "initial weights of private training")
    privacy_unit: Literal["speaker", "utterance"] = option("speaker", "what a guarantee hides")
    dpsgd_whole: bool = option(
        False, "DP-SGD of all weights (section dpsgd), as in yang2022, in place of dpsgd_norms")
    dpsgd_trained: Words = option(
        (), "parts that DP-SGD trains: all output last_block bias norm lora (default: by conf)")
    whisper: Path | None = path_option(
        "folder of a Whisper model for CTranslate2: its own decoder, beside the models")
    weights: Literal["each", "public"] | None = option(
        None, "LM weight and insertion penalty, by dev, of each system or the public model"
              " (default: each in a graph)")
    private_epochs: Count | None = from_conf("am_finetune.epochs",
                                             "epochs of models of private data")


@dataclass
class E2e(Sides):
    """The outputs of stages 0 to 6.

    Attributes:
        base: folder of models without a claim; ``tuned``: of those that depend on ``--init``.
        name: of public encoder, tokens and decoder, in names of folders.
        graph: the decoding graph of public words and their LM; empty for end-to-end decoding.
        below: a model's folder with what is decoded, where a graph is one of two decoders.
        several: whether there are systems of several numbers of people, which their names say.
        planted: the private side with canaries, where an attack has put some; empty: none.
        decoding: sections of the search.
        decoded: systems to decode: each with its architecture, its model's folder and settings.
        own: Whisper's own search, or nothing.
        start: where DP-SGD begins, by model, if not at the public model.
        public_model, not_private, dpsgd: systems by model (and by epsilon).
        untaught: the public model as it was before it learned the pool, by model.
    """

    base: str
    tuned: str
    dpsgd_exp: str
    protects: str
    graph: str = ""
    below: str = ""
    name: str = ""
    decoding: tuple[str, ...] = ()
    several: bool = False
    planted: str = ""
    decoded: list[tuple[Declared, str, str, dict[str, str]]] = field(default_factory=list)
    own: list[Declared] = field(default_factory=list)
    start: dict[str, str] = field(default_factory=dict)
    public_model: dict[str, Declared] = field(default_factory=dict)
    untaught: dict[str, Declared] = field(default_factory=dict)
    not_private: dict[str, Declared] = field(default_factory=dict)
    dpsgd: dict[tuple[str, float], Declared] = field(default_factory=dict)

    @property
    def private(self) -> str:
        """What private models learn from."""
        return self.planted or super().private

    def roster(self, unit: str) -> str | None:
        """The public list of all private units; None: there is none, or canaries joined them."""
        return f"{self.dealt}/roster_{unit}.txt" if self.sides and not self.planted else None

    def public_systems(self, model: str) -> list[Declared]:
        """Those without private data: where private training begins, and the others."""
        untaught = [self.untaught[model]] if model in self.untaught else []
        return [self.public_model[model], *untaught, *self.own]

    def protecting(self, people: int) -> "E2e":
        """The same with so many private speakers; 0: all that there are."""
        some = f"_{people}people" if people else ""
        return replace(self, people=people, tuned=self.tuned + some,
                       dpsgd_exp=self.dpsgd_exp + some, not_private={}, dpsgd={})

    @property
    def of_people(self) -> str:
        """End of labels and titles: how many people, where there are several numbers of them."""
        return f", {self.people} people" if self.several and self.people else ""

    def private_system(self, r: Recipe, name: str, *, label: str, **facts: Any) -> Declared:
        """A system of private people; among several numbers of them it says how many."""
        end = f"_{self.people}people" if self.several and self.people else ""
        system = r.system(f"{name}{end}", label=f"{label}{self.of_people}", **facts)
        if self.several:
            system.add("people", f"{self.dealt}/sides.json")
        return system

    def public_am(self, model: str) -> str:
        """The public model of an architecture."""
        return f"{self.base}/{model}/public/am"

    def weights(self, model: str) -> str:
        """What dev chose for the public model of an architecture."""
        return f"{self.base}/{model}{self.below}/weights.json"


def shown(number: float) -> str:
    """A number as names of folders have it."""
    return f"{number:g}"


def am_config(r: Recipe, o: E2eOptions, model: str) -> tuple[str, ...]:
    """Settings of a private training: shorter where it starts at the public model."""
    upper = () if r.data.encoder_trained == "head" else ("am_upper",)
    finetune = o.init == "public" and model != "whisper"
    return (*am_layers(r, model), *upper, *(["am_finetune"] if finetune else []))


def prepare_e2e(r: Recipe, o: E2eOptions, *, people: tuple[int, ...] = ()) -> E2e:
    """Stages 0 to 3: data, who is private and who public, and a lang directory of public text.

    Args:
        people: numbers of private speakers for :meth:`E2e.protecting`; 0: all that there are.
    """
    d, several = r.data, len(people) > 1
    protects = f"each {o.privacy_unit} of {r.people}/train"
    trained = "_whole" * o.dpsgd_whole + "".join(f"_{part}" for part in o.dpsgd_trained)
    if "whisper" in o.models:
        w, name = prepare_whisper(r, o, people), f"{upon(r)}{d.token_type}"
        name += "_tuned" if w.sides else ""
        return E2e(w.data, w.sides, w.head_sides, fewer=w.fewer, base=f"exp/e2e_{name}",
                   tuned=f"exp/e2e_{name}", several=several,
                   dpsgd_exp=f"exp/dpsgd_{name}{trained}_{o.privacy_unit}",
                   protects=protects, name=name, decoding=("decode_e2e", "decode_whisper"))
    has_graph = o.graph or d.token_type == "phone"
    if has_graph and o.models != ("ctc",):
        r.refuse("--models", "ctc alone with a graph, which phones need", " ".join(o.models),
                 "add --models ctc, or --token-type char --graph false")
    if o.graph_text is not None and not has_graph:
        r.refuse("--graph-text", "a graph", "end-to-end decoding", "add --graph true")
    both = o.graph and d.token_type != "phone"
    other_words = "_graph" if both and o.graph_text is not None else ""  # perhaps other tokens
    s = prepare_sides(r, o, people=people, lang_end=other_words)
    graph = public_graph(r, o, s) if has_graph else ""
    name = f"{upon(r)}{d.token_type}"
    base = f"exp/e2e_{name}{other_words}"
    scratch = "_scratch" if o.init == "scratch" else ""
    return E2e(s.data, s.sides, s.head_sides, fewer=s.fewer, base=base, tuned=base + scratch,
               dpsgd_exp=f"exp/dpsgd_{name}{other_words}{trained}_{o.privacy_unit}{scratch}",
               several=several,
               protects=protects, graph=graph, below="/graph" * both, name=name + "_graph" * both,
               decoding=("decode",) if graph else ("decode_e2e",))


def public_graph(r: Recipe, o: E2eOptions, s: Sides) -> str:
    """Stage 3: the n-gram LM of public text, and its graph."""
    lm = public_lm(r, o, s, s.lang, f"data/lm/{s.data.lang_name}.arpa.gz")
    return r.stage(3, "decoding graph", "compile_graph", config="graph", in_lang=s.lang,
                   in_lm=lm, out_dir=f"data/graph_{s.data.lang_name}")


def recognize(r: Recipe, e: E2e, number: int, title: str, *, model: str, role: str, feats: str,
              out: str, weights: str | None = None, in_shards: str | None = None,
              **settings: str) -> str:
    """Decode a role, with the weights that dev chose or over a grid of them.

    Args:
        in_shards: of teachers that decode together; ``model`` is their folder.
    """
    return r.stage(number, title, "decode", jobs=r.run.nj, device=True,
                   config=e.decoding, in_model=model, in_shards=in_shards,
                   in_graph=e.graph or None, in_feats=feats, in_weights=weights,
                   out_hyps=f"{out}/JOB.jsonl", set={"role": role, **settings})


def public_decoder(r: Recipe, o: E2eOptions, e: E2e, folder: str) -> str:
    """Stage 4: Whisper's decoder as it comes, or trained further on public speech where it is."""
    if not e.sides:
        return import_decoder(r, e, folder)
    loaded = r.system("whisper/imported", label="as downloaded", method="public",
                      folder=f"{e.base}/whisper/imported", model="whisper")
    am = import_decoder(r, e, loaded.folder)
    e.own.append(loaded)
    e.decoded.append((loaded, "whisper", am, {}))
    return train_on_public(r, o, e, am, folder)


def train_references(r: Recipe, o: E2eOptions, e: E2e) -> None:
    """Stages 4 and 5: a model of public data alone, and one of all private data."""
    train_public_models(r, o, e)
    train_not_private(r, o, e)


def train_public_models(r: Recipe, o: E2eOptions, e: E2e) -> None:
    """Stage 4: each model of public data alone; what is tuned on dev is tuned for it."""
    e.own += own_search(r, e.data, o.whisper)  # of all that share this list
    for model in o.models:
        folder = f"{e.base}/{model}/public"
        if model == "whisper":
            am = public_decoder(r, o, e, folder)
        else:
            am = train_public(r, o, e, model, folder)
        e.public_model[model] = public = r.system(
            f"{model}/public", label="public only", method="public", folder=folder, model=model,
            compare_with=e.own)
        what = "LM weight and insertion penalty" if e.graph else "insertion penalty"
        tuned_weights(r, e, 4, f"public {model}", f"{what} of {model}", am=am,
                      decoded=f"{folder}{e.below}/decode_dev", out=e.weights(model))
        e.decoded.append((public, model, am, {}))


def train_not_private(r: Recipe, o: E2eOptions, e: E2e) -> None:
    """Stage 5: each model of all private data, which nothing protects."""
    for model in o.models:
        e.not_private[model] = system = e.private_system(
            r, f"{model}/nonprivate", label="not private", method="not_private",
            folder=f"{e.tuned}/{model}/nonprivate",
            compare_with=e.public_systems(model), model=model)
        am = r.stage(5, f"{model} of all private data{e.of_people}", "train_am", train=True,
                     config=am_config(r, o, model), in_feats=e.private, in_lang=e.lang,
                     in_init=public_init(o, e, model), out_dir=f"{system.folder}/am",
                     set={"epochs": o.private_epochs, **part_values(r)})
        e.decoded.append((system, model, am, {}))


def public_init(o: E2eOptions, e: E2e, model: str) -> str | None:
    """Where a private training begins."""
    return e.public_am(model) if o.init == "public" else None


def dpsgd_config(o: E2eOptions, model: str) -> tuple[str, ...]:
    """Sections of DP-SGD: random weights are trained whole, whatever the options."""
    if o.dpsgd_whole or o.init == "scratch":
        return ("dpsgd",)
    return ("dpsgd", "dpsgd_norms", *(["dpsgd_whisper"] if model == "whisper" else []))


def train_dpsgd(r: Recipe, o: E2eOptions, e: E2e, epsilons: Positives) -> None:
    """Stage 6: DP-SGD at each epsilon (privasr_k2.dpsgd.train), and the audit of its claim."""
    scratch = {"init": "scratch"} if o.init == "scratch" else {}
    for model in o.models:
        for epsilon in epsilons:
            name = shown(epsilon)
            claims = epsilon < inf
            system = e.private_system(
                r, f"{model}/dpsgd_{name}", label=f"DP-SGD, epsilon {name}", method="dpsgd",
                folder=f"{e.dpsgd_exp}/{model}/dpsgd_{name}",
                compare_with=e.public_systems(model), public=e.public_model[model],
                not_private=e.not_private[model], protects=e.protects if claims else "",
                headline=claims, model=model, epsilon=epsilon)
            system.add("dpsgd", f"{system.folder}/am/dpsgd.json")
            e.dpsgd[model, epsilon] = system
            data = {"data": f"{r.people}/train", "unit": o.privacy_unit, "delta": o.delta}
            data |= {"epsilon": epsilon} if claims else {}
            data |= {"trained": list(o.dpsgd_trained)} if o.dpsgd_trained else part_values(r)
            init = e.start.get(model, e.public_am(model))
            roster = e.roster(o.privacy_unit) or (None if e.planted else o.roster)
            title = f"DP-SGD, {model}, epsilon {name}{e.of_people}"
            am = r.stage(6, title, "train_dpsgd", train=True,
                         config=dpsgd_config(o, model), spends=claims, in_private_feats=e.private,
                         in_public_dev=e.public, in_public_roster=roster, in_lang=e.lang,
                         in_public_init=init,
                         out_dir=f"{system.folder}/am",
                         out_privacy=system.path("privacy", "privacy.json") if claims else None,
                         set={**data, **scratch})
            e.decoded.append((system, model, am, {}))
            if o.audit and claims:
                r.stage(6, f"audit of {title}", "audit", device=True,
                        num_jobs=True, config=(*dpsgd_config(o, model), "audit_dpsgd"),
                        in_private_feats=e.private, in_public_dev=e.public, in_lang=e.lang,
                        in_init=init,
                        out_audit=system.path("audit", "audit.json"), set={**data, **scratch})


def decode_all(r: Recipe, o: E2eOptions, e: E2e, number: int) -> None:
    """Decode test with every system, and count errors."""
    for system, model, am, settings in e.decoded:
        public = system.folder == f"{e.base}/{model}/public"  # its weights are chosen already
        if public:
            system.add("weights", e.weights(model))
        decode_test(r, o, e, number, system, f"{system.folder}{e.below}", am=am,
                    weights=e.weights(model), each=False if public else None, **settings)


def decode_test(r: Recipe, o: E2eOptions, e: E2e, number: int, system: Declared, folder: str, *,
                am: str, weights: str, each: bool | None = None, **settings: str) -> None:
    """Decode test in the graph of ``e``, if it has one; count errors.

    Dev is public, so that what is chosen for a released model on it costs nothing.

    Args:
        weights: the public model's; ``each``: the system's own in their place; None: by --weights.
    """
    if each is None:
        each = bool(e.graph) if o.weights is None else o.weights == "each"
    if each:
        folder += "/own_weights"
        weights = tuned_weights(r, e, number, system.name, f"weights of {system.name}", am=am,
                                decoded=f"{folder}/decode_dev", out=f"{folder}/weights.json",
                                **settings)
        system.add("weights", weights)
    hyps = f"{folder}/decode_test"
    recognize(r, e, number, f"decode test, {system.name}", model=am, role="test",
              feats=e.data.feats, weights=weights, out=hyps, **settings)
    r.stage(number, f"score {system.name}", "wer", config="wer",
            in_hyps=hyps, in_weights=weights, in_manifests=e.data.manifests, in_lang=e.lang,
            out_dir=system.add("score_test", f"{folder}/score_test"), set={"role": "test"})


def tuned_weights(r: Recipe, e: E2e, number: int, name: str, title: str, *, am: str, decoded: str,
                  out: str, **settings: str) -> str:
    """Decode dev with a model over the grid of weights, and choose the best point."""
    recognize(r, e, number, f"decode dev, {name}", model=am, role="dev", feats=e.public,
              out=decoded, **settings)
    return r.stage(number, f"{title}, chosen on dev", "tune_weights", in_hyps=decoded,
                   in_manifests=e.data.manifests, out_weights=out)
