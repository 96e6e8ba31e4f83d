"""Stages 0 to 2 of every recipe: manifests, features, lang directory. They write to data/.

Beside them stand options that families of recipes share.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.recipe import layers
from privasr_k2.recipe.declare import EncoderPart, Recipe
from privasr_k2.recipe.options import option, settings_of
from privasr_k2.text.languages import ENGLISH, PHONES_OF_OTHERS, is_english, language_code

#: The layer of a public encoder below each part that is trained; none: its last.
BELOW: Mapping[str, tuple[int, ...]] = {"head": (), "last_block": (-2,), "bias": (0,), "lora": (0,),
                                        "all": (0,)}
#: Manifests of all text, where a part of it is spoken.
ALL_TEXT = "data/manifests_text"
LAYER_NAMES = {0: "_layer0", -2: "_before_last"}


@dataclass(frozen=True)
class PhoneOptions:
    """Of the report of recognizers that write words."""

    per: bool = option(False, "report the phone error rate of the words, too")


@dataclass(frozen=True)
class Data:
    """What a corpus's stages write: folders relative to the work folder.

    Attributes:
        feats: what acoustic models read.
        outputs: those of a public encoder's last layer, which a head is trained on; ``feats``,
            unless further layers are trained (``--encoder-trained``).
    """

    manifests: str
    feats: str
    lang: str
    lang_name: str
    outputs: str = ""


def prepare_corpus(r: Recipe, title: str, manifests: str, **settings: str) -> None:
    """Stage 0: the corpus's manifests, checked."""
    d, words = r.data, settings_of(r.data.corpus_options)
    files = {f"raw_{name}": value for name, value in r.own.items() if isinstance(value, tuple)}
    own = {name: value for name, value in r.own.items() if value and f"raw_{name}" not in files}
    for name in own.keys() & words.keys():
        r.refuse(f"--{name}", "a setting given once", f"{name}={words[name]} of --corpus-options",
                 "remove one of them")
    r.stage(0, title, "prepare_corpus", in_definition=r.corpus.definition, raw_corpus=d.corpus_dir,
            raw_lm_text=d.lm_text, raw_lexicon=d.lexicon, out_dir=manifests,
            config=r.corpus.conf_name,
            set={**r.corpus.settings, "text_case": d.text_case, **words, **own, **settings},
            num_jobs=True, **files)


def prepare_other_corpus(r: Recipe, name: str, raw: Path | None, manifests: str) -> Path:
    """Stage 0: manifests of another corpus of ``egs/``; its definition."""
    definition = r.root / f"privasr_k2/corpora/{name}.py"
    r.stage(0, f"manifests of {name}", "prepare_corpus", in_definition=definition, raw_corpus=raw,
            out_dir=manifests, num_jobs=True, config=r.corpus_config(name, r.corpus.conf))
    return definition


def needs_lower_case(r: Recipe, what: str) -> None:
    """Refuse another case than lower beside what is normalized to it."""
    if r.data.text_case in ("keep", "upper"):
        r.refuse("--text-case", f"lower, which {what} are in", r.data.text_case,
                 "remove --text-case")


def prepare_data(
    r: Recipe, *, speech: bool = True, features: bool = True, lang_name: str = "",
    make_lang: bool = True, lang_flags: Mapping[str, Any] | None = None,
) -> Data:
    """Stages 0 to 2. A recipe about text needs no features; it may make its own lang directory.

    A recognizer that computes its own features needs none, either.
    """
    d = r.data
    name = lang_name or d.token_type
    manifests, lang, settings = r.corpus.manifests, f"data/lang_{name}", {}
    if r.corpus.text_options and not speech:  # beside those of the part that is spoken
        manifests, lang = ALL_TEXT, f"{lang}_text"
        settings = settings_of(r.corpus.text_options.split())
    prepare_corpus(r, "manifests", manifests, **settings)
    feats = outputs = ""
    if features:
        feats, outputs = (f"data/feats_{feature_name(r, part)}"
                          for part in (d.encoder_trained, "head"))
    if speech:
        for folder in dict.fromkeys(filter(None, (outputs, feats))):
            part = d.encoder_trained if folder == feats else "head"
            compute_features(r, f"{feature_name(r, part)} features", manifests, folder, part=part)
    if make_lang:
        prepare_lang(r, 2, f"lang directory of {d.token_type} tokens", lang, in_manifests=manifests,
                     in_public_lists=r.corpus.vocabulary_lists, **(lang_flags or {}))
    return Data(manifests, feats, lang, name, outputs)


def feature_name(r: Recipe, part: EncoderPart = "head") -> str:
    """The kind of features, or the public encoder and the layer whose outputs they are."""
    model = r.data.encoder_model
    if model is None:
        if r.data.encoder_trained != "head":
            r.refuse("--encoder-trained", "--encoder-model with it", "none",
                     "give the folder of a public encoder: --encoder-model DIR")
        return r.data.feature
    layers = BELOW[part]
    return f"{model.name}{LAYER_NAMES[layers[0]]}" if layers else model.name


def compute_features(r: Recipe, title: str, manifests: str, feats: str, kind: str = "", *,
                     part: EncoderPart = "head") -> str:
    """Stage 1: features of all roles, of ``kind`` or as the options have it.

    Args:
        part: what of a public encoder is trained on them.
    """
    model = None if kind else r.data.encoder_model
    settings = {"kind": kind or (r.data.feature if model is None else "encoder"),
                "speed_perturb": r.data.speed_perturb, "encoder.layers": BELOW[part] or None}
    return r.stage(1, title, "compute_features", in_manifests=manifests, in_public_encoder=model,
                   in_public_noise=r.data.noise_manifest, in_public_rirs=r.data.rirs,
                   out_dir=feats, config="features", set=settings, num_jobs=True)


def am_layers(r: Recipe, model: str) -> tuple[str, ...]:
    """Settings of an acoustic model of a kind: those of a small one upon a public encoder."""
    alone = r.data.encoder_model is None or model == "whisper"
    return (f"am_{model}",) if alone else (f"am_{model}", "am_head")


def part_values(r: Recipe) -> dict[str, Any]:
    """What a training of the chosen part of a public encoder is told: the head is trained, too."""
    part = r.data.encoder_trained
    parts = {"head": None, "all": ["all"], "last_block": ["last_block"]}
    return {"trained": parts.get(part, [part, "head"])}


def upon(r: Recipe) -> str:
    """What names of folders begin with where a public encoder is used."""
    model, part = r.data.encoder_model, r.data.encoder_trained
    if model is None:
        return ""
    return f"{model.name}_" if part == "head" else f"{model.name}_{part}_"


def _refuse_english_phones(r: Recipe, words: Mapping[str, str]) -> None:
    """Refuse phones of another language without a lexicon or a G2P, before anything runs.

    What only the manifests tell, stage 2 refuses: a definition's own lexicon that is not there.
    """
    d, language = r.data, language_of(r)
    if d.token_type != "phone" or is_english(language):
        return
    g2p = words.get("g2p") or layers.value(r.config("lang"), "g2p")
    listed = [d.lexicon, d.corpus_dir and d.corpus_dir / "lexicon.txt"]
    file = r.corpus.definition
    own = file.stem != "data_dir" and "lexicon" in _text_of(file)
    if g2p == "espeak" and not own and not any(path and path.is_file() for path in listed):
        r.refuse("--token-type phone", f"pronunciations of the corpus's language, {language}",
                 "no lexicon: the words would get English phones",
                 PHONES_OF_OTHERS.format(language=language))


def language_of(r: Recipe) -> str:
    """The corpus's language: of ``--corpus-options``, or of its definition."""
    words = settings_of(r.data.corpus_options)
    if "language" in words:
        return language_code(words["language"], f"--corpus-options language={words['language']}")
    found = re.search(r"""\blanguage\s*=\s*["']([a-z0-9-]+)["']""", _text_of(r.corpus.definition))
    return found[1] if found else ENGLISH


def _text_of(definition: Path) -> str:
    """A definition is read, not run: it may import what is slow."""
    return definition.read_text(encoding="utf-8") if definition.is_file() else ""


def prepare_lang(r: Recipe, number: int, title: str, lang: str, *, config: Any = "lang",
                 **flags: Any) -> str:
    """The lang directory of ``--token-type`` tokens."""
    words = settings_of(r.data.lang_options)
    _refuse_english_phones(r, words)
    return r.stage(number, title, "prepare_lang", out_dir=lang, config=config,
                   set={"units": r.data.token_type, **flags.pop("set", {}), **words}, **flags)
