"""A trained recognizer for single recordings: features, model, graph and weights."""

from __future__ import annotations

import dataclasses
import logging
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from privasr_k2 import config as configuration
from privasr_k2.constraints import Checked, one_of
from privasr_k2.data.features import (
    ABOUT,
    DIMENSIONS,
    ENCODER,
    PUBLIC_ENCODER,
    Extractor,
    OutputConfig,
    extract,
)
from privasr_k2.decoding.first_pass import Decoder, FirstPass, SearchConfig
from privasr_k2.decoding.jobs import DecodeConfig
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.decoding.tune import read_weights
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_yaml
from privasr_k2.graph.contacts import ContactConfig, ContactGraph, ContactGraphConfig, hash_of
from privasr_k2.graph.folder import check_outputs
from privasr_k2.graph.hlg import save_graph
from privasr_k2.graph.hotwords import HotwordGraphConfig, compile_hotword_graph
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.text.hotwords import Hotwords

if TYPE_CHECKING:
    from privasr_k2.am.ctc import CtcModel
    from privasr_k2.am.exported import ExportedModel

log = logging.getLogger(__name__)

T = TypeVar("T", HotwordGraphConfig, ContactGraphConfig)

FILE = "recognizer.yaml"
#: The graph that contacts are put into, beside the recognizer.
CONTACTS = "contacts.safetensors"


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
        lang, lm, graph_settings: what another graph is made of, with a user's list: the language
            folder, the n-gram model, and how; empty where it is not known.
    """

    model: str
    graph: str
    features: Annotated[str, one_of(*DIMENSIONS, "given", ENCODER)]
    sampling_rate: int
    search: SearchConfig
    public_encoder: str = ""
    public_encoder_sha256: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    lang: str = ""
    lm: str = ""
    graph_settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphSettings(HotwordGraphConfig, ContactConfig):
    """Settings of other graphs: sections ``graph``, ``hotwords`` and ``contacts``."""


@dataclass(frozen=True)
class RecognizerConfig(DecodeConfig, GraphSettings):
    """Settings of section ``decode`` and of other graphs."""


def describe(
    *,
    model: Path,
    graph: Path,
    features: Path,
    weights: Path,
    search: SearchConfig,
    beside: Path,
    sources: tuple[Path, Path, GraphSettings] | None = None,
) -> RecognizerSpec:
    """The specification of a recognizer whose file will stand in the folder ``beside``.

    Args:
        model, graph, features: folders; the model was trained on these features.
        weights: ``weights.json``, chosen on dev.
        search: pruning of the search for the grid, which becomes that of the chosen point.
        sources: language folder, n-gram model and settings of the graph, to make others.
    """
    features_of = read_yaml(features / ABOUT)
    about = features_of.get(PUBLIC_ENCODER, {})
    chosen, more = read_weights(weights), {}
    if sources is not None:
        lang, lm, config = sources
        names = [one.name for one in dataclasses.fields(GraphSettings)]
        more = {
            "lang": os.path.relpath(lang, beside),
            "lm": os.path.relpath(lm, beside),
            "graph_settings": {name: getattr(config, name) for name in names},
        }
    return RecognizerSpec(
        model=os.path.relpath(model, beside),
        graph=os.path.relpath(graph, beside),
        features=features_of["kind"],
        sampling_rate=features_of["sampling_rate"],
        public_encoder=about.get("folder", ""),
        public_encoder_sha256=about.get("sha256", ""),
        outputs=features_of.get(ENCODER, {}),
        search=search.at(chosen),
        **more,
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
        self._contacts: tuple[ContactGraph, float] | None = None

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        *,
        device: str = "cpu",
        hotwords: Hotwords | None = None,
        bonus: float | None = None,
        contacts: Hotwords | None = None,
        contact_log_prob: float | None = None,
    ) -> Recognizer:
        """The recognizer of a recipe's ``exp`` folder, which holds ``recognizer.yaml``.

        Args:
            hotwords: makes another graph with this list, in place of the folder's own.
            bonus: of its words, natural log; ``None``: as the recipe's settings have it.
            contacts: names in place of hotwords; :meth:`use_contacts` exchanges them.
            contact_log_prob: ln P(a name of the list | the empty history), of this and later lists;
                ``None``: as the recipe's settings have it.

        Raises:
            DataError: no recognizer, or one that takes no audio; hotwords that it cannot use;
                another public encoder than the one whose outputs the model was trained on.
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
            way_out = "train with audio; features of a corpus are decoded by privasr verb decode"
            raise DataError(file, expected, found, way_out)
        extractor = _extractor(spec, file) if spec.public_encoder else None
        model = load_model(folder / spec.model, device)
        named = None
        if contacts is not None:
            named = contact_graph(folder, spec, log_prob=contact_log_prob)
            graph = named[0].graph(contacts, log_prob=named[1], device=device)
            decoder: FirstPass[Any] = Decoder(graph, spec.search)
        elif hotwords is None:
            decoder = open_decoder(folder / spec.graph, spec.search, device=device)
        else:
            with tempfile.TemporaryDirectory() as made:
                graph = Path(made) / "graph"
                make_graph(folder, spec, hotwords, graph, bonus=bonus)
                decoder = open_decoder(graph, spec.search, device=device)
        outputs = model.num_tokens, model.tokens, model.ctc_topology
        check_outputs(decoder.graph, *outputs, folder / spec.model)
        recognizer = cls(spec, model, decoder, device, extractor)
        recognizer._contacts = named
        return recognizer

    def use_contacts(self, contacts: Hotwords) -> None:
        """Exchange the names of a recognizer that was opened with contacts.

        Raises:
            DataError: a recognizer without contacts, or a name that cannot be pronounced.
        """
        if self._contacts is None:
            expected, way_out = "contacts", "open it with contacts"
            raise DataError("the recognizer", expected, "none", way_out)
        opened, log_prob = self._contacts
        graph = opened.graph(contacts, log_prob=log_prob, device=self._device)
        self._decoder = Decoder(graph, self.spec.search)

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


def contact_graph(
    folder: Path, spec: RecognizerSpec, *, log_prob: float | None
) -> tuple[ContactGraph, float]:
    """A recognizer's graph for contacts, and ln P(any name | the empty history).

    The graph is compiled once and kept in :data:`CONTACTS`.

    Args:
        folder: of ``recognizer.yaml``.
        log_prob: in place of that of the settings.

    Raises:
        DataError: the recognizer does not say what its graph was made of.
        ConfigError: a back end other than k2.
    """
    values = {} if log_prob is None else {"contact_log_prob": log_prob}
    config, (lang, lm) = _sources(folder, spec, ContactGraphConfig, values)
    if spec.search.backend != "k2":
        expected, found = "backend=k2 for contacts", f"backend={spec.search.backend}"
        raise ConfigError(folder / FILE, expected, found, "export the recognizer with backend=k2")
    path = folder / CONTACTS
    made_of = hash_of([lang.folder / "lexicon.txt", lang.folder / "tokens.txt", lm], config)
    kept = ContactGraph.load(path, lang, made_of)
    if kept is None:
        log.info("%s: compiled once, for all lists of contacts", path)
        kept = ContactGraph.compile(lang, read_arpa(lm), config, model_path=lm)
        try:
            kept.save(path, made_of)
        except OSError as error:  # whoever may only read the folder compiles it each time
            log.warning("%s: not kept: %s", path, error.strerror)
    return kept, config.contact_log_prob


def _sources(
    folder: Path, spec: RecognizerSpec, cls: type[T], values: dict[str, Any]
) -> tuple[T, tuple[Lang, Path]]:
    """The settings of a recognizer's graph with other values, its language and n-gram model."""
    if not spec.lang:
        expected, way_out = "lang, lm and graph_settings", "run the recipe's export stage again"
        raise DataError(folder / FILE, expected, "none of them", way_out)
    names = {one.name for one in dataclasses.fields(cls)}
    settings = {name: x for name, x in (spec.graph_settings | values).items() if name in names}
    config = configuration.from_values(cls, settings, folder / FILE)
    return config, (load_lang(folder / spec.lang), folder / spec.lm)


def make_graph(
    folder: Path, spec: RecognizerSpec, hotwords: Hotwords, out: Path, *, bonus: float | None
) -> None:
    """Compile a recognizer's graph with a list of hotwords, from its lexicon and n-gram model.

    Args:
        folder: of ``recognizer.yaml``.
        out: the new graph folder.
        bonus: in place of that of the settings.

    Raises:
        DataError: the recognizer does not say what its graph was made of; a word of the list
            without pronunciation.
    """
    values = {} if bonus is None else {"hotword_bonus": bonus}
    config, (lang, lm) = _sources(folder, spec, HotwordGraphConfig, values)
    whole, graphs, info = compile_hotword_graph(
        lang, read_arpa(lm), config, hotwords, model_path=lm
    )
    save_graph(graphs, whole, info, out)


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
