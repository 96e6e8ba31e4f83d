"""Personalization after federated training: what a device learns of its own user, and keeps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import MinLen

from local.stages.clients import public_text_data, refuse_people_of_public_data
from local.stages.composed import FederatedOptions
from local.stages.first_pass import FirstPassOptions, own_or_public_first_pass
from local.stages.marginals import ONE_TEXT, Client
from local.stages.personal import Personalization, shared_lm
from local.stages.second_pass import NeuralLm
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, option, path_option

LABELS = {"cache": "n-gram cache", "adapter": "adapters", "names": "bonus for rare words"}


@dataclass(frozen=True)
class Options(FirstPassOptions, FederatedOptions):
    """Those of the first pass, of federated training, and of personalization."""

    decode: bool = option(True, "false: text alone; perplexities")
    nnlm: NeuralLm = option("lstm", "neural LM")
    lm: Path | None = path_option(
        "shared LM, such as a folder of recipe fedlm (default: trained by clients of adapt)")
    nnlm_text: Path | None = path_option(
        "public text of the neural LM and of the unigrams in place of the corpus's, a sentence a "
        "line; with --decode false of the vocabulary, too")
    lm_epochs: Count | None = option(None, "passes over the public text (default: conf/lm_*.yaml)")
    adapt_role: str = option("adapt", "part of the corpus whose speakers train the shared LM")
    client: Client = option("speaker", "whose utterances one device hears")
    methods: Annotated[tuple[Literal["cache", "adapter", "names"], ...], MinLen(1)] = option(
        ("cache", "adapter", "names"), "how devices personalize, beside unigrams")
    groups: Count = option(10, "T: a client's utterances are cut in time into T + 1 groups")
    nbest: Count = option(20, "hypotheses of an utterance, at most")
    mix: Literal["dev", "preset"] = option(
        "dev", "weights of n-gram and neural LM: chosen on dev, or 0.5")


def stages(r: Recipe, o: Options) -> None:
    """The shared LM (stages 9 and 10) is personalized on the devices of test (12 to 15)."""
    if o.lm is None:
        refuse_people_of_public_data(r, o)
    first = own_or_public_first_pass(r, o) if o.decode else None        # 0-8
    data = first.data if first else public_text_data(r, o.nnlm_text)
    base = f"exp/personal_{first.name}" if first else "exp/personal_text"
    r.exp = f"{base}_{o.client}_{o.lm.name if o.lm else o.nnlm}"
    lm = shared_lm(r, o, data, first)                                   # 9-10
    of_file = {"in_text": o.nnlm_text, "set": ONE_TEXT}
    text = of_file if o.nnlm_text else {"in_manifests": data.manifests}
    background = r.stage(10, "unigrams u of public text", "prepare_fmp", config="fmp_background",
                         **text, in_lm=lm, out_background=f"{r.exp}/background.safetensors")
    m = Personalization(r, o, data, lm, background, first, name=o.nnlm, times=True)
    m.prepare_clients()                                                 # 10-11
    lam = m.tune_lambda()                                               # 12: on dev
    m.shared()
    for method in o.methods:            # each: privasr_k2.federated.personal_methods
        m.devices(method, LABELS[method])
    m.own_marginals()
    m.row("fmp", "unigrams of the user and of all", "all", lam, {})
    m.run()                                                             # 14-15
    m.compare_people(16)
    r.report(17, manifests=data.manifests)
