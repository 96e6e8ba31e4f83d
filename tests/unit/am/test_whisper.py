"""Whisper's decoder: torch's own decoder as a twin, steps, silence, weights from three sources."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from privasr_k2.am.checkpoints import load_recognizer
from privasr_k2.am.kinds import new_model
from privasr_k2.am.sequence import nbest
from privasr_k2.am.transformer_decoder import Decoder, DecoderConfig
from privasr_k2.am.whisper_files import SILENCE, decoder_tensors, import_whisper
from privasr_k2.encoders.loading import load_encoder, open_weights
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import load_lang
from privasr_k2.training.trainable import choose_trained
from tests.support.end_to_end import spec
from tests.support.sequence_scores import next_log_probs, score_hypotheses
from tests.support.tiny_decoders import SAVE, save_hugging_face, tiny_decoder, write_lang
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    drawn,
    hugging_face_tensors,
    save_safetensors,
    tiny_whisper,
)

SIZES = DecoderConfig(layers=2, heads=2, feedforward=20, positions=12, prompt=3)


def frames() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(2, 7, 8, generator=generator), torch.tensor([7, 4])


def torchs_own(decoder: Decoder) -> nn.TransformerDecoder:
    """The same decoder of torch's modules."""
    layer = nn.TransformerDecoderLayer(
        8, SIZES.heads, SIZES.feedforward, 0.0, "gelu", batch_first=True, norm_first=True
    )
    made = nn.TransformerDecoder(layer, SIZES.layers, nn.LayerNorm(8))
    state = decoder.state_dict()
    for number, block in enumerate(made.layers):
        ours = f"blocks.{number}."
        for theirs, part in (("self_attn", "attention"), ("multihead_attn", "cross")):
            attention = getattr(block, theirs)
            parts = [state[f"{ours}{part}.{n}.weight"] for n in ("query", "key", "value")]
            attention.in_proj_weight.data = torch.cat(parts)
            query, value = (state[f"{ours}{part}.{n}.bias"] for n in ("query", "value"))
            attention.in_proj_bias.data = torch.cat((query, torch.zeros(8), value))
            attention.out_proj.weight.data = state[f"{ours}{part}.out.weight"]
            attention.out_proj.bias.data = state[f"{ours}{part}.out.bias"]
        names = {"norm1": "attention_norm", "norm2": "cross_norm", "norm3": "feedforward_norm"}
        for theirs, part in {**names, "linear1": "wide", "linear2": "narrow"}.items():
            getattr(block, theirs).weight.data = state[f"{ours}{part}.weight"]
            getattr(block, theirs).bias.data = state[f"{ours}{part}.bias"]
    made.norm.weight.data, made.norm.bias.data = state["norm.weight"], state["norm.bias"]
    return made.eval()


def test_a_decoder_is_torchs_own():
    decoder = drawn(lambda: Decoder(8, 5, SIZES))
    encoded, lengths = frames()
    targets, sizes = torch.tensor([[1, 4, 2], [3, 3, 0]]), torch.tensor([3, 2])
    given = torch.cat((decoder.prompts(2), decoder.embedding(targets)), dim=1)
    twin = torchs_own(decoder)(
        given + decoder.positions[: given.size(1)],
        encoded,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(given.size(1)),
        memory_key_padding_mask=torch.arange(7) >= lengths.unsqueeze(1),
    )
    scores = (twin @ decoder.embedding.weight.T).log_softmax(2)[:, SIZES.prompt - 1 :]
    expected = [
        -sum(scores[n, u, token] for u, token in enumerate([*row[:size], 0]))
        for n, (row, size) in enumerate(zip(targets.tolist(), sizes.tolist()))
    ]
    losses = decoder.token_losses(decoder.memory(encoded, lengths), targets, sizes)
    torch.testing.assert_close(losses, torch.stack(expected))


def test_rows_of_utterances_in_any_order_attend_to_their_own_frames():
    made = drawn(lambda: new_model(spec("whisper"), 1))
    x, lengths = torch.randn(3, 9, 5), torch.tensor([9, 5, 7])
    hyps = [[[1, 2], [3]], [], [[2, 2, 1], [1], []]]
    together = score_hypotheses(made, x, lengths, hyps)
    for row, texts in enumerate(hyps):
        for text, score in zip(texts, together[row]):
            size = lengths[row]
            alone = score_hypotheses(made, x[row : row + 1, :size], size.unsqueeze(0), [[text]])
            torch.testing.assert_close(alone[0][0], score, atol=1e-5, rtol=1e-5)


def test_positions_beyond_the_last_share_it():
    made = drawn(lambda: new_model(spec("whisper"), 1))
    x, lengths = torch.randn(1, 5, 5), torch.tensor([5])
    [[best]] = nbest(made, x, lengths, torch.tensor([30]), beam=1, num_paths=1)
    assert score_hypotheses(made, x, lengths, [[best.tokens]])[0].item() == pytest.approx(
        best.score, abs=1e-4
    )
    assert next_log_probs(made, x, lengths, [[1] * 20]).isfinite().all()


def test_silence_stands_right_behind_each_utterance():
    made = new_model(spec("whisper"), 1).eval()
    made.silence = torch.arange(5.0)
    x, lengths = torch.randn(2, 9, 5), torch.tensor([9, 5])
    encoded, longer = made.encoded(x, lengths)
    assert longer.tolist() == [12, 8] and encoded.shape == (2, 5, 12)
    silence = made.silence.unsqueeze(1).expand(-1, 3)
    assert torch.equal(encoded[0], torch.cat((x[0].T, silence), 1))
    assert torch.equal(encoded[1, :, :8], torch.cat((x[1, :5].T, silence), 1))


def test_norms_can_be_trained_alone():
    made = new_model(spec("whisper"), 1)
    names = choose_trained(made, ["norm"])
    assert len(names) == 2 * 3 * 2 + 2 and all("norm" in name for name in names)


@pytest.mark.parametrize("source", SAVE)
def test_weights_of_three_sources(tmp_path, source):
    decoder = tiny_decoder(51865)
    folder = tmp_path / "whisper"
    SAVE[source](folder, decoder)
    read = decoder_tensors(open_weights(folder)[0])
    state = {name: value for name, value in decoder.state_dict().items() if name != "prompt"}
    assert read.keys() == state.keys()
    for name, value in state.items():
        torch.testing.assert_close(read[name].float(), value, msg=name)


def test_import_keeps_the_rows_of_words(tmp_path):
    decoder, folder = tiny_decoder(70), tmp_path / "whisper"
    save_hugging_face(folder, decoder)
    lang = load_lang(write_lang(tmp_path / "lang", folder))
    made = import_whisper(folder, lang, tmp_path / "am")
    numbers = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert made.decoder.prompt == 2 and made.silence == SILENCE
    model = load_recognizer(tmp_path / "am")
    rows = [numbers["<|endoftext|>"], *(numbers[t.replace("▁", "\u0120")] for t in lang.tokens[1:])]
    assert torch.equal(model.decoder.embedding.weight, decoder.embedding.weight[rows])
    prompt = [numbers[name] for name in ("<|startoftranscript|>", "<|notimestamps|>")]
    assert torch.equal(model.decoder.prompt, decoder.embedding.weight[prompt])
    assert float(model.silence.abs().max()) > 0


def test_a_lang_folder_of_other_tokens_is_refused(tmp_path):
    folder = tmp_path / "whisper"
    save_hugging_face(folder, tiny_decoder(70))
    lang = write_lang(tmp_path / "lang", folder)
    (lang / "tokens.txt").write_text("<blk> 0\n▁xyz 1\n", encoding="utf-8")
    (lang / "lexicon.txt").write_text("xyz ▁xyz\n", encoding="utf-8")
    (lang / "words.txt").write_text("<eps> 0\nxyz 1\n#0 2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"tokens\.txt"):
        import_whisper(folder, load_lang(lang), tmp_path / "am")
    assert not (tmp_path / "am").exists()


def test_an_encoder_alone_has_no_decoder(tmp_path):
    save_safetensors(tmp_path, hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)
    assert load_encoder(tmp_path).dim == 64
    with pytest.raises(DataError, match="no decoder"):
        decoder_tensors(open_weights(tmp_path)[0])
