"""Whisper's decoder as the public model of recipe dpsgd: no public speech is needed."""

from pathlib import Path
from typing import Any

from local.stages.data import Data, prepare_data, prepare_lang
from local.stages.first_pass import FirstPass, score
from local.stages.second_pass import whisper_lists
from privasr_k2.recipe.declare import Declared, Recipe


def prepare_whisper(r: Recipe, o: Any) -> Data:
    """Stages 0 to 3: all of train is private, and dev public."""
    d = r.data
    if o.models != ("whisper",) or d.encoder_model is None or d.token_type != "tokenizer":
        r.refuse("--models", "whisper alone, on the outputs of its encoder", " ".join(o.models),
                 "give --models whisper --encoder-model DIR --token-type tokenizer")
    if o.graph or o.public_corpus or o.public_feats or o.init == "scratch":
        r.refuse("--models whisper", "Whisper's own weights and search",
                 "a graph, other public speech, or random weights",
                 "remove --graph, --public-* and --init")
    if o.graph_text is None:
        r.refuse("--models whisper", "--graph-text, whose words count as known", "none", "give it")
    data = prepare_data(r, lang_name="tokenizer_public", make_lang=False)
    prepare_lang(r, 3, "lang directory of Whisper's tokens", data.lang,
                 raw_public_lm_text=o.graph_text, raw_bpe_model=d.encoder_model / "tokenizer.json",
                 set={"train_words": False})
    return data


def import_decoder(r: Recipe, lang: str, folder: str) -> str:
    """Stage 4: the public model, as it comes."""
    return r.stage(4, "Whisper's decoder", "import_external",
                   in_public_whisper=r.data.encoder_model, in_lang=lang, out_dir=f"{folder}/am")


def own_search(r: Recipe, data: Data, whisper: Path | None) -> list[Declared]:
    """Stage 4: what Whisper writes by its own search, without our tokens; empty: not asked for."""
    if whisper is None:
        return []
    own = r.system("whisper/own", label="Whisper's own decoder", method="public")
    first = FirstPass(data, "", "", "", f"exp/whisper_{whisper.name}", whisper=whisper)
    whisper_lists(r, 4, "N-best lists of test, Whisper's own", whisper, data.manifests, "test",
                  f"{first.exp}/nbest_test", hyps=f"{first.exp}/decode_test")
    score(r, 4, "score Whisper's own decoder", hyps=f"{first.exp}/decode_test", first=first,
          out=own.path("score_test"))
    return [own]
