"""Language models of sanitized text: class-based first pass, adaptation, mixtures (turan2022)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from local.stages import class_lms, measured_names, voted_text
from local.stages.class_lms import BASE, MODELS, Lms, Setting, plain_systems
from local.stages.first_pass import choose_am
from local.stages.sanitized import sanitize, text_lang
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Natural, Positives, from_conf, option


@dataclass(frozen=True)
class Options(measured_names.MeasuredOptions):
    """Those of sanitized text, of votes and of measured names, and the LMs."""

    adapt_percent: Positives | None = option(None, "adaptation text, % of words (12 15 20)")
    original: bool | None = option(None, "models of original text (unless --max-epsilon)")
    mix: Literal["em", "preset"] = option("em", "mixtures: chosen on dev, or the paper's")
    decode: bool = option(True, "false: perplexities alone, for corpora without speech")
    finetune_epochs: Count | None = from_conf("lm_tune.epochs", "epochs of M4's softmax")
    sub_lm: Literal["tree", "bigram", "unigram"] | None = from_conf(
        "class_lm.sub_lm", "M2: words of a name as in the lists, in pairs or in any order")
    user_contacts: Natural | None = option(
        None, "M1 with each speaker's own names, beside so many of others")


def stages(r: Recipe, o: Options) -> None:
    """Stages 0 to 6 are those of sanitized text, 9 to 15 those of class_lms."""
    if o.measure_sanitizing:
        measured_names.measure(r, o)
        return
    if o.user_contacts is not None and not o.decode:
        r.refuse("--user-contacts", "speech, which names are found in", "--decode false",
                 "remove one of them")
    am = choose_am(r, o) if o.decode else None
    default = (30.0,) if r.data.preset == "tiny" else (12.0, 15.0, 20.0)  # tiny has few users
    percents = default if o.adapt_percent is None else o.adapt_percent
    with_original = r.run.max_epsilon is None if o.original is None else o.original
    released = voted_text.only_released(r, o, not with_original and not percents)
    r.exp = f"exp/classlm_{am.name if am else 'text'}{'_released' if released else ''}"
    s = sanitize(r, o, am, percents)
    sanitized, original = Setting(BASE[0], "sanitized", s.privacy), Setting("original", "original")
    direct, adapted = {}, {}  # the adaptation text of each setting
    for percent in percents:
        text, privacy = class_lms.adaptation_text(r, s, percent)
        direct[Setting(f"direct_{percent:g}", "direct", privacy, percent)] = text
        adapted[Setting(f"adapt_{percent:g}", "adapt", privacy, percent)] = text
    # One vocabulary, so that perplexities compare; of released text where nothing else may be made.
    own = [] if released else ["background", *(f"adapt_{percent:g}" for percent in percents)]
    lang = text_lang(r, s, "lang directory of all words",
                     f"{s.data.lang}_{'names' if own else 'released'}",
                     [s.text, *map(s.part, own), *voted_text.word_lists(o)], all_words=not released)
    c = Lms(r, s, lang, o.mix if percents else "", o.lm_epochs,
            o.finetune_epochs if percents else None, o.sub_lm, released)
    plain = {original: [s.part("background")]} if with_original else {}
    plain |= {sanitized: [s.text], **{setting: [s.text, text] for setting, text in direct.items()}}
    for setting, texts in plain.items():
        class_lms.train_four(c, setting, texts)
    for setting, text in adapted.items():
        class_lms.adapt_four(c, setting, text)
    plain_systems(c, plain)
    if o.user_contacts is not None:
        class_lms.add_contacts(c, o.user_contacts)
    voted_text.add_voted(c, o)
    for setting in adapted:
        adapted_systems(c, setting, f"direct_{setting.percent:g}")
    if adapted:
        smallest = min(adapted, key=lambda setting: setting.percent or 0)
        mixed = Setting("mixed", "mixed", smallest.privacy, smallest.percent)
        files = class_lms.mix_lms(c, mixed, smallest, adapted[smallest])
        rivals = ("sanitized", "mixed", smallest.name, f"direct_{smallest.percent:g}")
        mixed_systems(c, mixed, files, rivals)
    class_lms.perplexities(c)
    if o.decode:
        class_lms.error_rates(c)
    r.report(16, manifests=s.scored)


def adapted_systems(c: Lms, setting: Setting, direct: str) -> None:
    """Against the models before adaptation, and those that had the same text from the start."""
    for model, equation in (("M1", 1), ("M1", 2), ("M2", 1), ("M2", 2), ("M3", None), ("M4", None)):
        name = f"{model}_eq{equation}" if equation else model
        against = [BASE, ("sanitized", model), (direct, model)]
        against += [(setting.name, f"M1_eq{equation}")] if model == "M2" else []
        file, lists = MODELS[model].replace(model, name), BASE if model == "M4" else None
        class_lms.add_system(c, setting, name, file, model=model, against=against, lists=lists,
                             equation=equation)


def mixed_systems(c: Lms, setting: Setting, files: Mapping, rivals: Collection) -> None:
    """Exact mixtures against static ones; that of all against what sees no more original text."""
    static = {"M1_M2_exact": "M1_M2", "M1_M2_M3_exact": "M1_M2_M3"}
    for name, file in files.items():
        against = [BASE, (setting.name, static.get(name, ""))]
        against += [pair for pair in c.systems if pair[0] in rivals] if name == "M1_M2_M4" else []
        lists = None if name in static.values() else (setting.name, "M1_M2")
        class_lms.add_system(c, setting, name, file, model=name, against=against, lists=lists)
