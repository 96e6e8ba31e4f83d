"""The README.md of a folder for sherpa-onnx: what is in it, and how it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privasr_k2.graph.sherpa import BEAM

if TYPE_CHECKING:
    from privasr_k2.decoding.sherpa import SherpaModel, SherpaSearch

_ASSUMED_RATE = 16000
_GREEDY = "- There is no graph: each frame has its best token."
_TEXT = """# A model for sherpa-onnx

{facts}

Run this in the folder:

```python
import sherpa_onnx
import soundfile

recognizer = sherpa_onnx.OfflineRecognizer.from_zipformer_ctc(
    "model.onnx",
    "tokens.txt",
    sample_rate={rate},{graph}
)
{words}samples, sampling_rate = soundfile.read("FILE.wav", dtype="float32")
stream = recognizer.create_stream()
stream.accept_waveform(sampling_rate, samples)
recognizer.decode_stream(stream)
print({result})
```

Or the program of sherpa-onnx:

```bash
sherpa-onnx-offline --zipformer-ctc-model=model.onnx --tokens=tokens.txt \\
  --sample-rate={rate}{flags} FILE.wav
```
"""
_WORDS = """with open("words.txt", encoding="utf-8") as lines:
    words = dict(reversed(line.split()) for line in lines)
"""


def readme(parts: SherpaModel) -> str:
    """The text for a model, with or without a graph."""
    rate, search = parts.sampling_rate or _ASSUMED_RATE, parts.search
    facts = [f"- The model was trained on audio at {rate} Hz."]
    if parts.sampling_rate is None:
        facts = [
            f"- {rate} Hz is assumed: put the sampling rate of the training data in its place."
        ]
    if search is None:
        facts.append(_GREEDY)
        values = {"graph": "", "words": "", "flags": "", "result": "stream.result.text"}
    else:
        facts += _about_search(search)
        active = search.max_active
        values = {
            "graph": f'\n    ctc_graph="HLG.fst",\n    ctc_max_active={active},',
            "words": _WORDS,
            "flags": f" --ctc.graph=HLG.fst --ctc.max-active={active}",
            "result": '" ".join(words[str(number)] for number in stream.result.words)',
        }
    return _TEXT.format(facts="\n".join(facts), rate=rate, **values)


def _about_search(search: SherpaSearch) -> list[str]:
    weight, penalty = f"{search.lm_weight:g}", f"{search.insertion_penalty:g}"
    facts = [
        "- `words` of a result are numbers, which `words.txt` names. Its `text` is the tokens.",
        f"- LM weight {weight} and insertion penalty {penalty}, chosen on dev, are in `HLG.fst`.",
    ]
    if search.scale < 1:
        beam = f"{BEAM / search.scale:g}"
        facts += [
            f"- Log-probabilities and costs are multiplied by {search.scale:g}. The beam of",
            f"  sherpa-onnx, {BEAM:g}, which it does not let you set, is {beam} then.",
            "- A smaller `ctc_max_active` makes the search faster, and less exact.",
        ]
    return facts
