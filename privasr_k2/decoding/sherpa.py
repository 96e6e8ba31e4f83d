"""A CTC model, alone or with its decoding graph, as a folder that sherpa-onnx takes as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2 import config as configuration
from privasr_k2.data.features import ABOUT, DIMENSIONS
from privasr_k2.decoding.recognizer import FILE, RecognizerSpec
from privasr_k2.decoding.sherpa_readme import readme
from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import atomic_path, read_yaml, write_text
from privasr_k2.graph.folder import check_outputs
from privasr_k2.graph.lang import symbols_text
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.sherpa import BEAM, sherpa_graph
from privasr_k2.graph.tlg import FILE as TLG_FILE
from privasr_k2.graph.tlg import TokenGraph, load_tlg

if TYPE_CHECKING:
    from privasr_k2.am.ctc import CtcModel

FEATURES = "fbank"
"""The kind of features that sherpa-onnx computes as we do."""
MODEL, TOKENS, README = "model.onnx", "tokens.txt", "README.md"
GRAPH, WORDS = "HLG.fst", "words.txt"
#: kaldi_decoder wants more than these, which it keeps in any case (FasterDecoderOptions).
_MIN_ACTIVE = 20


@dataclass(frozen=True, eq=False)
class SherpaModel:
    """What a folder for sherpa-onnx is made of.

    Attributes:
        model: of filter banks, with its tokens.
        sampling_rate: of the training data, in Hz; None: not known.
        search: the graph and its words; None: the best token of each frame.
    """

    model: CtcModel
    sampling_rate: int | None = None
    search: SherpaSearch | None = None


@dataclass(frozen=True, eq=False)
class SherpaSearch:
    """A decoding graph with the weights that dev chose.

    Attributes:
        graph: as :func:`privasr_k2.graph.sherpa.sherpa_graph` makes it.
        words: by the numbers of its output labels.
        lm_weight, insertion_penalty: are in the graph; told to the reader.
        scale: of the graph's costs; the model's log-probabilities get it, too.
        max_active: states that are kept in a frame.
    """

    graph: Fst
    words: tuple[str, ...]
    lm_weight: float
    insertion_penalty: float
    scale: float
    max_active: int


def of_model(folder: Path, features: Path | None = None) -> SherpaModel:
    """The model of a folder, without a graph.

    Args:
        features: the feature folder of its training, which tells their kind and sampling rate.

    Raises:
        DataError: a model without outputs of CTC, or of features that sherpa-onnx lacks.
    """
    rate = None
    if features is not None:
        about = read_yaml(features / ABOUT)
        _check_features(features / ABOUT, str(about.get("kind")))
        rate = int(about["sampling_rate"])
    return SherpaModel(_load(folder), rate)


def of_recognizer(file: Path) -> SherpaModel:
    """The model, graph and weights of a recipe's ``recognizer.yaml``.

    Args:
        file: it, or its folder.

    Raises:
        DataError: no recognizer, or as :func:`of_model`.
        GraphError: a graph that is missing, was made for another model, or cannot be read by
            sherpa-onnx.
    """
    file = file / FILE if file.is_dir() else file
    if not file.is_file():
        way_out = "run the recipe to its end, or export a model alone: --in-model"
        raise DataError(file, "a recognizer", "no such file", way_out)
    spec = configuration.load(RecognizerSpec, [file])
    _check_features(file, spec.features)
    folder = file.parent
    model, graph = _load(folder / spec.model), _load_graph(folder / spec.graph)
    outputs = model.num_tokens, model.tokens, model.ctc_topology
    check_outputs(graph, *outputs, folder / spec.model)
    [lm_weight], [penalty] = spec.search.lm_weights, spec.search.insertion_penalties
    num_words = graph.delimiters.first
    scale = min(1.0, BEAM / spec.search.search_beam)
    made = sherpa_graph(
        graph.TLG,
        num_tokens=len(graph.tokens),
        num_words=num_words,
        lm_weight=lm_weight,
        insertion_penalty=penalty,
        scale=scale,
        place=graph.folder / TLG_FILE,
    )
    words = graph.words[:num_words]
    max_active = max(spec.search.max_active_states, _MIN_ACTIVE + 1)
    search = SherpaSearch(made, words, lm_weight, penalty, scale, max_active)
    return SherpaModel(model, spec.sampling_rate, search)


def write_sherpa(parts: SherpaModel, folder: Path) -> None:
    """Write ``model.onnx tokens.txt README.md``, with a graph ``HLG.fst words.txt``; all or none.

    Raises:
        ConfigError: a model that cannot be an ONNX file, as a BLSTM that reads in chunks.
    """
    from privasr_k2.am.exporting import to_onnx

    with atomic_path(folder) as temporary:
        temporary.mkdir(parents=True)
        scale = 1.0 if parts.search is None else parts.search.scale
        to_onnx(parts.model, temporary / MODEL, scale=scale)
        write_text(temporary / TOKENS, symbols_text(parts.model.tokens or ()))
        if parts.search is not None:
            parts.search.graph.write(temporary / GRAPH)
            write_text(temporary / WORDS, symbols_text(parts.search.words))
        write_text(temporary / README, readme(parts))


def _check_features(place: Path, kind: str) -> None:
    if kind != FEATURES:
        way_out = "train on filter banks (--feature fbank), or use privasr transcribe"
        raise DataError(place, f"features {FEATURES}, which sherpa-onnx computes", kind, way_out)


def _load(folder: Path) -> CtcModel:
    """The CTC model of a folder, of filter banks alone, with its tokens."""
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.am.ctc import CtcModel

    model = load_model(folder)
    if not isinstance(model, CtcModel):
        way_out = "give its own ONNX file to sherpa-onnx"
        raise DataError(folder, "a CTC model that train_am wrote", "an imported one", way_out)
    if model.public is not None:
        way_out = "use privasr transcribe"
        expected = "a model of filter banks"
        raise DataError(folder, expected, "layers of a public encoder in it", way_out)
    if model.feature_dim != DIMENSIONS[FEATURES]:
        expected = f"{DIMENSIONS[FEATURES]} filter banks, which sherpa-onnx computes"
        found = f"{model.feature_dim} features, as of an encoder, of mfcc or sphinx"
        raise DataError(folder, expected, found, "train on filter banks, or use privasr transcribe")
    if model.tokens is None:
        way_out = "put the file there that it was trained with"
        raise DataError(folder / TOKENS, "the model's tokens", "no such file", way_out)
    return model


def _load_graph(folder: Path) -> TokenGraph:
    """A graph folder's TLG, of the standard topology."""
    if not (folder / TLG_FILE).is_file():
        way_out = f"make {TLG_FILE} with compile_graph, or with replace_names --set with_tlg=true; "
        way_out += "or export the model alone: --in-model"
        raise GraphError(folder / TLG_FILE, "a graph for sherpa-onnx", "no such file", way_out)
    graph = load_tlg(folder)
    topology = graph.info["ctc_topology"]
    if topology != "standard":
        expected = "ctc_topology: standard, as words would be lost between equal tokens"
        way_out = "compile the graph with ctc_topology=standard"
        raise GraphError(folder, expected, f"ctc_topology: {topology}", way_out)
    return graph
