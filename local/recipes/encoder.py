"""A public encoder: frozen below a head, and trained further, part by part."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from local.stages.data import PhoneOptions
from local.stages.first_pass import (
    GraphOptions,
    choose_am,
    first_pass,
    score,
    train_head,
    train_upper,
    use_list,
    write_recognizer,
)
from local.stages.second_pass import whisper_lists
from privasr_k2.recipe.declare import EncoderPart, Recipe
from privasr_k2.recipe.options import Natural, option, path_option

LABELS = {"head": "frozen, head", "bias": "biases (BitFit) and head", "lora": "LoRA and head",
          "last_block": "last block and head", "all": "all layers and head"}


@dataclass(frozen=True)
class Options(PhoneOptions, GraphOptions):
    """Those of the acoustic model, its graph and the report, and what is compared."""

    parts: Annotated[tuple[EncoderPart, ...], MinLen(1)] = option(
        ("head", "bias", "lora", "last_block"), "what is trained, a model each")
    whisper: Path | None = path_option(
        "folder of a Whisper model for CTranslate2: its own decoder, beside the models")
    folds: Natural = option(0, "cross-validation over so many groups of train's speakers")


def stages(r: Recipe, o: Options) -> None:
    """Stages 0 to 8 are those of every first pass, for each part."""
    if r.data.encoder_model is None or r.data.encoder_trained != "head":
        r.refuse("recipe encoder", "--encoder-model DIR, and --parts for what is trained",
                 "no --encoder-model, or --encoder-trained", "name the encoder, and the parts")
    of_part = {part: r.training(part) for part in o.parts}
    firsts = {part: first_pass(of, o) for part, of in of_part.items()}
    r.sort_stages()
    first = firsts[o.parts[0]]
    r.exp = f"exp/encoder_{choose_am(r, o).head}{use_list(r, o)}"
    whisper = None
    if o.whisper is not None:
        whisper = r.system("whisper", label="Whisper's own decoder", method="public")
        for role in ("dev", "test"):
            decoded = f"{whisper.folder}/decode_{role}"
            whisper_lists(r, 9, f"Whisper's own decoder, {role}", o.whisper, first.data.manifests,
                          role, f"{whisper.folder}/nbest_{role}", hyps=decoded)
            score(r, 9, f"score Whisper's own decoder, {role}", hyps=decoded, role=role,
                  first=first, out=whisper.path(f"score_{role}"))
    frozen = None
    for part in o.parts:
        system = r.system(part, label=LABELS[part], method="not_private",
                          compare_with=[frozen, whisper], trained=part)
        frozen = system if part == "head" else frozen
        system.add("weights", firsts[part].weights)
        for role in ("dev", "test"):
            score(r, 9, f"score {part}, {role}", hyps=f"{firsts[part].exp}/decode_{role}",
                  weights=firsts[part].weights, role=role, first=firsts[part],
                  out=system.path(f"score_{role}"))
    for part in o.parts:
        write_recognizer(r, 10, f"recognizer, {part}, for privasr transcribe", firsts[part])
    for fold in range(1, o.folds + 1):
        values = {"folds": o.folds, "fold": fold}
        held = f"fold {fold} of {o.folds} held out"
        head = train_head(r, 10, f"head, {held}", o, first.data, f"{r.exp}/folds/head/{fold}",
                          **values)
        for part in o.parts:
            r.systems[part].add("folds", f"{r.exp}/folds/{part}")
            if part != "head":
                train_upper(of_part[part], 10, f"{LABELS[part]}, {held}", o, firsts[part].data,
                            head, f"{r.exp}/folds/{part}/{fold}", **values)
    r.report(11, manifests=first.data.manifests, phones=o.per)
