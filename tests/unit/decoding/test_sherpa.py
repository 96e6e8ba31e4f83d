"""What goes into a folder for sherpa-onnx, and what is refused before anything is written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2 import config
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.kinds import new_model
from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.recognizer import FILE, RecognizerSpec
from privasr_k2.decoding.sherpa import of_recognizer
from privasr_k2.errors import PrivasrError
from privasr_k2.fileio import write_text
from privasr_k2.graph.openfst import Fst
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support import end_to_end
from tests.support.small_am import encoder_config, upon_whisper
from tests.support.small_graphs import make_graph, make_lang
from tests.support.verbs import call, refused

# b and d sound alike.
LEXICON = "a A\nb B\nd B\n"
SEARCH = SearchConfig("k2", 30.0, 12.0, 30, 1000, 1.2, [1.2], [0.5])


def a_model(feature_dim: int = 80) -> CtcModel:
    """Of tokens <blk> A B."""
    encoder = encoder_config("tdnn")
    return new_model(CtcSpec("ctc", feature_dim, 3, utterance_mean=True, encoder=encoder), seed=1)


def save(model: CtcModel, folder: Path, tokens: tuple[str, ...] = ("<blk>", "A", "B")) -> None:
    save_model(folder, model.spec, model.state_dict(), tokens)


@pytest.fixture
def exp(tmp_path: Path) -> Path:
    """A recognizer's folder."""
    lang, text = make_lang(tmp_path / "lang", LEXICON), [["a", "b"], ["d", "a"], ["b"]]
    make_graph(
        tmp_path / "graph",
        lang,
        estimate(count_ngrams(text, ["a", "b", "d"], order=2), "witten_bell"),
    )
    save(a_model(), tmp_path / "exp/am")
    write_spec(tmp_path / "exp")
    return tmp_path / "exp"


def write_spec(exp: Path, **values: object) -> None:
    spec = RecognizerSpec("am", "../graph", "fbank", 8000, SEARCH)
    config.save(dataclasses.replace(spec, **values), exp / FILE)


def test_a_recognizer_with_its_graph(exp: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    call("export --in-recognizer", exp / FILE, "--sherpa", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"model.onnx", "tokens.txt", "HLG.fst", "words.txt", "README.md"}
    assert (tmp_path / "out/words.txt").read_text() == "<eps> 0\na 1\nb 2\nd 3\n#0 4\n"
    graph = Fst.read(tmp_path / "out/HLG.fst")
    assert set(graph.olabels[graph.ilabels > 1].tolist()) == {0, 1, 2, 3}
    assert not graph.olabels[graph.ilabels <= 1].any()
    text = (tmp_path / "out/README.md").read_text()
    assert "sample_rate=8000,\n    ctc_graph=" in text and "ctc_max_active=1000," in text
    assert "LM weight 1.2 and insertion penalty 0.5" in text and ", is 30 then." in text
    session = onnxruntime.InferenceSession(str(tmp_path / "out/model.onnx"))
    features = np.random.default_rng(1).normal(size=(1, 50, 80)).astype(np.float32)
    lengths = np.array([50])
    [theirs, _] = session.run(None, {"features": features, "lengths": lengths})
    ours, _ = a_model().log_probs(torch.from_numpy(features), torch.from_numpy(lengths))
    assert theirs == pytest.approx(ours.numpy() * 16 / 30, abs=1e-4)


@pytest.mark.parametrize(
    ("flags", "rate"), [("", "16000 Hz is assumed"), ("--in-feats", "8000 Hz")]
)
def test_a_model_alone(exp: Path, tmp_path: Path, flags: str, rate: str) -> None:
    pytest.importorskip("onnx")
    write_text(tmp_path / "feats/features.yaml", "kind: fbank\nsampling_rate: 8000\n")
    more = (flags, tmp_path / "feats") if flags else ()
    call("export --in-model", exp / "am", *more, "--out-sherpa", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"model.onnx", "tokens.txt", "README.md"}
    text = (tmp_path / "out/README.md").read_text()
    assert rate in text and "ctc_graph" not in text and "stream.result.text" in text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"features": "mfcc"}, "expected features fbank, which sherpa-onnx computes, found mfcc"),
        ({"features": "given"}, "found given"),
        ({"features": "encoder"}, "found encoder"),
        ({"graph": "../nowhere"}, "TLG.fst: expected a graph for sherpa-onnx, found no such file"),
        ({"model": "../nowhere"}, "model.yaml: expected an acoustic model"),
    ],
)
def test_recognizers_that_are_refused(
    exp: Path, tmp_path: Path, values: dict[str, str], message: str
) -> None:
    write_spec(exp, **values)
    with refused(message):
        call("export --in-recognizer", exp / FILE, "--sherpa", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_else_is_refused(exp: Path, tmp_path: Path) -> None:
    out = ("--sherpa", tmp_path / "out")
    with refused("recognizer.yaml: expected a recognizer, found no such file"):
        call("export --in-recognizer", tmp_path, *out)
    with refused("--in-model for --out-sherpa"):
        call("export", *out)
    with refused("found --in-model --in-recognizer"):
        call("export --in-recognizer", exp, "--in-model", exp / "am", *out)
    save(a_model(feature_dim=40), tmp_path / "mfcc")
    with refused("expected 80 filter banks, which sherpa-onnx computes, found 40 features"):
        call("export --in-model", tmp_path / "mfcc", *out)
    save(upon_whisper(), tmp_path / "upper", ("<blk>", *"abcdefgh")[: upon_whisper().num_tokens])
    with refused("expected a model of filter banks, found layers of a public encoder in it"):
        call("export --in-model", tmp_path / "upper", *out)
    transducer = end_to_end.model("rnnt")
    save_model(tmp_path / "rnnt", transducer.spec, transducer.state_dict(), None)
    with refused("expected a model with outputs of CTC, found"):
        call("export --in-model", tmp_path / "rnnt", *out)
    write_text(tmp_path / "feats/features.yaml", "kind: encoder\nsampling_rate: 16000\n")
    with refused("found encoder"):
        call("export --in-model", exp / "am", "--in-feats", tmp_path / "feats", *out)
    graph = tmp_path / "graph/graph.yaml"
    text = graph.read_text()
    graph.write_text(text.replace("ctc_topology: standard", "ctc_topology: modified"))
    with refused("ctc_topology: standard, as words would be lost"):
        call("export --in-recognizer", exp, *out)
    graph.write_text(text)
    save(a_model(), exp / "am", ("<blk>", "A", "C"))
    with pytest.raises(PrivasrError, match="C"):
        of_recognizer(exp)
    (tmp_path / "graph/TLG.fst").write_bytes((tmp_path / "graph/TLG.fst").read_bytes()[:-8])
    with refused("TLG.fst"):
        call("export --in-recognizer", exp, *out)
    assert not (tmp_path / "out").exists()
