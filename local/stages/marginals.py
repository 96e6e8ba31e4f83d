"""Stages 10 to 16 of recipe fmp: clients, releases of their marginals, adapted rescoring."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from local.stages.data import Data
from local.stages.first_pass import FirstPass, score
from local.stages.second_pass import grid_of, nbest_lists, score_words, select_best, train_lm
from privasr_k2.recipe.declare import Declared, Recipe

#: Kernel bandwidth of releases, and of the rows that read them [liu2020, table 4].
RELEASED_BANDWIDTH = 0.1

#: Values of fmp_background for u of a file alone, whatever texts the corpus's LMs are of.
ONE_TEXT = {"text": "auto", "train_repeat": 1}

#: What a client is, a key of :data:`privasr_k2.federated.fmp_spoken.CLIENT_UNITS`.
Client = Literal["speaker", "recording", "document", "part", "prefix", "meeting_speaker"]


def prepare_models(r: Recipe, o: Any, data: Data) -> tuple[str, str]:
    """Stage 9: the neural LM and u, of one text."""
    text = {} if o.own_text else {"text": "lm_text", "train_repeat": 1}
    own: dict[str, Any] = {"in_manifests": data.manifests, "raw_text": o.nnlm_text}
    lm = train_lm(r, 9, "neural LM, transformer", "transformer", f"{r.exp}/lm/transformer",
                  in_lang=data.lang, **own, set={"epochs": o.lm_epochs, **text})
    of_file = {"in_text": o.background, "set": ONE_TEXT}
    of_background = of_file if o.background else {**own, "set": text}
    return lm, r.stage(9, "unigrams u of background text", "prepare_fmp", config="fmp_background",
                       **of_background, in_lm=lm,
                       out_background=f"{r.exp}/background.safetensors")


@dataclass
class Run:
    """A system: how marginals adapt the LM.

    Attributes:
        lam: file with the chosen lambda; None: as ``settings`` say.
        release: global marginals that were released; None: their exact average.
        client: what a client is, where it is not that of ``--client``.
        config: sections of verb personalize, which scores.
    """

    system: Declared
    settings: dict[str, Any]
    lam: str | None
    release: str | None = None
    client: str = ""
    config: tuple[str, ...] = ("fmp",)


@dataclass
class Marginals:
    """Clients' words that adapt a neural LM; systems are declared first, then run.

    Attributes:
        o: options of recipe fmp, or personal.
        lm, background: the neural LM, and the unigrams u of background text.
        first: the first pass; None for text alone, whose perplexities are measured.
        runs: all systems; the first one is not adapted.
        name: of the neural LM in weights.
        times: the LM is read anew by each system, so that its processor time is that of a device.
    """

    r: Recipe
    o: Any
    data: Data
    lm: str
    background: str
    first: FirstPass | None
    runs: list[Run] = field(default_factory=list)
    name: str = "transformer"
    times: bool = False

    @property
    def most_rounds(self) -> int:
        """The last of --rounds, for all but table 2."""
        return int(self.o.rounds[-1])

    @property
    def form(self) -> dict[str, Any]:
        """Unnormalized scores in speech, as the paper; normalized ones in text."""
        if self.first is None:
            return {"normalized": True, "criterion": "perplexity"}
        return {"normalized": False, "criterion": "errors"}

    def prepare_clients(self, beside: Sequence[str] = ()) -> None:
        """Stages 10 and 11: N-best lists, whose utterances are whose, scores without adaptation.

        Args:
            beside: other kinds of client of test.
        """
        r, exp, roles, settings = self.r, self.r.exp, ("dev", "test"), {"client": self.o.client}
        if self.first is None:
            for role in roles:
                r.stage(11, f"clients of {role}, text", "prepare_fmp", config="fmp_timeline",
                        in_text=f"{self.data.manifests}/cuts_{role}.jsonl.gz",
                        out_nbest=f"{exp}/nbest_{role}/1.jsonl",
                        out_timeline=f"{exp}/timeline_{role}.jsonl", set=settings)
            self._clients_beside(beside)
            return
        for role in roles:
            nbest_lists(r, 10, f"N-best lists of {role}", self.first, role, f"{exp}/nbest_{role}",
                        num_paths=self.o.nbest)
        for role in roles:
            r.stage(11, f"clients of {role}", "prepare_fmp", config="fmp_timeline",
                    in_manifests=self.data.manifests, in_nbest=f"{exp}/nbest_{role}",
                    out_timeline=f"{exp}/timeline_{role}.jsonl", set=settings)
            for name, lm in (("ngram", self.first.lm), (self.name, self.lm)):
                score_words(r, 11, f"words of {role} by {name}", f"{exp}/nbest_{role}", lm, name,
                            self._scores(name, role))
        self._clients_beside(beside)

    def _clients_beside(self, kinds: Sequence[str]) -> None:
        """Stage 11: whose the same utterances of test are where a client is something else."""
        for client in kinds:
            self.r.stage(11, f"clients of test, {client}", "prepare_fmp", config="fmp_timeline",
                         in_manifests=self.data.manifests, in_nbest=f"{self.r.exp}/nbest_test",
                         out_timeline=self._timeline("test", client), set={"client": client})

    def unadapted(self, name: str, label: str, study: str, client: str = "") -> Declared:
        """Declare a system of lambda 0; the first one is the baseline of all rows."""
        system = self.r.system(name, label=label, method="public", study=study)
        self.runs.append(Run(system, {"rounds": self.most_rounds, "lam": 0}, None, client=client))
        return system

    def row(self, name: str, label: str, study: str, choice: str, settings: dict[str, Any], *,
            release: str | None = None, client: str = "", **facts: Any) -> Declared:
        """Declare a system of lambda ``choice``, compared with the baseline."""
        baseline = self.runs[0].system
        facts = {"method": "fmp", "compare_with": [baseline], "public": baseline, **facts}
        declared = self.r.system(name, label=label, study=study, **facts)
        if release:
            declared.path("privacy", "privacy.json")
        self.runs.append(
            Run(declared, {"rounds": self.most_rounds, **settings}, choice, release, client))
        return declared

    def releases(self, lam: str) -> None:
        """Declare the rows of table 4 with their releases.

        The control has u for the global marginal, which any noise leaves: what a release gains is
        measured beyond it. Nothing leaves a device for it.
        """
        o, baseline = self.o, self.runs[0].system
        narrow = {"kernel_bandwidth": RELEASED_BANDWIDTH}
        control = self.row("eps_background", "global = background", "release", lam,
                           {"alpha": 0.0, **narrow}, method="public", alpha=0.0)
        exact = self.row("eps_none", "not released", "release", lam, narrow, public=control,
                         compare_with=[baseline, control])
        common = {"public": control, "not_private": exact, "compare_with": [baseline, control]}
        for epsilon in o.epsilons:
            for unit in o.privacy_unit:
                name = f"eps_{unit}_{epsilon:g}"
                file = self.release(name, "fmp_release", unit=unit, epsilon=epsilon)
                self.row(name, f"released, epsilon {epsilon:g}, each {unit}", "release", lam,
                         narrow, release=file, headline=unit == o.privacy_unit[-1],
                         protects=f"each {unit} of {self.r.people}/test, in the global marginal",
                         epsilon=epsilon, unit=unit, **common)
            if o.as_published:
                name = f"eps_published_{epsilon:g}"
                file = self.release(name, "fmp_published", epsilon=epsilon)
                self.row(name, f"eq. 8-9 as published, called epsilon {epsilon:g}", "release", lam,
                         narrow, release=file, epsilon=epsilon, unit="utterance", published=True,
                         **common)

    def tune_lambda(self) -> str:
        """Stage 12: weights of the LMs, and lambda, chosen on the clients of dev."""
        r = self.r
        if self.first is not None:
            even = {"interpolation": "log_linear", "steps": 0} if self.o.mix == "preset" else {}
            about = r.about("rescoring", "LMs without adaptation")
            weights = about.path("weights", "rescoring.json")
            r.stage(12, "weights of the LMs without adaptation, chosen on dev", "tune_weights",
                    config=grid_of(self.first), in_nbest=f"{r.exp}/nbest_dev",
                    in_scores=[self._scores("ngram", "dev"), self._scores(self.name, "dev")],
                    in_manifests=self.data.manifests, out_weights=weights, set=even)
        return self._tune("lambda, chosen on clients of dev", ("fmp",),
                          r.about("lambda", "all systems").path("weights", "lambda.json"))

    def tune_grid(self) -> str:
        """Stage 12: alpha, beta and the bandwidth with lambda; in speech, as text has one list."""
        return self._tune("alpha, beta, bandwidth and lambda, chosen on clients of dev",
                          ("fmp", "fmp_tune"), f"{self.r.exp}/grid.json")

    def _tune(self, title: str, config: tuple[str, ...], out: str) -> str:
        """A choice on the clients of dev, by errors in speech, else by perplexity."""
        others = {}
        if self.first is not None:
            others = {"in_scores": self._scores("ngram", "dev"),
                      "in_weights": f"{self.r.exp}/rescoring.json",
                      "in_manifests": self.data.manifests}
        return self.r.stage(12, title, "personalize", device=True, config=config,
                            **self._inputs("dev"), **others, out_choice=out,
                            set={"rounds": self.most_rounds, **self.form})

    def release(self, name: str, config: str, **settings: Any) -> str:
        """Stage 13: the global marginals of the test clients, released once."""
        u = self.background if config == "fmp_published" else None
        folder = f"{self.r.exp}/{name}"
        return self.r.stage(
            13, f"release {name}", "release_fmp", config=config, spends=True,
            in_private_nbest=f"{self.r.exp}/nbest_test",
            in_private_timeline=f"{self.r.exp}/timeline_test.jsonl", in_public_lm=self.lm,
            in_public_background=u, out_release=f"{folder}/marginals.safetensors",
            out_privacy=f"{folder}/privacy.json",
            set={"data": f"{self.r.people}/test", "rounds": self.most_rounds,
                 "kernel_bandwidth": RELEASED_BANDWIDTH, **settings})

    def run(self) -> None:
        """Stages 14 and 15: each system scores the N-best lists, chooses, and is scored."""
        r, scores = self.r, {}
        for run in self.runs:
            name, folder = run.system.name, run.system.folder
            scores[name] = r.stage(
                14, name, "personalize", device=True, config=run.config,
                **self._inputs("test", run.client), in_choice=run.lam, in_release=run.release,
                out_scores=f"{folder}/lm_scores/test.safetensors",
                out_run=run.system.path("run", "run_test.json"), set={**self.form, **run.settings})
        for run in self.runs if self.first is not None else ():
            assert self.first is not None
            name, folder = run.system.name, run.system.folder
            hyps = select_best(r, 15, f"{name}: test", f"{r.exp}/nbest_test", self.data.manifests,
                               f"{folder}/decode_test",
                               scores=[self._scores("ngram", "test"), scores[name]],
                               weights=f"{r.exp}/rescoring.json")
            score(r, 15, f"{name}: score", hyps=hyps, out=run.system.path("score_test"),
                  first=self.first)

    def audit(self, unit: str) -> None:
        """Stage 16: the largest epsilon that an attack on the release can show."""
        about = self.r.about("audit", f"release for each {unit}")
        out = about.path("protected_audit", "audit.json")
        self.r.stage(16, "audit of the release", "audit", config=("fmp_release", "fmp_audit"),
                     in_nbest=f"{self.r.exp}/nbest_test",
                     in_timeline=f"{self.r.exp}/timeline_test.jsonl", in_lm=self.lm, out_audit=out,
                     set={"data": f"{self.r.people}/test", "rounds": self.most_rounds,
                          "unit": unit})

    def _scores(self, name: str, role: str) -> str:
        return f"{self.r.exp}/lm_scores/{name}_{role}.safetensors"

    def _timeline(self, role: str, client: str = "") -> str:
        return f"{self.r.exp}/timeline_{role}{client and '_'}{client}.jsonl"

    def _inputs(self, role: str, client: str = "") -> dict[str, str]:
        """What personalize reads."""
        plain = None
        if self.first is not None and not self.times:
            plain = self._scores(self.name, role)
        return {"in_nbest": f"{self.r.exp}/nbest_{role}",
                "in_timeline": self._timeline(role, client), "in_lm": self.lm,
                "in_background": self.background, **({"in_plain": plain} if plain else {})}
