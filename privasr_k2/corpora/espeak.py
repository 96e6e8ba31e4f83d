"""espeak-ng (GPL), a shared library of the package ``espeakng_loader``: reproducible samples."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError

SAMPLING_RATE = 22050
"""Of what espeak-ng gives, in Hz."""

# From espeak-ng's speak_lib.h.
_OUTPUT_SYNCHRONOUS = 2
_DONT_EXIT = 0x8000
_CHARACTERS_UTF8 = 1
_RATE, _VOLUME, _PITCH, _PITCH_RANGE = 1, 2, 3, 4
_VOLUME_WITHOUT_CLIPPING = 50  # 100 is the default; the louder voices clip at it

_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class Espeak:
    """A private copy of the library and a link to its data. Made by :func:`espeak`.

    The library keeps state between utterances, so each call loads, speaks and unloads it (0.2 ms).
    Unloading works only on a copy that nobody else in the process holds.
    """

    def __init__(self, folder: Path) -> None:
        self._library, self._data = folder / "library.so", folder / "espeak-ng-data"

    def speak(
        self, text: str, *, name: str, rate: int, pitch: int, pitch_range: int, seed: int
    ) -> np.ndarray:
        """Samples of ``text``: int16, at :data:`SAMPLING_RATE`, with espeak-ng's own silences.

        Args:
            text: English; sentence marks shape the melody.
            name: a voice with or without a variant, such as ``en-us+m3``.
            rate: words per minute, 80 to 450.
            pitch: base pitch, 0 to 99.
            pitch_range: 0 (monotone) to 99.
            seed: of the library's random numbers (flutter, breath).

        Raises:
            DataError: no such voice, or nothing could be spoken.
        """
        library = ctypes.CDLL(str(self._library))
        settings = {_RATE: rate, _PITCH: pitch, _PITCH_RANGE: pitch_range}
        try:
            return self._speak(library, text, name, settings, seed)
        finally:
            library.espeak_Terminate()
            _unload(library)

    def _speak(
        self, library: ctypes.CDLL, text: str, name: str, settings: dict[int, int], seed: int
    ) -> np.ndarray:
        pieces: list[np.ndarray] = []

        def take(samples: ctypes._Pointer[ctypes.c_short], count: int, events: int | None) -> int:
            if samples and count > 0:
                pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
            return 0

        callback = _CALLBACK(take)  # kept in a variable: the library holds no reference
        data = str(self._data).encode()
        rate = library.espeak_Initialize(_OUTPUT_SYNCHRONOUS, 0, data, _DONT_EXIT)
        if rate != SAMPLING_RATE:
            expected = f"{SAMPLING_RATE} samples a second"
            raise DataError("espeak-ng", expected, str(rate), "install espeakng-loader again")
        library.espeak_SetSynthCallback(callback)
        variant = name.partition("+")[2]
        # The library takes a variant that does not exist for the plain voice, without a word.
        unknown = variant and not (self._data / "voices" / "!v" / variant).is_file()
        if unknown or library.espeak_SetVoiceByName(name.encode()) != 0:
            way_out = "choose one of voices.ACCENTS and VARIANTS"
            raise DataError("espeak-ng", "the name of a voice", repr(name), way_out)
        for parameter, value in {**settings, _VOLUME: _VOLUME_WITHOUT_CLIPPING}.items():
            library.espeak_SetParameter(parameter, int(value), 0)
        library.espeak_ng_SetRandSeed(ctypes.c_long(seed % (1 << 31)))
        encoded = text.encode() + b"\0"
        size = ctypes.c_size_t(len(encoded))
        library.espeak_Synth(encoded, size, 0, 0, 0, _CHARACTERS_UTF8, None, None)
        if not any(piece.any() for piece in pieces):
            raise DataError("espeak-ng", "a text that can be spoken", repr(text), "give it words")
        return np.concatenate(pieces)


@contextmanager
def espeak() -> Iterator[Espeak]:
    """A synthesizer for as long as the block lasts.

    >>> with espeak() as synthesizer:
    ...     settings = dict(name="en-us+f2", rate=170, pitch=50, pitch_range=50, seed=1)
    ...     once, again = (synthesizer.speak("Good morning.", **settings) for _ in range(2))
    >>> once.dtype.name, bool((once == again).all())
    ('int16', True)
    """
    try:
        import espeakng_loader
    except ImportError as error:
        way_out = "pip install espeakng-loader"
        raise DataError("espeakng_loader", "the package", "nothing", way_out) from error
    # A short path matters too: espeak-ng cuts the path of its data at 160 bytes.
    with tempfile.TemporaryDirectory(prefix="espeak") as folder:
        made = Espeak(Path(folder))
        shutil.copyfile(espeakng_loader.get_library_path(), made._library)
        made._data.symlink_to(Path(espeakng_loader.get_data_path()).resolve())
        yield made


def _unload(library: ctypes.CDLL) -> None:
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    close(library._handle)
