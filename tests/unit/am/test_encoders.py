"""Encoders: lengths, padding that changes nothing, and agreement with plainer computations."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from privasr_k2.am.encoders import make_encoder
from privasr_k2.am.encoders.blstm import Blstm, BlstmConfig, BlstmLayer
from privasr_k2.am.encoders.common import STRIDES, ChannelDropout, subsampled
from privasr_k2.am.encoders.conformer import rotate
from tests.support.small_am import KINDS, encoder_config, features


def make(kind: str, **options: int) -> nn.Module:
    torch.manual_seed(3)
    return make_encoder(5, encoder_config(kind, **options)).eval()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subsampling", STRIDES)
def test_padding_and_company_change_nothing(kind, subsampling):
    encoder = make(kind, subsampling=subsampling)
    x, lengths = features(40, 23, 1)
    together, out_lengths = encoder(x.transpose(1, 2), lengths)
    assert together.shape == (3, encoder.out_dim, subsampled(40, subsampling))
    for row, length in enumerate(lengths.tolist()):
        own = x[row : row + 1, :length].transpose(1, 2), torch.tensor([length])
        alone, alone_lengths = encoder(*own)
        frames = subsampled(length, subsampling)
        assert out_lengths[row] == alone_lengths[0] == alone.size(2) == frames
        torch.testing.assert_close(together[row, :, :frames], alone[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_counts(kind):
    """No frame is left out by a stride or a mask: each has a gradient."""
    encoder = make(kind, subsampling=4)
    x = torch.randn(1, 5, 22, requires_grad=True)
    encoder(x, torch.tensor([22]))[0].square().sum().backward()
    assert (x.grad.abs().sum(1) > 0).all()


def test_blstm_layer_is_torchs_bidirectional_lstm():
    torch.manual_seed(0)
    layer = BlstmLayer(5, 6)
    twin = nn.LSTM(5, 6, bidirectional=True)
    parameters = zip(layer.ahead.named_parameters(), layer.back.parameters())
    for (name, ahead), back in parameters:
        getattr(twin, name).data.copy_(ahead)
        getattr(twin, f"{name}_reverse").data.copy_(back)
    x, lengths = features(9, 6, 2)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    expected, _ = nn.utils.rnn.pad_packed_sequence(twin(packed)[0], batch_first=True)
    zero = torch.zeros(1, 3, 6)
    found, _ = layer(x.transpose(1, 2), lengths, (zero, zero), 9)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[row, :, :length].t(), expected[row, :length])


def chunked(chunk: int, right_context: int) -> Blstm:
    torch.manual_seed(3)
    chunks = dict(chunk=chunk, right_context=right_context)
    return Blstm(5, BlstmConfig(6, 2, subsampling=1, dropout=0.0, **chunks)).eval()


def test_one_chunk_is_the_whole_blstm():
    x, lengths = features(30, 17)
    whole, _ = chunked(0, 0)(x.transpose(1, 2), lengths)
    one, _ = chunked(30, 4)(x.transpose(1, 2), lengths)
    torch.testing.assert_close(one[0], whole[0])
    torch.testing.assert_close(one[1, :, :17], whole[1, :, :17])


def test_chunks_look_ahead_no_further_than_they_say():
    encoder = chunked(8, 4)
    x, lengths = features(32)
    before, _ = encoder(x.transpose(1, 2), lengths)
    edge = 8 + 4 + 3  # the first chunk, its right context, and 3 frames that convolutions see
    x[:, edge:] += 1.0
    after, _ = encoder(x.transpose(1, 2), lengths)
    torch.testing.assert_close(after[:, :, :8], before[:, :, :8])
    assert not torch.allclose(after[:, :, 8:16], before[:, :, 8:16])


def test_chunks_remember_the_past():
    encoder = chunked(8, 4)
    x, lengths = features(32)
    before, _ = encoder(x.transpose(1, 2), lengths)
    x[:, :2] += 1.0
    after, _ = encoder(x.transpose(1, 2), lengths)
    assert not torch.allclose(after[:, :, 24:], before[:, :, 24:], atol=1e-6)


def test_rotation_depends_on_distance_only():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 1, 8, 1)
    q, k = (rotate(x.expand(-1, -1, -1, 20)) for x in (q, k))
    scores = (q.transpose(2, 3) @ k)[0, 0]
    for distance in (0, 1, 7):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), atol=1e-4, rtol=1e-4)
    assert abs(float(scores[0, 0] - scores[0, 7])) > 1e-3


def test_channel_dropout_drops_channels_and_keeps_the_mean():
    torch.manual_seed(0)
    y = ChannelDropout(0.25).train()(torch.ones(50, 40, 3))
    assert (y == y[:, :, :1]).all()
    torch.testing.assert_close(y.unique(), torch.tensor([0.0, 4 / 3]))
    assert float((y == 0).float().mean()) == pytest.approx(0.25, abs=0.03)
    assert ChannelDropout(0.25).eval()(y) is y


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        *(("tdnn", "kernel", 4), ("tdnn", "dilations", []), ("tdnn", "dropout", 1.0)),
        *(("tdnn", "subsampling", 5), ("blstm", "chunk", -1), ("blstm", "layers", 0)),
        *(("conformer", "dim", 6), ("conformer", "kernel", 2)),
    ],
)
def test_bad_numbers_are_named(section, key, value):
    good = encoder_config(section).settings
    with pytest.raises(ValueError, match=key):
        type(good)(**{**vars(good), key: value})


def test_unknown_encoder_is_named():
    with pytest.raises(ValueError, match=r"one of blstm, conformer, tdnn, .* got 'rnn'"):
        encoder_config("rnn")
