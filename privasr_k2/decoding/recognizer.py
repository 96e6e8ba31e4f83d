"""A trained recognizer for single recordings: features, model, graph and weights."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from privasr_k2 import config as configuration
from privasr_k2.constraints import Checked, one_of
from privasr_k2.data.features import (
    DIMENSIONS,
    ENCODER,
    PUBLIC_ENCODER,
    Extractor,
    OutputConfig,
    extract,
)
from privasr_k2.decoding.first_pass import FirstPass, SearchConfig
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.decoding.tune import read_weights
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_yaml
from privasr_k2.graph.folder import check_outputs

if TYPE_CHECKING:
    from privasr_k2.am.ctc import CtcModel
    from privasr_k2.am.exported import ExportedModel

FILE = "recognizer.yaml"


@dataclass(frozen=True)
class RecognizerSpec(Checked):
    """The parts of a recognizer; paths are relative to the file.

    Attributes:
        model, graph: folders.
        features: ``fbank``, ``mfcc`` or ``sphinx``; ``given`` for those of the corpus: then no
            audio can be transcribed.
        sampling_rate: of the training data, in Hz.
        search: pruning, and as its grid the point that was chosen on dev.
        public_encoder, public_encoder_sha256, outputs: its folder, its hash at the training (not
            compared if empty), and which of its outputs are the features; empty without one.
    """

    model: str
    graph: str
    features: Annotated[str, one_of(*DIMENSIONS, "given", ENCODER)]
    sampling_rate: int
    search: SearchConfig
    public_encoder: str = ""
    public_encoder_sha256: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)


def describe(
    *, model: Path, graph: Path, features: Path, weights: Path, search: SearchConfig, beside: Path
) -> RecognizerSpec:
    """The specification of a recognizer whose file will stand in the folder ``beside``.

    Args:
        model, graph, features: folders; the model was trained on these features.
        weights: ``weights.json``, chosen on dev.
        search: pruning; its grid is replaced by the chosen point.
    """
    features_of = read_yaml(features / "features.yaml")
    chosen = read_weights(weights)
    about = features_of.get(PUBLIC_ENCODER, {})
    return RecognizerSpec(
        model=os.path.relpath(model, beside),
        graph=os.path.relpath(graph, beside),
        features=features_of["kind"],
        sampling_rate=features_of["sampling_rate"],
        public_encoder=about.get("folder", ""),
        public_encoder_sha256=about.get("sha256", ""),
        outputs=features_of.get(ENCODER, {}),
        search=dataclasses.replace(
            search, lm_weights=[chosen.lm_weight], insertion_penalties=[chosen.insertion_penalty]
        ),
    )


class Recognizer:
    """Turns samples into words.

    Args:
        extractor: of features that are a public encoder's outputs; None: they are computed.
    """

    def __init__(
        self,
        spec: RecognizerSpec,
        model: CtcModel | ExportedModel,
        decoder: FirstPass[Any],
        device: str,
        extractor: Extractor | None = None,
    ) -> None:
        self.spec, self._model, self._decoder, self._device = spec, model, decoder, device
        self._extractor = extractor

    @classmethod
    def from_folder(cls, folder: str | Path, *, device: str = "cpu") -> Recognizer:
        """The recognizer of a recipe's ``exp`` folder, which holds ``recognizer.yaml``.

        Raises:
            DataError: a part that is missing or does not fit; another public encoder than the one
                whose outputs the model was trained on.
        """
        from privasr_k2.am.checkpoints import load_model

        folder = Path(folder)
        file = folder / FILE
        if not file.is_file():
            way_out = "run the recipe to its end; it writes the file"
            raise DataError(file, "a recognizer", "nothing", way_out)
        spec = configuration.load(RecognizerSpec, [file])
        if spec.features not in (*DIMENSIONS, ENCODER):
            expected = f"features that are computed from audio: {' or '.join(DIMENSIONS)}"
            found = f"{spec.features} ones, which came with the corpus"
            raise DataError(file, expected, found, "train with audio, or use bin.decode")
        extractor = _extractor(spec, file) if spec.public_encoder else None
        model = load_model(folder / spec.model, device)
        decoder = open_decoder(folder / spec.graph, spec.search, device=device)
        outputs = model.num_tokens, model.tokens, model.ctc_topology
        check_outputs(decoder.graph, *outputs, folder / spec.model)
        return cls(spec, model, decoder, device, extractor)

    def transcribe(self, samples: np.ndarray, sampling_rate: int) -> str | None:
        """The words of (S,) float32 samples in [-1, 1] at any rate; None without a path.

        A public encoder reads long audio in chunks, as it did for the training.

        Raises:
            DataError: audio that is too short for a frame, or samples that are not finite.
        """
        import torch

        if sampling_rate != self.spec.sampling_rate:
            samples = resample(samples, sampling_rate, self.spec.sampling_rate)
        features = torch.from_numpy(self._features(samples)).float()
        if len(features) == 0 or not bool(features.isfinite().all()):
            found = "no frame" if len(features) == 0 else "features that are not finite"
            expected = "audio of at least one frame, all its samples finite"
            raise DataError("audio", expected, found, "leave the file out")
        lengths = torch.tensor([len(features)])
        with torch.no_grad():  # k2 1.23.4 refuses inference tensors
            inputs = features[None].to(self._device), lengths.to(self._device)
            log_probs, lengths = self._model.log_probs(*inputs)
            hyps = self._decoder.decode(log_probs, lengths)[0]
        return None if hyps is None else hyps[0].words

    def _features(self, samples: np.ndarray) -> np.ndarray:
        if self._extractor is None:
            return extract(samples, self.spec.sampling_rate, self.spec.features)
        return self._extractor.extract(samples, self.spec.sampling_rate)


def _extractor(spec: RecognizerSpec, file: Path) -> Extractor:
    """The public encoder of a recognizer, opened: who lacks it learns so before audio is read."""
    from privasr_k2.encoders.frozen import FrozenEncoder

    outputs = configuration.from_values(OutputConfig, spec.outputs, FILE)
    encoder = FrozenEncoder(Path(spec.public_encoder), outputs)
    wanted, found = spec.public_encoder_sha256, encoder.about["sha256"]
    if wanted and found != wanted:
        way_out = f"put back the encoder that {file} names, or train with this one"
        raise DataError(spec.public_encoder, f"an encoder with sha256 {wanted}", found, way_out)
    return encoder


def read_audio(path: Path) -> tuple[np.ndarray, int]:
    """(S,) float32 samples in [-1, 1] and the sampling rate of an audio file with one channel.

    Raises:
        DataError: no audio, an empty or damaged file, or several channels.
    """
    import soundfile

    from privasr_k2.data.audio import missing_samples, read_header

    header = read_header(path)
    if header.problem is not None:
        raise DataError(path, "an audio file", header.problem, "give a WAV, FLAC or SPHERE file")
    if header.num_channels != 1:
        way_out = f"choose one, for example: sox {path} 1.wav remix 1"
        raise DataError(path, "one channel", str(header.num_channels), way_out)
    cut = missing_samples(path)
    if cut is not None:
        raise DataError(path, "a whole audio file", cut, "copy the file again")
    try:
        return soundfile.read(str(path), dtype="float32")
    except soundfile.LibsndfileError as error:
        raise DataError(path, "a whole audio file", str(error), "copy the file again") from error


def resample(samples: np.ndarray, sampling_rate: int, wanted_rate: int) -> np.ndarray:
    """(S,) samples at another rate, by a polyphase filter.

    >>> resample(np.zeros(8000, dtype=np.float32), 8000, 16000).shape
    (16000,)
    """
    from scipy.signal import resample_poly

    common = np.gcd(sampling_rate, wanted_rate)
    return resample_poly(samples, wanted_rate // common, sampling_rate // common).astype(np.float32)
