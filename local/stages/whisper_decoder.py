"""Whisper's decoder as the public model of recipe dpsgd; public speech is not needed, but helps."""

from pathlib import Path
from typing import Any

from local.stages.data import Data, prepare_data, prepare_lang
from local.stages.first_pass import FirstPass, score
from local.stages.second_pass import whisper_lists
from local.stages.sides import Sides, split_sides
from privasr_k2.recipe.declare import Declared, Recipe


def prepare_whisper(r: Recipe, o: Any, people: tuple[int, ...]) -> Sides:
    """Stages 0 to 3: all of train is private, and dev public."""
    d = r.data
    if o.models != ("whisper",) or d.encoder_model is None or d.token_type != "tokenizer":
        r.refuse("--models", "whisper alone, on the outputs of its encoder", " ".join(o.models),
                 "give --models whisper --encoder-model DIR --token-type tokenizer")
    if o.graph or o.init == "scratch":
        r.refuse("--models whisper", "Whisper's own weights and search",
                 "a graph, or random weights", "remove --graph and --init")
    if o.graph_text is None:
        r.refuse("--models whisper", "--graph-text, whose words count as known", "none", "give it")
    data = prepare_data(r, lang_name="tokenizer_public", make_lang=False)
    public = o.public_corpus or o.public_feats
    if any(people) and not public:
        r.refuse("--people", "--public-corpus, beside which speakers are split", "none",
                 "give --public-corpus, or remove --people")
    sides = (split_sides(r, o, data, people=people, pool_share=0.0) if public
             else Sides(data, "", ""))
    prepare_lang(r, 3, "lang directory of Whisper's tokens", data.lang,
                 raw_public_lm_text=o.graph_text,
                 raw_public_bpe_model=d.encoder_model / "tokenizer.json",
                 set={"train_words": False})
    return sides


def import_decoder(r: Recipe, s: Sides, folder: str) -> str:
    """Stage 4: the decoder as it comes, in tokens of lower-case words."""
    return r.stage(4, "Whisper's decoder", "import_external",
                   in_public_whisper=r.data.encoder_model, in_lang=s.lang, out_dir=f"{folder}/am")


def train_on_public(r: Recipe, o: Any, s: Sides, am: str, folder: str) -> str:
    """Stage 4: the decoder trained further on public speech: to write words, as references do."""
    return r.stage(4, "Whisper's decoder, trained on public speech", "train_am", train=True,
                   config=("am_whisper", "am_whisper_public"), in_feats=s.public, in_lang=s.lang,
                   in_init=am, out_dir=f"{folder}/am", set={"epochs": o.public_epochs})


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
