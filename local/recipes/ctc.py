"""CTC acoustic model, word n-gram, one-pass decoding: from a corpus to a word error rate."""

from dataclasses import dataclass

from local.stages.data import PhoneOptions
from local.stages.first_pass import GraphOptions, first_pass, score, write_recognizer
from privasr_k2.recipe.declare import Recipe


@dataclass(frozen=True)
class Options(PhoneOptions, GraphOptions):
    """Those of the acoustic model, of its graph, and of the report."""


def stages(r: Recipe, o: Options) -> None:
    """Stages 0 to 8 are those of every first pass."""
    first = first_pass(r, o)
    r.exp = first.exp
    ctc = r.system("ctc", label="CTC, one pass", method="not_private", token_type=r.data.token_type)
    for role in ("dev", "test"):
        score(r, 9, f"score {role}", hyps=f"{r.exp}/decode_{role}", weights=first.weights,
              role=role, first=first, out=ctc.add(f"score_{role}", f"{r.exp}/score_{role}"))
    ctc.add("weights", first.weights)
    write_recognizer(r, 10, "recognizer, for privasr transcribe", first)
    r.report(11, manifests=first.data.manifests, phones=o.per)
