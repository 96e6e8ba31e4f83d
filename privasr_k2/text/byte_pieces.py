"""The characters that stand for bytes in byte-level pieces (Radford et al. 2019, GPT-2)."""

from __future__ import annotations


def _bytes() -> dict[str, int]:
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    return {chr(b): b for b in visible} | {chr(256 + i): b for i, b in enumerate(others)}


#: The byte of each character: that of Latin-1 where it is visible, else the next from U+0100 on.
BYTES = _bytes()
