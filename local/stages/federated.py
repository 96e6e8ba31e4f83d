"""Stages 12 to 19 of recipe fedlm: an LM adapted on a server and by clients, attacks, results."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from annotated_types import Interval, MinLen

from local.stages.clients import Clients, client_share, first_hyps
from local.stages.data import Data
from local.stages.first_pass import FirstPass, score
from local.stages.second_pass import grid_of, rescore, score_roles
from privasr_k2.recipe.declare import Declared, Recipe

ConfidenceUse = Literal["all", "hard", "utterance", "token"]
Sampling = Literal["poisson", "ordered"]
Part = Literal["all", "lora", "bias", "output", "last_block"]
Init = Literal["pretrained", "dev"]
Samplings = Annotated[tuple[Sampling, ...], MinLen(1)]
Parts = Annotated[tuple[Part, ...], MinLen(1)]
Inits = Annotated[tuple[Init, ...], MinLen(1)]
Fraction = Annotated[float, Interval(gt=0, le=1)]
#: Of the whole model's update under a claim [liu2021, section 3.4]; that of a part is in conf.
CLIP = 0.5
USE_LABELS = {"all": "all utts", "hard": "hard thres. utts", "utterance": "utt weighted",
              "token": "token weighted"}


def confidence_uses(r: Recipe, o: Any, *, some: bool) -> tuple[tuple[str, ...], ...]:
    """The uses of confidences without a claim, from random weights, and with a claim.

    Args:
        o: options of recipe fedlm.
        some: there are confidences; what was said has none.
    """
    every = tuple(USE_LABELS) if some else ("all",)
    few = ("all", "token") if some else ("all",)
    uses = tuple(dict.fromkeys(("all", *(o.confidence_use or every))))
    uses = uses if o.without_claim else ()
    private_uses = (o.private_confidence_use or few) if o.noises else ()
    if beyond := [use for use in (*uses, *private_uses) if use not in every]:
        r.refuse("--confidence-use and --private-confidence-use",
                 "all: of what was said, all words are sure", beyond[0], "remove it, or decode")
    return uses, few, private_uses


@dataclass(frozen=True)
class Claim:
    """A training with a claim.

    Attributes:
        noise: multiplier.
        use: of confidences.
        part: of the model, which clients train.
        init: the model that training begins with: the pre-trained one, or that of public dev.
    """

    noise: float
    use: ConfidenceUse
    sampling: Sampling
    part: Part
    init: Init

    @property
    def name(self) -> str:
        """It in the name of a system, after the use of confidences."""
        begun = "" if self.init == "pretrained" else f"from_{self.init}_"
        trained = "" if self.part == "all" else f"{self.part}_"
        ordered = "_ordered" if self.sampling == "ordered" else ""
        return f"{begun}{trained}noise_{self.noise:g}{ordered}"

    @property
    def label(self) -> str:
        """It in the label of a system, after the use of confidences."""
        return (f", noise {self.noise:g}" + (", ordered" if self.sampling == "ordered" else "")
                + ("" if self.part == "all" else f", {self.part}")
                + ("" if self.init == "pretrained" else f", from half of {self.init}"))

    @property
    def layers(self) -> tuple[str, ...]:
        """The sections of ``conf/fedlm.yaml`` for its part."""
        return ("fedlm",) if self.part == "all" else ("fedlm", f"fedlm_{self.part}")


@dataclass
class Adaptation:
    """The adapted models: each method declares a system and the stage that trains it.

    Attributes:
        o: options of recipe fedlm.
        clients: what models are adapted to, and what is scored.
        init: the pre-trained LM.
        uses, private_uses: of confidences, without and with a claim.
        first: the first pass; None without speech.
        systems: by name, in the order in which they are trained; the pre-trained LM is the first.
    """

    r: Recipe
    o: Any
    clients: Clients
    init: str
    uses: tuple[str, ...]
    private_uses: tuple[str, ...]
    first: FirstPass | None
    systems: dict[str, Declared] = field(default_factory=dict)
    _rates: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        no_nnlm = None
        if self.first is not None:
            no_nnlm = self.r.system("no_nnlm", label="No NNLM", method="public",
                                    adaptation="first_pass")
            self.r.system("ngram", label="n-gram LM alone, rescored", method="public",
                          compare_with=[no_nnlm], adaptation="ngram")
        self.systems["pretrained"] = self.r.system(
            "pretrained", label="Server-pretrained NNLM (no adapt)", method="public",
            compare_with=[no_nnlm], adaptation="none")

    def train_on_dev(self, number: int) -> None:
        """The control without clients: half of dev's text trains, the other half selects."""
        system = self.systems["dev"] = self.r.system(
            "dev", label="Server-finetuned NNLM (half of public dev)", method="public",
            compare_with=[self.systems["pretrained"]], adaptation="dev", init="pretrained")
        self.r.stage(number, "on the server, half of dev", "finetune_lm", train=True,
                     config="finetune_lm", in_clients=self.clients.dev_said, in_init=self.init,
                     out_dir=self.model(system.name), out_held_out=self._held_out(),
                     set={"epochs": self.o.epochs, "select_epoch": "held_out",
                          "by": self.clients.group})

    def train_on_server(self, number: int, use: str, *, scratch: bool = False) -> None:
        """The control: the text of all clients in one place."""
        others = ["server_all"] if scratch else ["pretrained", "server_all"]
        system = self._declare("server", use, others, scratch=scratch)
        self.r.stage(number, f"on the server, {system.name}", "finetune_lm", train=True,
                     config="finetune_lm", in_clients=self.clients.train, in_init=self.init,
                     in_dev_text=self.clients.dev_text, out_dir=self.model(system.name),
                     set={**self._confidences(use), "epochs": self.o.epochs, **_init(scratch)})

    def train_federated(self, number: int, use: str, *, scratch: bool = False) -> None:
        """Training by clients without a claim: a client counts by its words."""
        others = ["pretrained", "server_all" if use == "all" else "fl_all"]
        if scratch:
            others = ["server_scratch_all", f"fl_{use}"]
        system = self._declare("fl", use, others, scratch=scratch)
        rounds = {"rounds": self.o.rounds,
                  "client_fraction": self.o.client_fraction or self._share(None)}
        if self.r.data.preset == "paper" and rounds["client_fraction"]:
            rounds["sampling"] = "poisson"  # its cohorts have one size, which no share changes
        rates = self._tune(number, "fl_scratch" if scratch else "fl",
                           {"confidences.use": "all", **rounds, **_init(scratch)})
        self._train(number, f"federated, {system.name}", system, rates, None,
                    {**self._confidences(use), **rounds, **self._lrs(), **_init(scratch)})

    def train_private(self, number: int, claim: Claim) -> None:
        """Training by clients with a claim: a release that protects all text of a client."""
        not_private = f"fl_{claim.use}"
        system = self._declare(
            "fl", claim.use, ["pretrained", "dev", not_private], claim=claim,
            not_private=self.systems.get(not_private),
            protects=f"each {self.clients.unit} of {self.clients.people}",
            headline=claim == self._first_claim(claim.noise))
        privacy = system.add("privacy", f"{self.r.exp}/{system.name}_privacy.json")
        title = (f"federated and private, {claim.use}, noise {claim.noise:g}, {claim.sampling}, "
                 f"{claim.part}" + ("" if claim.init == "pretrained" else f", from {claim.init}"))
        self._train(number, title, system, self._tune_private(number, claim), privacy,
                    self._claimed(claim), claim.layers, self._begun(claim.init))

    def attack(self, number: int, noise: float) -> None:
        """Canaries, membership, and a lower bound on epsilon, with and without protection."""
        claim = self._first_claim(noise)
        system = self.systems[f"fl_{claim.use}_{claim.name}"]
        self.r.stage(number, "attacks, with and without protection", "audit", train=True,
                     config=(*claim.layers, "fedlm_audit"), in_clients=self.clients.train,
                     in_init=self._begun(claim.init)["in_public_init"],
                     in_rates=self._tune_private(number, claim),
                     out_audit=system.add("audit", f"{self.r.exp}/{system.name}_audit.json"),
                     set=self._claimed(claim))

    def model(self, name: str) -> str:
        """The folder of a system's LM."""
        return f"{self.r.exp}/lm/{name}"

    def _held_out(self) -> str | None:
        """The half of dev that chose the epoch of the other's model, for those begun with it."""
        return f"{self.r.exp}/dev/held_out.txt.gz" if "dev" in self.o.private_init else None

    def _begun(self, init: Init) -> dict[str, str | None]:
        """The model that training begins with, and the text of others that its round is kept by."""
        if init == "dev":
            return {"in_public_init": self.model("dev"), "in_public_dev_text": self._held_out()}
        return {"in_public_init": self.init, "in_public_dev_text": self.clients.dev_text}

    def _declare(self, trained_on: str, use: str, others: list[str], *, scratch: bool = False,
                 claim: Claim | None = None, **facts: Any) -> Declared:
        name = f"{trained_on}{'_scratch' if scratch else ''}_{use}"
        label = USE_LABELS[use]
        if claim is not None:
            name += f"_{claim.name}"
            label += claim.label
            facts |= {"noise": claim.noise, "client_sampling": claim.sampling,
                      "trained_part": claim.part}
        where, method = ("Server", "server") if trained_on == "server" else ("FL", "fedlm")
        adaptation = "server" if trained_on == "server" else "federated"
        init, how = ("scratch", "trained-from-scratch") if scratch else ("pretrained", "finetuned")
        init = init if claim is None else claim.init
        self.systems[name] = self.r.system(
            name, label=f"{where}-{how} NNLM ({label})", method=method,
            compare_with=[self.systems.get(other) for other in others if other != name],
            public=self.systems["pretrained"], adaptation=adaptation, init=init, confidences=use,
            tuned=self.o.tune, **facts)
        return self.systems[name]

    def _train(self, number: int, title: str, system: Declared, rates: str | None,
               privacy: str | None, settings: Mapping[str, Any],
               layers: tuple[str, ...] = ("fedlm",),
               begun: Mapping[str, str | None] | None = None) -> None:
        """Rounds of training by clients: privasr_k2.federated.fedlm."""
        self.r.stage(number, title, "train_fedlm", train=True, config=layers,
                     in_private_clients=self.clients.train, in_public_rates=rates,
                     in_public_roster=self.o.roster if privacy is not None else None,
                     **(begun or self._begun("pretrained")),
                     out_dir=system.add("rounds", self.model(system.name)), out_privacy=privacy,
                     set=settings, spends=privacy is not None)

    def _claimed(self, claim: Claim) -> dict[str, Any]:
        """Uniform weights, clipped updates, noise, and cohorts as the accountant assumes them."""
        o = self.o
        if claim.sampling == "poisson":
            default = None if self.r.data.preset == "paper" else 0.05  # paper: 100 of 10,000
            cohort = {"sampling": claim.sampling,
                      "client_fraction": o.private_client_fraction or self._share(default)}
        else:
            cohort = {"sampling": claim.sampling, "client_fraction": "null",
                      "cohort": o.private_cohort,
                      "privacy.strategy": o.strategy,
                      "privacy.bands": o.bands if o.strategy == "square_root" else None}
        clip = o.clip or (CLIP if claim.part == "all" else None)
        return {"data": self.clients.people, **self._confidences(claim.use),
                **cohort, "rounds": o.private_rounds or o.rounds, **self._lrs(private=True),
                "weights.by": "uniform", "privacy.clip": clip,
                "privacy.delta": o.delta, "privacy.noise": claim.noise}

    def _first_claim(self, noise: float) -> Claim:
        """The claim of the headline, which is attacked."""
        o = self.o
        return Claim(noise, self.private_uses[0], o.private_sampling[0], o.private_trained[0],
                     o.private_init[0])

    def _share(self, of_devices: float | None) -> float | None:
        of_calls = self.clients.group == "call"
        return of_devices if of_calls else client_share(self.r, self.o, of_devices)

    def _confidences(self, use: str) -> dict[str, Any]:
        is_used = "hard" in (*self.uses, *self.private_uses)
        return {"confidences.use": use,
                "confidences.threshold": self.o.threshold if is_used else None}

    def _lrs(self, *, private: bool = False) -> dict[str, Any]:
        """Learning rates that options give; with --tune true they are chosen on dev."""
        if self.o.tune:
            return {}
        server_lr = self.o.private_lr if private else None
        return {"client.lr": self.o.client_lr, "server.lr": server_lr or self.o.server_lr}

    def _tune(self, number: int, name: str, settings: Mapping[str, Any],
              layers: tuple[str, ...] = ("fedlm",)) -> str | None:
        """With --tune true the learning rates of such a training, chosen on clients of dev."""
        if self.o.tune and name not in self._rates:
            self._rates[name] = self.r.stage(
                number, f"learning rates on clients of dev, {name}", "tune_fedlm", train=True,
                config=(*layers, "fedlm_tune"), in_clients=self.clients.dev,
                in_scored=self.clients.dev_said, in_init=self.init,
                out_rates=f"{self.r.exp}/rates/{name}.json",
                set={"by": self.clients.group, **settings})
        return self._rates.get(name)

    def _tune_private(self, number: int, claim: Claim) -> str | None:
        """Chosen with the pre-trained model, whatever training begins with."""
        every = replace(claim, use="all", init="pretrained")
        return self._tune(number, f"private_{every.name}", self._claimed(every), every.layers)


def measure_perplexities(a: Adaptation, number: int, data: Data) -> None:
    """Perplexities of test by client or by call."""
    models = {name: a.model(name) for name in a.systems}
    out = a.r.stage(number, "perplexities of test", "perplexity", device=True,
                    **{f"in_{a.clients.group}s": a.clients.test}, in_lang=data.lang,
                    in_lm=models.values(), out_perplexity=f"{a.r.exp}/perplexity_test.json")
    for name, model in models.items():
        a.systems[name].add("perplexity", f"{out}#{model}")


def rescore_and_score(a: Adaptation, number: int, first: FirstPass) -> None:
    """Each LM beside the n-gram LM: test rescored, then the errors.

    LM weight and insertion penalty are chosen on dev for the pre-trained LM, and kept for all: only
    the interpolation of the two LMs is chosen for each, as in the paper.
    """
    r, no_nnlm, nbest = a.r, a.r.systems["no_nnlm"], f"{a.r.exp}/five/nbest_ROLE"
    rescored = {**a.systems, "ngram": a.r.systems["ngram"]}

    def scores(name: str, lm: str) -> str:
        return score_roles(r, number, f"by {name}", nbest, lm, name,
                           f"{r.exp}/five/lm_scores/{name}_ROLE.safetensors")

    ngram, frozen = scores("ngram", first.lm), None
    for name, system in rescored.items():
        of_lm = [] if name == "ngram" else [scores(name, a.model(name))]
        weights = rescore(r, number, system, nbest, [ngram, *of_lm], first.data.manifests,
                          grid=grid_of(first), frozen=frozen)
        frozen = frozen or weights
    score(r, number + 1, "score the first pass", first=first, weights=first.weights,
          hyps=first_hyps(first, r.exp), out=no_nnlm.path("score_test"))
    score(r, number + 1, f"score the first pass, {a.o.adapt_role}", first=first,
          weights=first.weights, hyps=f"{no_nnlm.folder}/decode_adapt", role=a.o.adapt_role,
          out=no_nnlm.path(f"{'protected_' if a.o.noises else ''}score_adapt", "score_adapt"))
    if a.clients.rescored:
        pretrained = a.systems["pretrained"]
        score(r, number + 1, f"score the text of clients, {a.o.adapt_role}", first=first,
              hyps=a.clients.rescored, role=a.o.adapt_role,
              out=pretrained.path(f"{'protected_' if a.o.noises else ''}score_adapt",
                                  "score_adapt"))
    for name, system in rescored.items():
        score(r, number + 1, f"score {name}", first=first, hyps=f"{system.folder}/decode_test",
              out=system.path("score_test"))


def _init(scratch: bool) -> dict[str, str]:
    return {"init": "scratch"} if scratch else {}
