"""Reproducible streams are independent; noise streams are ChaCha20 of a derived key."""

from __future__ import annotations

import hashlib
import hmac
import struct

import numpy as np
import pytest
from scipy import stats

from privasr_k2 import randomness

SECRET = bytes(range(32))


def test_a_stream_is_the_same_in_every_process() -> None:
    # The value is fixed for good: splits and synthetic corpora hang on it.
    digest = hashlib.sha256(b"1\x1fstr:split").digest()
    assert randomness.derive_seed(1, "split") == int.from_bytes(digest, "little") % (1 << 63)


@pytest.mark.parametrize(
    "other", [(2, "split"), (1, "dropout"), (1, "split", "x"), (1,), (1, "spl", "it")]
)
def test_every_name_has_a_stream_of_its_own(other: tuple[int, *tuple[str, ...]]) -> None:
    one, two = randomness.stream(1, "split"), randomness.stream(*other)
    assert not np.array_equal(one.random(8), two.random(8))


def test_numbers_and_text_are_different_names() -> None:
    assert randomness.derive_seed(0, 1) != randomness.derive_seed(0, "1")


def test_streams_are_uncorrelated() -> None:
    draws = np.stack([randomness.stream(0, "epoch", n).random(2000) for n in range(8)])
    correlations = np.corrcoef(draws)[np.triu_indices(8, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)


def test_secrets_differ_and_short_ones_are_refused() -> None:
    assert len(randomness.new_secret()) == 32
    assert randomness.new_secret() != randomness.new_secret()
    with pytest.raises(ValueError, match="at least 32 bytes expected, found 16"):
        randomness.noise_stream(bytes(16), "x")


def _hkdf(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256 and no salt, one block."""
    pseudorandom = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(pseudorandom, info + b"\x01", hashlib.sha256).digest()


def _chacha_block(key: bytes, counter: int) -> bytes:
    """RFC 8439's block function for a nonce of zeros."""
    constants = struct.unpack("<4I", b"expand 32-byte k")
    state = [*constants, *struct.unpack("<8I", key), counter, 0, 0, 0]
    x = state.copy()

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for i, j, k, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[i] = (x[i] + x[j]) & 0xFFFFFFFF
            x[k] ^= x[i]
            x[k] = ((x[k] << turn) | (x[k] >> (32 - turn))) & 0xFFFFFFFF

    for _ in range(10):
        for n in range(4):
            quarter(n, n + 4, n + 8, n + 12)
        for n in range(4):
            quarter(n, 4 + (n + 1) % 4, 8 + (n + 2) % 4, 12 + (n + 3) % 4)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, state, strict=True)))


def test_noise_bytes_are_chacha20_of_an_hkdf_key() -> None:
    key = _hkdf(SECRET, b'[["str", "round"], ["int", 3]]')
    expected = _chacha_block(key, 0) + _chacha_block(key, 1)
    noise = randomness.noise_stream(SECRET, "round", 3)
    assert noise.random_bytes(100) + noise.random_bytes(28) == expected


def test_noise_can_be_drawn_again_and_other_names_differ() -> None:
    first = randomness.noise_stream(SECRET, "round", 1).uniform((3, 4))
    assert first.shape == (3, 4)
    assert np.array_equal(first, randomness.noise_stream(SECRET, "round", 1).uniform((3, 4)))
    for other in (("round", 2), ("round", "1"), ("round1",), ("round",), ("round\x1fint:1",)):
        assert not np.array_equal(first, randomness.noise_stream(SECRET, *other).uniform((3, 4)))


def test_distributions() -> None:
    noise = randomness.noise_stream(SECRET, "distribution")
    uniform = noise.uniform(200_000)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3


def test_a_single_number_and_none_at_all() -> None:
    noise = randomness.noise_stream(SECRET, "shape")
    assert noise.uniform(()).shape == ()
    assert noise.uniform((0, 3)).shape == (0, 3)
