"""Federated adaptation of neural LMs on recognized text, with privacy for each client (liu2021)."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from local.stages import clients as text
from local.stages import federated as fl
from local.stages.first_pass import own_or_public_first_pass
from local.stages.second_pass import NeuralLm, train_lm
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Delta, Finite, from_conf, option, path_option


@dataclass(frozen=True)
class Options(text.ClientOptions):
    """Those of clients' text, and those of training."""

    nnlm: NeuralLm = option("char_lstm", "neural LM that is adapted")
    lm_epochs: Count | None = option(None, "passes over its public text (default: conf/lm_*.yaml)")
    epochs: Count | None = from_conf("finetune_lm.epochs", "passes of training on the server")
    confidence_use: tuple[fl.ConfidenceUse, ...] = option(
        (), "how confidences are used, beside 'all' (default: hard utterance token)")
    threshold: fl.Fraction | None = from_conf(
        "fedlm.confidences.threshold", "hard: least mean confidence of a sentence")
    without_claim: bool = option(True, "train without noise, too: federated, and on the server")
    scratch: bool = option(True, "the same from random weights")
    rounds: Count | None = from_conf("fedlm.rounds", "rounds of federated training")
    client_fraction: fl.Fraction | None = option(
        None, "share of the clients in a round (default: 0.2; of devices 0.1)")
    client_lr: Finite | None = from_conf("fedlm.client.lr", "learning rate of clients")
    server_lr: Finite | None = from_conf("fedlm.server.lr", "learning rate of the server")
    tune: bool = option(False, "choose learning rates on clients of dev (section fedlm_tune)")
    noises: tuple[Finite, ...] = option(
        (0.2, 0.5, 1.5), "noise multipliers of private training; '': none")
    private_confidence_use: tuple[fl.ConfidenceUse, ...] = option(
        (), "the same with noise (default: all token)")
    private_sampling: fl.Samplings = option(
        ("poisson",), "clients of a round: drawn, or in a fixed order with correlated noise")
    private_client_fraction: fl.Fraction | None = option(
        None, "poisson: the same with noise (default: 0.2; of devices 0.05; paper: 100 clients)")
    private_cohort: Count | None = from_conf("fedlm.cohort", "ordered: clients of a round")
    strategy: Literal["square_root", "blt", "tree", "increments"] = option(
        "square_root", "ordered: correlation of the noise")
    bands: Count | None = option(
        None, "square_root: correlated rounds (default: until a client's next turn)")
    private_rounds: Count | None = option(None, "rounds with noise (default: --rounds)")
    private_lr: Finite | None = option(None, "server.lr with noise (default: --server-lr)")
    private_trained: fl.Parts = option(
        ("all",), "with noise: parts of the model that clients train, a row each")
    private_init: fl.Inits = option(
        ("pretrained",), "with noise: begin with the pre-trained model, or that of half of dev")
    clip: Finite | None = option(
        None, "largest L2 norm of a client's update, with noise (default: 0.5; a part: conf)")
    delta: Delta = option(1e-5, "delta of the guarantee")
    roster: Path | None = path_option(
        "public list of all clients, with text or without, a line each (default: who has text)")
    audit: bool = option(True, "attack the private training with noise --audit-noise")
    audit_noise: Finite = option(0.5, "noise multiplier whose claim is attacked")


def stages(r: Recipe, o: Options) -> None:
    """A neural LM (stage 11) is adapted to the text of clients, by clients (13 to 15)."""
    calls, first = r.corpus.name == "earnings21" and not o.decode, None
    if o.noises and not calls:
        text.refuse_people_of_public_data(r, o)
    if o.decode:
        first = own_or_public_first_pass(r, o)                          # 0-8
        data, r.exp = first.data, f"exp/fedlm_{first.name}_{o.nnlm}"
        text.recognize(r, o, first)                                     # 9-10: with confidences
    else:
        data, r.exp = text.public_text_data(r, o.nnlm_text), f"exp/fedlm_text_{o.nnlm}"
        clients = text.call_clients(r, o) if calls else text.said_clients(r, o, data.manifests)
    pretrained = train_lm(r, 11, f"neural LM, {o.nnlm}, pre-trained", o.nnlm,
                          f"{r.exp}/lm/pretrained", in_manifests=data.manifests, in_lang=data.lang,
                          raw_text=o.nnlm_text, set={"epochs": o.lm_epochs})
    if first is not None:
        clients = text.recognized_clients(r, o, first, pretrained, tune=o.tune)             # 11
    uses, few, private_uses = fl.confidence_uses(r, o, some=o.decode or calls)
    a = fl.Adaptation(r, o, clients, pretrained, uses, private_uses, first)
    a.train_on_dev(12)                                                  # no client's text
    for use in uses:
        a.train_on_server(12, use)                                      # not private, in one place
    for use in uses:
        a.train_federated(13, use)          # not private; a round: privasr_k2.federated.fedlm
    if o.scratch and o.without_claim:
        a.train_on_server(14, "all", scratch=True)
        for use in few:
            a.train_federated(14, use, scratch=True)
    sampled, trained, begun = o.private_sampling, o.private_trained, o.private_init
    for claim in product(o.noises, private_uses, sampled, trained, begun):
        a.train_private(15, fl.Claim(*claim))               # clip and noise: a release each
    if o.noises and o.audit and o.audit_noise in o.noises:
        a.attack(16, o.audit_noise)
    fl.measure_perplexities(a, 17, data)
    if first is not None:
        fl.rescore_and_score(a, 18, first)                              # 18-19
    text.describe(r, clients, claims=bool(o.noises))
    r.report(20, manifests=data.manifests)
