"""Two kinds of randomness that never mix: reproducible streams and unpredictable noise.

Initial weights, batch order, splits and synthetic corpora take :func:`stream`. Privacy noise, and
every draw of a cohort whose amplification is claimed, takes :func:`noise_stream`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """An independent generator for every name, so that a new consumer never shifts another.

    >>> [bool(stream(1, "split").random() == stream(1, n).random()) for n in ("split", "dropout")]
    [True, False]
    """
    return np.random.Generator(np.random.Philox(key=_digest(seed, names, bits=128)))


def derive_seed(seed: int, *names: str | int) -> int:
    """An independent 63-bit seed for every name: for generators that are not numpy's."""
    return _digest(seed, names, bits=63)


def _digest(seed: int, names: Iterable[str | int], bits: int) -> int:
    text = "\x1f".join([str(int(seed)), *(f"{type(n).__name__}:{n}" for n in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little") % (1 << bits)


def new_secret() -> bytes:
    """32 bytes of the operating system for a :func:`noise_stream`. Never log or share them."""
    return secrets.token_bytes(32)


def noise_stream(secret: bytes, *names: str | int) -> NoiseStream:
    """A ChaCha20 stream whose key is derived (HKDF-SHA256) from a secret and the noise's purpose.

    The same secret and names give the same bytes, so that a killed round draws its noise again;
    other names give independent streams.
    """
    if len(secret) < 32:
        raise ValueError(f"a secret of at least 32 bytes expected, found {len(secret)}")
    info = json.dumps([[type(n).__name__, n] for n in names]).encode()
    return NoiseStream(HKDF(hashes.SHA256(), length=32, salt=None, info=info).derive(secret))


class NoiseStream:
    """Random numbers from the ChaCha20 key stream. Made by :func:`noise_stream`."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.ChaCha20(key, nonce=bytes(16)), mode=None).encryptor()

    def random_bytes(self, count: int) -> bytes:
        """The next ``count`` bytes of the stream."""
        return self._encryptor.update(bytes(count))

    def uniform(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Floats in [0, 1) with 53 random bits each."""
        count = int(np.prod(shape))
        words = np.frombuffer(self.random_bytes(8 * count), dtype="<u8")
        return ((words >> np.uint64(11)) * 2.0**-53).reshape(shape)
