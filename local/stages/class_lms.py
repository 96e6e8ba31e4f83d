"""Stages 7 to 15 of classlm: the four models of turan2022, adaptation, mixtures, error rates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from local.stages.first_pass import FirstPass, decode, score, tune_weights
from local.stages.sanitized import PROTECTS, Sanitized
from local.stages.second_pass import nbest_lists, rescore, score_roles, train_lm
from privasr_k2.recipe.declare import Declared, Recipe

BASE = ("sanitized", "M1")  # setting and name of what every system is compared with
MODELS = {"M1": "M1.arpa.gz", "M2": "M2", "M3": "M3.arpa.gz", "M4": "M4"}


@dataclass(frozen=True)
class Setting:
    """How the text of LMs was made.

    Attributes:
        name: the folder of its LMs.
        kind: sanitized, original, direct (trained on both), adapt (to the other) or mixed.
        privacy: the guarantee of its text; empty for original text.
        percent: size of the adaptation text.
    """

    name: str
    kind: str
    privacy: str = ""
    percent: float | None = None


@dataclass
class LmSystem:
    """A system and its LM.

    Attributes:
        lists: the one-pass system whose N-best lists it rescores.
        contacts: so many names of others stand beside those of each speaker, who has them.
    """

    name: str
    declared: Declared
    lm: str
    lists: "LmSystem | None" = None
    contacts: int | None = None


@dataclass
class Lms:
    """What stages of LMs share.

    Attributes:
        lang: has all words.
        released: all of them are of the released text.
        systems: by setting and name.
    """

    r: Recipe
    s: Sanitized
    lang: str
    mix: str
    lm_epochs: int | None
    finetune_epochs: int | None
    sub_lm: str | None
    released: bool
    systems: dict[tuple[str, str], LmSystem] = field(default_factory=dict)

    def folder(self, setting: Setting) -> str:
        """Where the LMs of a setting stand."""
        return f"{self.r.exp}/{setting.name}/lm"

    @property
    def dev(self) -> dict[str, str]:
        """Text that decides when to stop and how to smooth; it is public where a claim holds."""
        return {"in_public_dev_text" if self.released else "in_dev": self.s.part("dev")}


def adaptation_text(r: Recipe, s: Sanitized, percent: float) -> tuple[str, str]:
    """Stage 7: original text to adapt to, and the ledger's entry that nothing protects it."""
    name, privacy = f"adapt_{percent:g}", f"{r.exp}/adapt_{percent:g}_privacy.json"
    folder = r.stage(7, f"adaptation text of {percent:g} %, as it is: no guarantee",
                     "declare_unprotected", spends=True, config="declare_unprotected",
                     in_private_text=s.part(name), out_dir=f"{r.exp}/{name}/unprotected",
                     out_privacy=privacy, set={"data": f"{r.people}/train and {r.people}/adapt",
                                               "purpose": "language models are adapted to it"})
    return f"{folder}/{name}.jsonl.gz", privacy


def train_four(c: Lms, setting: Setting, texts: Sequence[str]) -> None:
    """Stage 9: word n-gram (M1), class n-gram (M2), LSTM (M4), n-grams that approximate it (M3)."""
    r, s, out = c.r, c.s, c.folder(setting)
    of_dev = c.dev if c.released else {"in_manifests": s.texts}
    r.stage(9, f"M1, word n-gram, {setting.name}", "train_ngram", config="lm_ngram", in_text=texts,
            **of_dev, in_lang=c.lang, out_lm=f"{out}/M1.arpa.gz")
    r.stage(9, f"M2, class n-gram, {setting.name}", "train_ngram", config="class_lm", in_text=texts,
            in_public_lists=s.public_lists, **c.dev, in_lang=c.lang, out_class_lm=f"{out}/M2",
            set={"sub_lm": c.sub_lm})
    train_lm(r, 9, f"M4, LSTM, {setting.name}", "lstm", f"{out}/M4", in_text=texts, **c.dev,
             in_lang=c.lang, set={"epochs": c.lm_epochs})
    approximate(c, 9, setting, texts)


def approximate(c: Lms, number: int, setting: Setting, texts: Sequence[str]) -> None:
    """M3: an n-gram LM with the probabilities of M4."""
    out = c.folder(setting)
    c.r.stage(number, f"M3, n-grams of M4, {setting.name}", "train_ngram", device=True,
              config="approximate", in_lm=f"{out}/M4", in_text=texts, **c.dev,
              in_lang=c.lang, out_lm=f"{out}/M3.arpa.gz")


def adapt_ngram(
    c: Lms, setting: Setting, model: Literal["M1", "M2"], text: str,
    equation: Literal["1", "2", "null"]
) -> str:
    """Stage 10: an n-gram LM of sanitized text, adapted by eq. 1 or 2; null: the better on dev."""
    name = model if equation == "null" else f"{model}_eq{equation}"
    choice = f"{c.folder(setting)}/{name}_choice.json"
    c.r.about(f"{setting.name}/lm/{name}", f"adaptation of {name}, {setting.name}").add("weights",
                                                                                        choice)
    return c.r.stage(10, f"{name}, adapted, {setting.name}", "adapt_lm", config="fma",
                     in_lm=f"{c.r.exp}/sanitized/lm/{MODELS[model]}", in_text=text,
                     in_dev=c.s.part("dev"), in_background_text=c.s.text,
                     out_lm=f"{c.folder(setting)}/{name}{MODELS[model].removeprefix(model)}",
                     out_choice=choice, set={"equation": equation})


def adapt_four(c: Lms, setting: Setting, text: str) -> None:
    """Stage 10: the models of sanitized text, adapted to a little original text."""
    out = c.folder(setting)
    for equation in ("1", "2"):
        adapt_ngram(c, setting, "M1", text, equation)
        adapt_ngram(c, setting, "M2", text, equation)
    train_lm(c.r, 10, f"M4, its softmax adapted, {setting.name}", "lstm", f"{out}/M4",
             config=["lm_tune"], in_init=f"{c.r.exp}/sanitized/lm/M4", in_text=text,
             in_dev=c.s.part("dev"), in_lang=c.lang, set={"epochs": c.finetune_epochs})
    approximate(c, 10, setting, [c.s.text])


def mix_lms(c: Lms, setting: Setting, adapted: Setting, text: str) -> dict[str, str]:
    """Stages 10 and 11: linear mixtures [turan2022, eq. 3], the file of each.

    One ARPA for a first pass mixes only the root models of M1 and M2; a second pass is exact.
    """
    m1, m2 = (adapt_ngram(c, setting, model, text, "null") for model in ("M1", "M2"))
    m3, m4 = (f"{c.folder(adapted)}/{MODELS[model]}" for model in ("M3", "M4"))
    mixtures = {
        "M1_M2": ("M1_M2", "static", (m1, m2)),
        "M1_M2_M3": ("M1_M2_M3", "static", (m1, m2, m3)),
        "M1_M2_exact": ("M1_M2_exact.json", "dynamic", (m1, m2)),
        "M1_M2_M3_exact": ("M1_M2_M3_exact.json", "dynamic", (m1, m2, m3)),
        "M1_M2_M4": ("M1_M2_M4.json", "dynamic", (m1, m2, m4)),
    }
    for name, (file, form, lms) in mixtures.items():
        weights = f"{c.folder(setting)}/{name}_weights.json"
        c.r.about(f"{setting.name}/lm/{name}", f"mixture {name}").add("weights", weights)
        c.r.stage(11, f"mixture {name}", "interpolate_lms", device=True, config="interpolate",
                  in_lm=lms, in_dev=c.s.part("dev"), out_lm=f"{c.folder(setting)}/{file}",
                  out_weights=weights, set={"form": form, "weights": c.mix})
    return {name: file for name, (file, _, _) in mixtures.items()}


def add_system(
    c: Lms, setting: Setting, name: str, file: str, *, model: str,
    against: Iterable[tuple[str, str]],
    lists: tuple[str, str] | None = None, equation: int | None = None,
    contacts: int | None = None,
) -> None:
    """Declare a system with an LM; it is ``against`` those of a setting and name that there are."""
    original = c.systems.get(("original", model)) if setting.kind == "sanitized" else None
    # The words of an LM's vocabulary are in no release, unless they are the released text's. With
    # speech its tokens are of what was said in train, and errors are those of a model of it.
    covered = c.released and setting.kind == "sanitized" and not c.s.am
    declared = c.r.system(
        f"{setting.name}/{name}", label=f"{name}, {setting.name}", setting=setting.kind,
        model=model, method="not_private" if setting.kind == "original" else "classlm",
        percent=setting.percent, equation=equation, contacts=contacts,
        compare_with=[c.systems[pair].declared for pair in against if pair in c.systems],
        not_private=original.declared if original else None,
        headline=setting.kind == "sanitized" and model == "M2", protects=PROTECTS if covered else ""
    )
    lm = f"{c.folder(setting)}/{file}"
    if contacts is None:  # the LM of another system
        declared.add("perplexity", f"{c.r.exp}/perplexity_test.json#{lm}")
    if covered:
        declared.add("privacy", setting.privacy)
    first = c.systems[lists] if lists else None
    c.systems[setting.name, name] = LmSystem(name, declared, lm, first, contacts)


def plain_systems(c: Lms, settings: Iterable[Setting]) -> None:
    """M1 to M3 in one pass, M4 in a second one upon M1."""
    for setting in settings:
        for model, file in MODELS.items():
            against = [BASE, ("original", model)] if setting.kind == "sanitized" else [BASE]
            if (setting.name, model) == BASE:
                against = [("original", name) for name in MODELS]
            against += [(setting.name, "M1")] if model == "M2" else []
            lists = (setting.name, "M1") if model == "M4" else None
            add_system(c, setting, model, file, model=model, against=against, lists=lists)


def add_contacts(c: Lms, others: int) -> None:
    """M1 of sanitized text with the names of whoever speaks, among so many others."""
    setting, _ = BASE
    against = [BASE, (setting, "M2"), ("original", "M1")]
    add_system(c, Setting(setting, setting), "M1_contacts", MODELS["M1"], model="M1_contacts",
               against=against, contacts=others)


def perplexities(c: Lms) -> None:
    """Stage 12."""
    lms = list(dict.fromkeys(system.lm for system in c.systems.values()))
    for role in ("dev", "test"):
        c.r.stage(12, f"perplexities of {role}", "perplexity", device=True, in_text=c.s.part(role),
                  in_lang=c.lang, in_lm=lms,
                  out_perplexity=f"{c.r.exp}/perplexity_{role}.json")


def error_rates(c: Lms) -> None:
    """Stages 13 to 15: one pass with n-gram LMs; a second pass with others on N-best lists."""
    r, data = c.r, replace(c.s.data, manifests=c.s.scored, lang=c.lang)
    first: dict[str, FirstPass] = {}
    one_pass = [system for system in c.systems.values() if system.lists is None]
    for system in one_pass:
        name, folder = system.declared.name, system.declared.folder
        contacts, out = "", {"out_dir": f"{folder}/graph"}
        if system.contacts is not None:
            out = {"out_contact_graph": f"{folder}/contacts.safetensors"}
            contacts = r.stage(13, f"{name}: names of each user", "make_name_lists",
                               config="user_names", in_tagged=[c.s.part("dev"), c.s.part("test")],
                               out_contacts=f"{folder}/contacts.tsv",
                               set={"others": system.contacts})
        graph = r.stage(13, f"{name}: graph", "compile_graph", config="graph", in_lang=c.lang,
                        in_lm=system.lm, **out)
        first[name] = FirstPass(data, c.s.am, system.lm, graph, folder, contacts=contacts)
        decode(r, 13, f"{name}: dev over a grid of weights", first[name], "dev",
               f"{folder}/decode_dev", tuned=False)
        system.declared.add("weights",
                            tune_weights(r, 13, f"{name}: weights, chosen on dev", first[name]))
        decode(r, 13, f"{name}: test", first[name], "test", f"{folder}/decode_test", tuned=True)
        score(r, 13, f"{name}: score", hyps=f"{folder}/decode_test", weights=first[name].weights,
              first=first[name], out=system.declared.path("score_test"))
    two_passes = [(system, system.lists.declared) for system in c.systems.values() if system.lists]
    for lists in {lists.name: lists for _, lists in two_passes}.values():
        for role in ("dev", "test"):
            nbest_lists(r, 14, f"N-best lists of {role}, {lists.name}", first[lists.name], role,
                        f"{lists.folder}/nbest_{role}")
    for system, lists in two_passes:
        declared = system.declared
        scores = score_roles(r, 15, declared.name, f"{lists.folder}/nbest_ROLE", system.lm,
                             system.name, f"{declared.folder}/lm_scores/ROLE.safetensors")
        rescore(r, 15, declared, f"{lists.folder}/nbest_ROLE", [scores], c.s.scored)
        score(r, 15, f"{declared.name}: score", hyps=f"{declared.folder}/decode_test",
              first=first[lists.name], out=declared.path("score_test"))
