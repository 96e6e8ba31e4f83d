"""Stages 0 to 11 of recipe fedlm: the text of clients, and the public text beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from local.stages.data import Data, prepare_data
from local.stages.first_pass import FirstPass, FirstPassOptions, decode
from local.stages.second_pass import grid_of, nbest_lists, score_words, select_best
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, from_conf, option, path_option, settings_of


@dataclass(frozen=True)
class ClientOptions(FirstPassOptions):
    """Options that choose what clients have."""

    decode: bool = option(True, "false: text alone; clients have what was said")
    nnlm_text: Path | None = path_option(
        "public text of the neural LM in place of the corpus's, a sentence a line; "
        "with --decode false of the vocabulary, too")
    client_text: Literal["first_pass", "rescored"] = option(
        "first_pass", "what clients have: best hypotheses of the first pass, or after rescoring "
        "with the pre-trained LM")
    adapt_role: str = option("adapt", "part of the corpus whose utterances clients have")
    client: Literal["speaker", "zipf", "devices"] = option(
        "speaker", "clients: speakers, or simulated devices with random utterances (zipf) or whole "
        "speakers (devices)")
    devices: Count | None = from_conf("clients.devices", "zipf, devices: number of devices")
    recognizer: str | None = from_conf(
        "earnings21_clients.recognizer", "earnings21: recognizer whose words clients have")


@dataclass(frozen=True)
class Clients:
    """The text of clients, and the public text beside it.

    Attributes:
        train: clients.jsonl.gz with the text that is trained on, private.
        dev: the same of dev as it was recognized; ``dev_said``: its references.
        dev_text: the references of dev, a sentence a line.
        test: clients.jsonl.gz of the text that is scored.
        group: what bootstrap draws again: ``client`` or ``call``.
        people: what the ledger calls the clients.
        unit: what a client is.
        rescored: folder of the hypotheses that clients have, where they were rescored.
    """

    train: str
    dev: str
    dev_said: str
    dev_text: str
    test: str
    group: str
    people: str
    unit: str
    rescored: str = ""


def public_text_data(r: Recipe, text: Path | None) -> Data:
    """Stages 0 and 2 without speech; with public ``text`` no word is of the corpus alone."""
    if text is None:
        return prepare_data(r, speech=False)
    data = prepare_data(r, speech=False, lang_name="public", make_lang=False)
    words = settings_of(r.data.lang_options)
    r.stage(2, "vocabulary of public text", "prepare_lang", config=("lang", "public_lang"),
            in_manifests=data.manifests, raw_lm_text=text, out_dir=data.lang, set=words)
    return data


def refuse_people_of_public_data(r: Recipe, o: ClientOptions) -> None:
    """A claim for people whose words are used elsewhere, too, would be false."""
    train_is_used = o.decode or o.nnlm_text is None
    if o.adapt_role in ("dev", "test") or (o.adapt_role == "train" and train_is_used):
        r.refuse("--adapt-role",
                 "people whose words nothing else is made of, as --noises claims privacy for them",
                 f"{o.adapt_role}, of which models or results are made",
                 "name another role; for train add --decode false --nnlm-text FILE; "
                 "or claim nothing: --noises ''")


def recognize(r: Recipe, o: ClientOptions, first: FirstPass) -> None:
    """Stages 9 and 10: N-best lists and confidences of the text that clients will have.

    Long lists, in ``lists``, are for confidences; those in ``five`` are rescored.
    """
    role, exp = o.adapt_role, r.exp
    for part in ("dev", role):
        nbest_lists(r, 9, f"N-best lists of {part}, for confidences", first, part,
                    f"{exp}/lists/nbest_{part}",
                    hyps=f"{exp}/no_nnlm/decode_adapt" if part == role else "")
    for part in ("dev", "test"):
        nbest_lists(r, 9, f"N-best lists of {part}, for rescoring", first, part,
                    f"{exp}/five/nbest_{part}", num_paths=5,
                    hyps=first_hyps(first, exp) if part == "test" else "")
    if first.whisper is None:
        decode(r, 9, f"decode {role}", first, role, f"{exp}/no_nnlm/decode_adapt", tuned=True)
    model = r.stage(10, "confidence model, trained on dev", "train_confidence", config="confidence",
                    in_nbest=f"{exp}/lists/nbest_dev", in_weights=first.weights,
                    in_manifests=first.data.manifests, out_model=f"{exp}/confidence/model")
    r.stage(10, f"confidences of {role}", "apply_confidence", config="apply_confidence",
            in_model=model, in_nbest=f"{exp}/lists/nbest_{role}",
            out_nbest=f"{exp}/confidence/nbest_{role}/1.jsonl")


def recognized_clients(r: Recipe, o: ClientOptions, first: FirstPass, lm: str, *,
                       tune: bool) -> Clients:
    """Stage 11: clients with best hypotheses, maybe after rescoring by the pre-trained ``lm``."""
    role, exp, rescored = o.adapt_role, r.exp, ""
    if o.client_text == "rescored":
        rescored = _rescore(r, first, lm, ("dev", role) if tune else (role,))
    hyps = {part: f"{rescored}/decode_{part}" if rescored else None for part in ("dev", role)}
    train = _make_clients(r, 11, "text of clients", f"{exp}/clients.jsonl.gz",
                          in_nbest=f"{exp}/confidence/nbest_{role}", in_hyps=hyps[role],
                          set=dealt(o))
    dev = f"{exp}/dev/clients.jsonl.gz"
    if tune:
        dev = _make_clients(r, 11, "recognized text of dev", f"{exp}/dev/recognized.jsonl.gz",
                            in_nbest=f"{exp}/lists/nbest_dev", in_hyps=hyps["dev"],
                            set={"client": "speaker"})
    clients = _with_references(r, 11, o, train, dev, {
        part: {"in_nbest": f"{exp}/five/nbest_{part}"} for part in ("dev", "test")})
    return replace(clients, rescored=hyps[role] or "")


def _rescore(r: Recipe, first: FirstPass, lm: str, roles: Sequence[str]) -> str:
    """The lists of roles rescored as devices do it, by weights chosen on dev; returns the folder.

    The n-gram LM and the pre-trained one are interpolated [liu2021, section 2.2].
    """
    folder, lists, manifests = f"{r.exp}/client_text", f"{r.exp}/lists/nbest_", first.data.manifests
    scores = {
        role: [score_words(r, 11, f"words of {role} by {name}, for clients", f"{lists}{role}", by,
                           name, f"{folder}/lm_scores/{name}_{role}.safetensors")
               for name, by in (("ngram", first.lm), ("pretrained", lm))]
        for role in dict.fromkeys(("dev", *roles))}
    weights = r.stage(11, "weights of the pre-trained LM for clients, chosen on dev",
                      "tune_weights", config=grid_of(first), in_nbest=f"{lists}dev",
                      in_scores=scores["dev"], in_manifests=manifests,
                      out_weights=f"{folder}/rescoring.json")
    for role in roles:
        select_best(r, 11, f"{role} rescored, for clients", f"{lists}{role}", manifests,
                    f"{folder}/decode_{role}", scores=scores[role], weights=weights)
    return folder


def first_hyps(first: FirstPass, exp: str) -> str:
    """What the first pass found in test. Whisper's search is made anew for these lists."""
    return f"{exp}/no_nnlm/decode_test" if first.whisper else f"{first.exp}/decode_test"


def said_clients(r: Recipe, o: ClientOptions, manifests: str) -> Clients:
    """Stage 10 where nothing was recognized: clients have what was said."""
    cuts = {part: {"in_cuts": f"{manifests}/cuts_{part}.jsonl.gz"}
            for part in (o.adapt_role, "dev", "test")}
    train = _make_clients(r, 10, "text of clients", f"{r.exp}/clients.jsonl.gz",
                          **cuts[o.adapt_role], set={**dealt(o), "text": "ref"})
    return _with_references(r, 10, o, train, f"{r.exp}/dev/clients.jsonl.gz", cuts)


def call_clients(r: Recipe, o: ClientOptions) -> Clients:
    """Stage 10 of earnings21: a client is a speaker of a call, with a recognizer's words."""
    out = "data/earnings21_clients"
    r.stage(10, "recognized and gold text of calls, by speaker", "prepare_earnings21",
            config=("earnings21", "earnings21_clients"), raw_corpus=r.data.corpus_dir,
            out_clients=out, set={"recognizer": o.recognizer})
    return Clients(
        train=f"{out}/recognized_train.jsonl.gz", dev=f"{out}/recognized_dev.jsonl.gz",
        dev_said=f"{out}/gold_dev.jsonl.gz", dev_text=f"{out}/gold_dev.txt.gz",
        test=f"{out}/gold_test.jsonl.gz", group="call", people=f"{r.people}/train", unit="speaker")


def _make_clients(r: Recipe, number: int, title: str, out: str, *, set: dict[str, Any],
                  out_text: str | None = None, **source: str | None) -> str:
    return r.stage(number, title, "make_clients", config="clients", **source, out_clients=out,
                   out_text=out_text, set=set)


def client_share(r: Recipe, o: Any, of_devices: float | None) -> float | None:
    """The share of clients in a round, where no option says it: speakers are few."""
    return 0.2 if o.client == "speaker" and r.data.preset != "paper" else of_devices


def dealt(o: Any) -> dict[str, Any]:
    """Settings of make_clients."""
    return {"client": o.client, "devices": None if o.client == "speaker" else o.devices}


def _with_references(
    r: Recipe, number: int, o: ClientOptions, train: str, dev: str,
    sources: Mapping[str, dict[str, str]],
) -> Clients:
    """References of dev and test by speaker; what clients are."""
    settings = {"client": "speaker", "text": "ref"}
    dev_text = f"{r.exp}/dev/text.txt.gz"
    dev_said = _make_clients(r, number, "references of dev", f"{r.exp}/dev/clients.jsonl.gz",
                             out_text=dev_text, set=settings, **sources["dev"])
    test = _make_clients(r, number, "references of test", f"{r.exp}/test/clients.jsonl.gz",
                         set=settings, **sources["test"])
    people, unit = protected_people(r, o.adapt_role, o)
    return Clients(train, dev, dev_said, dev_text, test, "client", people, unit)


def protected_people(r: Recipe, role: str, o: Any) -> tuple[str, str]:
    """What the ledger calls the clients of a role, and their unit."""
    if o.client == "speaker":
        return f"{r.people}/{role}", "speaker"
    # A device may hold several speakers; with zipf a speaker is on several devices.
    name = "devices" if o.client == "zipf" else "devices_of_speakers"
    return f"{r.people}/{role}/{name}" + (f"_{o.devices}" if o.devices else ""), "device"


def describe(r: Recipe, clients: Clients, *, claims: bool) -> None:
    """Declare the texts, for the table of the corpus."""
    protected = "protected_" if claims else ""
    r.about("clients", "adaptation").add(f"{protected}clients", clients.train)
    r.about("test_clients", "test").add("clients", clients.test)
