"""Stages 11, 12 and 14 to 16 of compose: federated training on devices, and personalization."""

from dataclasses import dataclass
from typing import Any

from local.stages.clients import client_share, dealt, protected_people
from local.stages.federated import CLIP
from local.stages.marginals import RELEASED_BANDWIDTH
from local.stages.sanitized import Sanitized
from local.stages.second_pass import select_best
from privasr_k2.recipe.declare import Declared, Recipe
from privasr_k2.recipe.options import Count, Delta, Positive, Share, from_conf, option


@dataclass(frozen=True)
class FederatedOptions:
    """Those of one training by clients under a claim."""

    noise_multiplier: Positive = option(0.5, "noise of federated training, by the clip")
    clip: Positive = option(CLIP, "largest L2 norm of a client's update")
    client_fraction: Share | None = option(
        None, "probability of each client in a round (default: 0.2; of devices 0.05)")
    rounds: Count | None = from_conf("fedlm.rounds", "rounds of federated training")
    server_lr: Positive | None = from_conf("fedlm.server.lr", "learning rate of the server")
    delta: Delta = option(1e-5, "delta of federated training")


def train_federated(r: Recipe, o: Any, init: str) -> tuple[str, str]:
    """Stages 11 and 12: the LM ``init`` trained on recognized text of adapt [liu2021].

    Returns:
        the LM, and its guarantee.
    """
    clients = r.stage(11, "clients and what was recognized", "make_clients", config="clients",
                      in_nbest=f"{r.exp}/nbest_adapt", out_clients=f"{r.exp}/clients.jsonl.gz",
                      set=dealt(o))
    r.stage(11, "references of dev", "make_clients", config="clients",
            in_nbest=f"{r.exp}/nbest_dev", out_clients=f"{r.exp}/dev/clients.jsonl.gz",
            out_text=f"{r.exp}/dev/text.txt.gz", set={"client": "speaker", "text": "ref"})
    return train_private(r, o, 12, init, clients, protected_people(r, "adapt", o)[0])


def train_private(
    r: Recipe, o: Any, number: int, init: str, clients: str, data: str
) -> tuple[str, str]:
    """One training by clients under a claim.

    Args:
        data: what the ledger calls the clients.

    Returns:
        the LM, and its guarantee.
    """
    privacy = f"{r.exp}/federated_privacy.json"
    lm = r.stage(number, f"federated and private, noise {o.noise_multiplier:g}", "train_fedlm",
                 train=True, spends=True, config="fedlm", in_private_clients=clients,
                 in_public_init=init, in_public_dev_text=f"{r.exp}/dev/text.txt.gz",
                 out_dir=f"{r.exp}/lm/federated", out_privacy=privacy,
                 set={"data": data, "weights.by": "uniform", "privacy.clip": o.clip,
                      "privacy.noise": o.noise_multiplier, "privacy.delta": o.delta,
                      "client_fraction": o.client_fraction or client_share(r, o, 0.05),
                      "rounds": o.rounds,
                      "server.lr": o.server_lr})
    r.about("clients", "clients").add("protected_clients", clients)
    return lm, privacy


def personalize(
    r: Recipe, o: Any, s: Sanitized, lm: str, plain: str, classes: str, federated: Declared,
    personalized: Declared,
) -> None:
    """Stages 14 to 16: unigrams of each user and released ones of all adapt the LM [liu2020].

    Args:
        plain, classes: scores of words by the LM and by the class LM, of each ``ROLE``.
        federated: the system of the LM as it is; its weights are used.
    """
    fmp = {"rounds": o.fmp_rounds, "kernel_bandwidth": RELEASED_BANDWIDTH}
    weights = federated.artifacts["weights"]
    scores = f"{personalized.folder}/lm_scores/test.safetensors"
    background = r.stage(14, "unigrams u of the sanitized text", "prepare_fmp",
                         config="fmp_background", in_text=s.text, in_lm=lm,
                         out_background=f"{r.exp}/background.safetensors")
    inputs = {}
    for role in ("dev", "test"):
        timeline = r.stage(14, f"users of {role}", "prepare_fmp", config="fmp_timeline",
                           in_manifests=s.data.manifests, in_nbest=f"{r.exp}/nbest_{role}",
                           out_timeline=f"{r.exp}/timeline_{role}.jsonl", set={"client": "speaker"})
        inputs[role] = {"in_nbest": f"{r.exp}/nbest_{role}", "in_timeline": timeline, "in_lm": lm,
                        "in_background": background, "in_plain": plain.replace("ROLE", role)}
    choice = r.stage(14, "lambda, chosen on the users of dev", "personalize", config="fmp",
                     device=True, **inputs["dev"], in_scores=classes.replace("ROLE", "dev"),
                     in_weights=weights, in_manifests=s.scored, out_choice=f"{r.exp}/lambda.json",
                     set=fmp)
    privacy = personalized.add("privacy", f"{r.exp}/marginals_privacy.json")
    release = r.stage(15, f"releases of unigrams, epsilon {o.epsilon:g}", "release_fmp",
                      config="fmp_release", spends=True, in_private_nbest=f"{r.exp}/nbest_test",
                      in_private_timeline=f"{r.exp}/timeline_test.jsonl", in_public_lm=lm,
                      out_release=f"{r.exp}/marginals.safetensors", out_privacy=privacy,
                      set={"data": f"{r.people}/test", "unit": "user", **fmp, "epsilon": o.epsilon})
    r.stage(16, "personalized", "personalize", config="fmp", device=True, **inputs["test"],
            in_choice=choice, in_release=release, out_scores=scores,
            out_run=personalized.path("run", "run_test.json"), set=fmp)
    select_best(r, 16, "test by personalized", f"{r.exp}/nbest_test", s.scored,
                f"{personalized.folder}/decode_test",
                scores=[classes.replace("ROLE", "test"), scores], weights=weights)
    r.about("timeline", "users").add("protected_timeline", f"{r.exp}/timeline_test.jsonl")
    r.about("lambda", "lambda of personalization").add("weights", choice)
