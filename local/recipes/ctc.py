"""CTC acoustic model, word n-gram, one-pass decoding: from a corpus to a word error rate."""

from dataclasses import dataclass

from local.stages.data import PhoneOptions
from local.stages.first_pass import GraphOptions, backend, first_pass, score
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
    r.stage(10, "recognizer, for privasr transcribe", "export",
            config=("decode", "graph", "hotwords"), in_model=first.am, in_graph=first.graph,
            in_feats=first.data.feats, in_weights=first.weights, in_lang=first.data.lang,
            in_lm=first.lm, out_recognizer=f"{r.exp}/recognizer.yaml", set={"backend": backend(r)})
    r.report(11, manifests=first.data.manifests, phones=o.per)
