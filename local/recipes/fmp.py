"""Federated marginal personalization: clients' unigrams adapt a neural LM (liu2020)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from local.stages.data import prepare_data
from local.stages.first_pass import FirstPassOptions, own_or_public_first_pass
from local.stages.marginals import Marginals, Run
from local.stages.second_pass import train_lm
from privasr_k2.recipe.declare import Declared, Recipe
from privasr_k2.recipe.options import Count, Finite, option, path_option


@dataclass(frozen=True)
class Options(FirstPassOptions):
    """Those of the first pass, of clients, and of releases."""

    decode: bool = option(True, "false: text alone; perplexities")
    client: Literal["speaker", "recording", "document", "part", "prefix"] = option(
        "speaker", "what a client is; prefix: of the utterance id, AMI's meeting")
    rounds: Annotated[tuple[Count, ...], MinLen(1)] = option(
        (1, 2, 5, 10), "numbers of rounds T; the last one for tables 3 and 4")
    nbest: Count = option(20, "hypotheses of an utterance, at most: the paper's 20 or 100")
    mix: Literal["dev", "preset"] = option(
        "dev", "weights of n-gram and neural LM: chosen on dev, or the paper's 0.5")
    epsilons: tuple[Finite, ...] = option(
        (0.1, 0.5, 1.0, 2.0), "epsilons, one release each; '': none")
    privacy_unit: Annotated[tuple[Literal["utterance", "user"], ...], MinLen(1)] = option(
        ("utterance", "user"), "what releases protect; the last one is audited")
    as_published: bool = option(True, "release by eq. 8-9, too: bounds nothing, no limit allows it")
    background: Path | None = path_option("text of the unigrams u (default: that of the LM)")
    nnlm_text: Path | None = path_option("text of the neural LM, a normalized sentence a line")
    lm_epochs: Count | None = option(None, "passes over it (default: section lm_transformer)")


def stages(r: Recipe, o: Options) -> None:
    """Global marginals are averaged or released (stage 13) and adapt the LM round by round (14)."""
    first = own_or_public_first_pass(r, o) if o.decode else None        # 0-8
    data = first.data if first else prepare_data(r, speech=False)
    base = f"exp/fmp_{first.name}" if first else "exp/fmp_text"
    r.exp = f"{base}_{o.client}"
    own_text: dict[str, Any] = {"in_manifests": data.manifests, "raw_text": o.nnlm_text}
    lm = train_lm(r, 9, "neural LM, transformer", "transformer", f"{r.exp}/lm/transformer",
                  in_lang=data.lang, **own_text, set={"epochs": o.lm_epochs})
    u = r.stage(9, "unigrams u of background text", "prepare_fmp", config="fmp_background",
                **({"in_text": o.background} if o.background else own_text), in_lm=lm,
                out_background=f"{r.exp}/background.safetensors")
    m = Marginals(r, o, data, lm, u, first)
    m.prepare_clients()                                                 # 10-11
    lam, grid = m.tune()                                                # 12: on dev
    kind = "protected_timeline" if o.epsilons else "timeline"
    r.about("clients", "test").path(kind, "timeline_test.jsonl")
    baseline = r.system("baseline", label="no adaptation", method="public", study="all")
    m.runs.append(Run(baseline, {"rounds": m.most_rounds, "lam": 0}, None))

    def system(name: str, label: str, study: str, settings: dict[str, Any], *, choice: str = lam,
               release: str | None = None, **facts: Any) -> Declared:
        facts = {"compare_with": [baseline], **facts}
        declared = r.system(name, label=label, method="fmp", public=baseline, study=study, **facts)
        if release:
            declared.path("privacy", "privacy.json")
        m.runs.append(Run(declared, {"rounds": m.most_rounds, **settings}, choice, release))
        return declared

    by_rounds = {t: system(f"T{t}", f"T = {t}", "rounds", {"rounds": t}, rounds=t)
                 for t in o.rounds}
    full = by_rounds[max(by_rounds)]
    for width in (0.1, 1.0, 10.0, 100.0) if o.decode else ():           # text has one hypothesis
        system(f"grid_sigma_{width:g}", f"kernel bandwidth {width:g}", "weights",
               {"kernel_bandwidth": width}, kernel_bandwidth=width)
    if o.decode:
        on_dev = system("grid_dev", "alpha, beta, bandwidth of dev", "weights", {}, choice=grid)
        on_dev.add("weights", grid)
    system("grid_beta_only", "beta alone", "weights", {"alpha": 0.0, "beta": 0.75},
           alpha=0.0, beta=0.75, compare_with=[baseline, full])
    system("grid_alpha_only", "alpha alone", "weights", {"alpha": 0.75, "beta": 0.0},
           alpha=0.75, beta=0.0, compare_with=[baseline, full])
    narrow = {"kernel_bandwidth": 0.1}
    exact = system("eps_none", "not released", "release", narrow) if o.epsilons else None
    for epsilon in o.epsilons:
        for unit in o.privacy_unit:
            name = f"eps_{unit}_{epsilon:g}"
            file = m.release(name, "fmp_release", unit=unit, epsilon=epsilon)
            system(name, f"released, epsilon {epsilon:g}, each {unit}", "release", narrow,
                   release=file, not_private=exact, headline=unit == o.privacy_unit[-1],
                   protects=f"each {unit} of {r.people}/test, in the global marginal",
                   epsilon=epsilon, unit=unit)
        if o.as_published:
            name = f"eps_published_{epsilon:g}"
            file = m.release(name, "fmp_published", epsilon=epsilon)
            system(name, f"eq. 8-9 as published, called epsilon {epsilon:g}", "release", narrow,
                   release=file, not_private=exact, epsilon=epsilon, unit="utterance",
                   published=True)
    m.run()                             # 14-15: the adapted LM is privasr_k2.federated.adapted_lm
    if o.epsilons:
        m.audit(o.privacy_unit[-1])                                     # 16
    r.report(17, manifests=data.manifests)
