"""Stages 0 to 8 of recipes with a first pass: data, LM, graph, acoustic model, decoding.

The first pass is a CTC model in a graph, or a public recognizer with a decoder of its own.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from local.stages.data import (
    Data,
    am_layers,
    feature_name,
    needs_lower_case,
    part_values,
    prepare_data,
)
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Choices, Count, Positive, from_conf, option, path_option
from privasr_k2.text.hotwords import Bonus, LogProb, read_hotwords


def encoder_names() -> tuple[str, ...]:
    """The encoders that --encoder takes. Torch is imported where somebody asks."""
    from privasr_k2.am.encoders import EncoderConfig

    return tuple(EncoderConfig.choices())


#: The option of a list, with that of its setting.
LISTS = {"hotwords": "hotword_bonus", "contacts": "contact_log_prob"}


@dataclass(frozen=True)
class AmOptions:
    """Options of the acoustic model."""

    encoder: Annotated[str, Choices(encoder_names)] | None = option(
        None, "encoder (default: tdnn, with --preset paper blstm)"
    )
    max_duration: Positive | None = from_conf("am_ctc.max_duration", "seconds of speech in a batch")
    avg: Count | None = from_conf("am_ctc.avg", "checkpoints to average")
    am_model: Path | None = path_option("a CTC model trained elsewhere: TorchScript or ONNX")
    am_tokens: Path | None = path_option("tokens.txt of --am-model")
    am_bpe: Path | None = path_option("bpe.model of --am-model, with --token-type bpe_N")
    am_code: Path | None = path_option(
        "icefall's folder of --am-model, a state dict: its train.py is run and builds the model")
    am_args: str | None = from_conf(
        "icefall_code.model_args", "options of that train.py: --am-args='--use-ctc 1 ...'")


@dataclass(frozen=True)
class GraphOptions(AmOptions):
    """Those of the acoustic model, and what its graph prefers."""

    hotwords: Path | None = path_option(
        "names and phrases of a user, one a line, maybe a tab and a bonus: found more often")
    hotword_bonus: Bonus | None = from_conf("hotwords.hotword_bonus", "of each of their words, ln")
    contacts: Path | None = path_option(
        "names of a user in the same format, as a class of the n-gram LM; in place of --hotwords")
    contact_log_prob: LogProb | None = from_conf(
        "contacts.contact_log_prob", "ln P of any of these names after the empty history")


@dataclass(frozen=True)
class FirstPassOptions(GraphOptions):
    """Those of the acoustic model and its graph, or a recognizer that needs none."""

    whisper: Path | None = path_option(
        "folder of a Whisper model for CTranslate2: its own decoder is the first pass")


@dataclass(frozen=True)
class FirstPass:
    """One decoding graph with its acoustic model, or a Whisper model.

    Attributes:
        am, graph: empty with Whisper.
        lm: the n-gram LM.
        exp: its folder, with weights, decode_dev and decode_test.
        name: tells it from first passes with other options, in names of folders.
        whisper: the folder of a Whisper model, whose search has no weights to choose.
        has_list: whether the graph has words of its own.
        contacts: file with names of each speaker; ``graph`` is one that takes them.
    """

    data: Data
    am: str
    lm: str
    graph: str
    exp: str
    name: str = ""
    whisper: Path | None = None
    has_list: bool = False
    contacts: str = ""

    @property
    def lang(self) -> str:
        """The folder with the words that it can find, and their pronunciations."""
        return self.graph if self.has_list else self.data.lang

    @property
    def weights(self) -> str | None:
        """LM weight and insertion penalty, chosen on dev."""
        return None if self.whisper else f"{self.exp}/weights.json"


@dataclass(frozen=True)
class Am:
    """Which acoustic model: its name, and the lang directory it needs.

    Attributes:
        head: the name of the model that it begins with, trained on a frozen public encoder.
    """

    name: str
    lang_name: str
    lang_flags: dict[str, Path | None]
    head: str = ""

    @property
    def exp(self) -> str:
        """The folder of its first pass."""
        return f"exp/ctc_{self.name}"

    @property
    def folder(self) -> str:
        """Where the model stands."""
        return am_folder(self.name)


def am_folder(name: str) -> str:
    """Where the acoustic model of a name stands."""
    return f"exp/ctc_{name}/am"


def choose_am(r: Recipe, o: AmOptions) -> Am:
    """The acoustic model that the options ask for."""
    token_type, model = r.data.token_type, o.am_model
    if model is None:
        part = r.data.encoder_trained
        on = "" if r.data.encoder_model is None else f"{feature_name(r)}_"
        head = f"{on}{default_encoder(r, o)}_{token_type}"
        return Am(head if part == "head" else f"{head}_{part}", token_type, {}, head)
    if o.am_tokens is None:
        r.refuse("--am-model", "--am-tokens with it", "none",
                 "give the tokens.txt of the model: --am-tokens FILE")
    flags = {"raw_tokens": o.am_tokens, "raw_bpe_model": o.am_bpe}
    return Am(f"{model.stem}_{token_type}", f"{token_type}_{model.stem}", flags)


def default_encoder(r: Recipe, o: AmOptions) -> str:
    """The encoder that is trained: on features, or upon a public one."""
    is_paper = r.data.preset == "paper" and r.data.encoder_model is None
    return o.encoder or ("blstm" if is_paper else "tdnn")


def train_acoustic_model(r: Recipe, o: AmOptions, am: Am, data: Data) -> str:
    """Stage 5."""
    if o.am_model is not None:
        code = {} if o.am_code is None else {"raw_model_code": o.am_code, "config": "icefall_code",
                                             "set": {"model_args": o.am_args}}
        return r.stage(5, "imported acoustic model", "import_external", raw_model=o.am_model,
                       raw_tokens=o.am_tokens, out_dir=am.folder, **code)
    if not r.corpus.trains_am:
        r.refuse("--decode true", "a public acoustic model, as the corpus has no part train",
                 "none", "give --whisper DIR, or --am-model FILE")
    head = train_head(r, 5, "acoustic model", o, data, am_folder(am.head))
    if r.data.encoder_trained == "head":
        return head
    title = f"{r.data.encoder_trained} of the public encoder"
    return train_upper(r, 5, title, o, data, head, am.folder)


def train_head(r: Recipe, number: int, title: str, o: AmOptions, data: Data, out: str,
               **values: Any) -> str:
    """Train a model on features, or on the outputs of a frozen public encoder."""
    encoder = default_encoder(r, o)
    return r.stage(number, f"{title}, {encoder}", "train_am", train=True,
                   config=am_layers(r, "ctc"), in_feats=data.outputs,
                   in_lang=f"{data.lang}/spoken", out_dir=out,
                   set={"encoder.kind": encoder, **_am_values(o), **values})


def train_upper(r: Recipe, number: int, title: str, o: AmOptions, data: Data, head: str, out: str,
                **values: Any) -> str:
    """Train ``--encoder-trained`` of a public encoder, and the head on it."""
    values |= part_values(r)
    return r.stage(number, title, "train_am", train=True,
                   config=(*am_layers(r, "ctc"), "am_upper"), in_feats=data.feats, in_init=head,
                   in_public_encoder=r.data.encoder_model, in_lang=f"{data.lang}/spoken",
                   out_dir=out,
                   set={"encoder.kind": default_encoder(r, o), **_am_values(o), **values})


def _am_values(o: AmOptions) -> dict[str, Any]:
    return {"max_duration": o.max_duration, "avg": o.avg}


def backend(r: Recipe) -> str | None:
    """The decoder, where it is not the default."""
    return None if r.data.backend == "k2" else r.data.backend


def decode(r: Recipe, number: int, title: str, first: FirstPass, role: str, out: str, *,
           tuned: bool) -> str:
    """Decode a role with the first pass's graph: over a grid of weights, or with tuned ones."""
    graph, config = {"in_graph": first.graph}, ["decode"]
    if first.contacts:
        graph = {"in_contact_graph": first.graph, "in_contacts": first.contacts,
                 "in_lang": first.data.lang}
        config += ["contacts"]
    return r.stage(number, title, "decode", jobs=r.run.nj, device=True, config=config,
                   in_model=first.am, **graph,
                   in_weights=first.weights if tuned else None, in_feats=first.data.feats,
                   out_hyps=f"{out}/JOB.jsonl", set={"role": role, "backend": backend(r)})


def tune_weights(r: Recipe, number: int, title: str, first: FirstPass) -> str:
    """Choose the LM weight and the insertion penalty with the fewest errors on dev."""
    return r.stage(number, title, "tune_weights", in_hyps=f"{first.exp}/decode_dev",
                   in_manifests=first.data.manifests, out_weights=first.weights)


def own_or_public_first_pass(r: Recipe, o: FirstPassOptions) -> FirstPass:
    """:func:`first_pass`; with ``--whisper`` stages 0, 2 and 3: lists are made where needed."""
    if o.whisper is None:
        return first_pass(r, o)
    data = prepare_data(r, features=False)
    name = f"whisper_{o.whisper.name}"
    return FirstPass(data, "", train_ngram(r, data), "", f"exp/{name}", name, o.whisper)


def train_ngram(r: Recipe, data: Data) -> str:
    """Stage 3."""
    return r.stage(3, "n-gram LM", "train_ngram", config="lm_ngram", in_manifests=data.manifests,
                   in_lang=data.lang, raw_arpa=r.data.arpa,
                   out_lm=f"data/lm/{data.lang_name}.arpa.gz")


def use_list(r: Recipe, o: GraphOptions) -> str:
    """What folders of a run with a list are called after; its systems are named after it, too."""
    kind = kind_of_list(r, o)
    if not kind:
        return ""
    needs_lower_case(r, kind)
    if kind == "contacts" and r.data.backend == "kaldi":
        r.refuse("--backend", "k2, which alone decodes with contacts", "kaldi",
                 "remove it, or give the list as --hotwords")
    listed, value = read_hotwords(getattr(o, kind)), getattr(o, LISTS[kind])
    r.note = f", {len(listed.entries)} {kind} of {listed.name}"
    r.facts |= {kind: listed.name, f"{kind[:-1]}_entries": len(listed.entries), LISTS[kind]: value}
    return f"_{kind}_{listed.name}{'' if value is None else f'_{value:g}'}"


def kind_of_list(r: Recipe, o: GraphOptions) -> str:
    """The option with which a list is given, empty for none."""
    given = [kind for kind in LISTS if getattr(o, kind) is not None]
    if len(given) > 1:
        r.refuse("--contacts", "one list", "--hotwords, too",
                 "give one of them; runs with either stand beside each other")
    return "".join(given)


def compile_graph(r: Recipe, o: GraphOptions, data: Data, lm: str, name: str) -> str:
    """Stage 4."""
    flags = {"in_lang": data.lang, "in_lm": lm, "out_dir": f"data/graph_{data.lang_name}{name}"}
    kind = kind_of_list(r, o)
    if not kind:
        return r.stage(4, "decoding graph", "compile_graph", config="graph", **flags)
    return r.stage(4, f"decoding graph with {kind}", "compile_graph", config=("graph", kind),
                   **{f"in_{kind}": getattr(o, kind)}, **flags,
                   set={LISTS[kind]: getattr(o, LISTS[kind])})


def first_pass(r: Recipe, o: GraphOptions) -> FirstPass:
    """Stages 0 to 8, the same for all recipes and written once."""
    am = choose_am(r, o)
    data = prepare_data(r, lang_name=am.lang_name, lang_flags=am.lang_flags)
    listed = use_list(r, o)
    suffix = f"{listed}{'_kaldi' if r.data.backend == 'kaldi' else ''}"
    lm = train_ngram(r, data)
    graph = compile_graph(r, o, data, lm, listed)
    model = train_acoustic_model(r, o, am, data)
    first = FirstPass(data, model, lm, graph, f"{am.exp}{suffix}", f"{am.name}{suffix}",
                      has_list=bool(listed))
    decode(r, 6, "decode dev over a grid of weights", first, "dev", f"{first.exp}/decode_dev",
           tuned=False)
    tune_weights(r, 7, "LM weight and insertion penalty, chosen on dev", first)
    decode(r, 8, "decode test", first, "test", f"{first.exp}/decode_test", tuned=True)
    return first


def score(
    r: Recipe, number: int, title: str, *, hyps: str, out: str, first: FirstPass,
    weights: str | None = None,
    role: str = "test", lang: str = "", **flags: str,
) -> str:
    """Count the errors of a role's hypotheses."""
    return r.stage(number, title, "wer", config="wer", in_hyps=hyps, in_weights=weights,
                   in_manifests=first.data.manifests, in_lang=lang or first.lang, out_dir=out,
                   set={"role": role}, **flags)


def write_recognizer(r: Recipe, number: int, title: str, first: FirstPass) -> str:
    """What ``privasr transcribe --in-exp`` reads, in the folder of the first pass."""
    return r.stage(number, title, "export", config=("decode", "graph", *LISTS),
                   in_model=first.am, in_graph=first.graph, in_feats=first.data.feats,
                   in_weights=first.weights, in_lang=first.data.lang, in_lm=first.lm,
                   out_recognizer=f"{first.exp}/recognizer.yaml", set={"backend": backend(r)})
