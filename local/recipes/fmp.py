"""Federated marginal personalization: clients' unigrams adapt a neural LM (liu2020)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import MinLen

from local.stages.data import prepare_data
from local.stages.first_pass import FirstPassOptions, own_or_public_first_pass
from local.stages.marginals import Client, Marginals, prepare_models
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Finite, option, path_option


@dataclass(frozen=True)
class Options(FirstPassOptions):
    """Those of the first pass, of clients, and of releases."""

    decode: bool = option(True, "false: text alone; perplexities")
    client: Client = option(
        "speaker", "what a client is; prefix: of the utterance id, AMI's meeting")
    clients_beside: tuple[Client, ...] = option((), "other kinds of client, with rows of their own")
    rounds: Annotated[tuple[Count, ...], MinLen(1)] = option(
        (1, 2, 5, 10), "numbers of rounds T; the last one for tables 3 and 4")
    nbest: Count = option(20, "hypotheses of an utterance, at most: the paper's 20 or 100")
    mix: Literal["dev", "preset"] = option(
        "dev", "weights of n-gram and neural LM: chosen on dev, or the paper's 0.5")
    epsilons: tuple[Finite, ...] = option(
        (0.1, 0.5, 1.0, 2.0), "epsilons, one release each; '': none")
    privacy_unit: Annotated[tuple[Literal["utterance", "user"], ...], MinLen(1)] = option(
        ("user",), "whose capped counts releases protect; the last one is audited")
    as_published: bool = option(False, "by eq. 8-9, too: bounds nothing, no limit allows it")
    background: Path | None = path_option("text of the unigrams u (default: that of the LM)")
    nnlm_text: Path | None = path_option("text of the neural LM, a normalized sentence a line")
    own_text: bool = option(True, "false: u and the neural LM of --nnlm-text alone, another domain")
    lm_epochs: Count | None = option(None, "passes over it (default: section lm_transformer)")


def stages(r: Recipe, o: Options) -> None:
    """Global marginals are averaged or released (stage 13) and adapt the LM round by round (14)."""
    if not o.own_text and o.nnlm_text is None:
        r.refuse("--own-text", "--nnlm-text with false", "none", "give the text of the neural LM")
    first = own_or_public_first_pass(r, o) if o.decode else None        # 0-8
    data = first.data if first else prepare_data(r, speech=False)
    base = f"exp/fmp_{first.name}" if first else "exp/fmp_text"
    r.exp = f"{base}_{o.client}{'' if o.own_text else '_other_domain'}"
    m = Marginals(r, o, data, *prepare_models(r, o, data), first)       # 9
    m.prepare_clients(o.clients_beside)                                 # 10-11
    lam = m.tune_lambda()                                               # 12: on dev
    kind = "protected_timeline" if o.epsilons else "timeline"
    r.about("clients", "test").path(kind, "timeline_test.jsonl")
    baseline = m.unadapted("baseline", "no adaptation", "all")

    by_rounds = {t: m.row(f"T{t}", f"T = {t}", "rounds", lam, {"rounds": t}, rounds=t)
                 for t in o.rounds}
    full = by_rounds[max(by_rounds)]
    for other in o.clients_beside:
        plain = m.unadapted(f"baseline_{other}", f"no adaptation, {other}", "rounds", other)
        m.row(f"T{m.most_rounds}_{other}", f"T = {m.most_rounds}, clients {other}", "rounds", lam,
              {}, client=other, rounds=m.most_rounds, compare_with=[plain])
    for width in (0.1, 1.0, 10.0, 100.0) if o.decode else ():           # text has one hypothesis
        m.row(f"grid_sigma_{width:g}", f"kernel bandwidth {width:g}", "weights", lam,
              {"kernel_bandwidth": width}, kernel_bandwidth=width)
    if o.decode:
        grid = m.tune_grid()
        on_dev = m.row("grid_dev", "alpha, beta, bandwidth of dev", "weights", grid, {})
        on_dev.add("weights", grid)
    for name, alpha, beta in (("beta", 0.0, 0.75), ("alpha", 0.75, 0.0)):
        m.row(f"grid_{name}_only", f"{name} alone", "weights", lam, {"alpha": alpha, "beta": beta},
              alpha=alpha, beta=beta, compare_with=[baseline, full])
    if o.epsilons:
        m.releases(lam)                                                 # 13
    m.run()                             # 14-15: the adapted LM is privasr_k2.federated.adapted_lm
    if o.epsilons:
        m.audit(o.privacy_unit[-1])                                     # 16
    r.report(17, manifests=data.manifests)
