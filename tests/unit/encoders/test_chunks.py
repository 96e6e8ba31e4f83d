"""Long audio in chunks gives the frames that audio read at once gives."""

from __future__ import annotations

import itertools

import pytest
import torch

from privasr_k2.encoders.chunks import ChunkConfig, chunk_starts, encode_long
from privasr_k2.encoders.common import PublicEncoder
from privasr_k2.errors import ConfigError
from tests.support.tiny_encoders import speechlike, tiny_wav2vec, tiny_whisper


class Local(PublicEncoder):
    """Frame t is the sum of the samples from 10 t to 10 t + window, without padding."""

    num_layers, dim, sample_rate, frame_shift, max_seconds = 1, 1, 100, 0.1, 50.0
    name = "local"

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def features(self, audio, lengths):
        assert max(lengths) <= 100 * self.max_seconds
        return audio.unsqueeze(2), lengths

    def forward(self, inputs, lengths, *, layers=None):
        outputs = inputs.transpose(1, 2).unfold(2, self.window, 10).sum(dim=3).transpose(1, 2)
        frames = torch.div(lengths - self.window, 10, rounding_mode="floor") + 1
        return (outputs if layers is None else torch.stack([outputs] * len(layers))), frames


@pytest.mark.parametrize("samples", [30, 299, 300, 301, 309, 310, 311, 555, 1234, 5000])
@pytest.mark.parametrize("window", [10, 25])
@pytest.mark.parametrize(("overlap", "batch"), [(0.5, 1), (1.0, 3), (2.9, 4)])
def test_frames_are_where_they_would_be(samples, window, overlap, batch):
    encoder = Local(window)
    audio = torch.randint(0, 9, (samples,)).float()
    expected, _ = encoder(*encoder.features(audio[None], torch.tensor([samples])))
    config = ChunkConfig(seconds=3.0, overlap=overlap, batch=batch)
    assert torch.equal(encode_long(encoder, audio, config), expected[0])
    twice = encode_long(encoder, audio, config, layers=[0, 1])
    assert torch.equal(twice, torch.stack([expected[0]] * 2))


def test_starts_cover_everything_and_the_last_chunk_is_long():
    config = ChunkConfig(seconds=3.0, overlap=1.0, batch=1)
    for samples in range(290, 900):
        starts, size = chunk_starts(samples, 10, config, 100)
        assert starts[0] == 0 and starts == sorted({*starts}) and all(s % 10 == 0 for s in starts)
        assert all(b - a <= 200 for a, b in itertools.pairwise(starts))
        assert starts[-1] + size >= samples and (len(starts) == 1 or samples - starts[-1] > 290)


@pytest.mark.parametrize("make", [tiny_whisper, lambda: tiny_wav2vec("hubert", "layer", True)])
def test_as_many_frames_as_at_once(make):
    encoder = make()
    (audio,), lengths = speechlike(50001)
    with torch.no_grad():
        whole, frames = encoder(*encoder.features(audio[None], lengths))
        config = ChunkConfig(seconds=1.0, overlap=0.4, batch=2)
        parts = encode_long(encoder, audio, config, layers=[0, 2])
    assert parts.shape == (2, int(frames), whole.size(2))
    start = encode_long(encoder, audio[:16000], config)
    torch.testing.assert_close(parts[1, :20], start[:20])


def test_wrong_chunks_are_refused():
    config = ChunkConfig(seconds=3.0, overlap=0.1, batch=2)
    with pytest.raises(ConfigError, match=r"overlap: expected above 0\.1 s"):
        encode_long(Local(25), torch.zeros(900), config)
    with pytest.raises(ValueError, match="overlap"):
        ChunkConfig(seconds=3.0, overlap=3.0, batch=1)
    config = ChunkConfig(seconds=50.5, overlap=1.0, batch=1)
    with pytest.raises(ConfigError, match="at most 50 s"):
        encode_long(Local(10), torch.zeros(5000), config)
