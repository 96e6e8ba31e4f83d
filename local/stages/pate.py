"""Stages of recipe pate: shards, teachers, votes, releases and students."""

from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from local.stages.data import part_values, upon
from local.stages.e2e import E2e, am_config, public_init, shown
from local.stages.students import nbest, self_trained, train_student
from local.stages.word_graph import check_word_votes
from privasr_k2.privacy.pate.mechanisms import all_mechanisms, mechanism
from privasr_k2.recipe.declare import Declared, Recipe


@dataclass
class Release:
    """One set of labels and its student."""

    system: Declared
    model: str
    teachers: int
    mechanism: str
    settings: dict[str, Any]
    published: str

    @property
    def epsilon(self) -> float:
        """The epsilon asked for."""
        return float(self.settings["epsilon"])

    @property
    def claims(self) -> bool:
        """Whether noise is added, and a guarantee claimed."""
        return self.settings["epsilon"] < inf

    @property
    def labels(self) -> str:
        """The folder of its labels."""
        return f"{self.system.folder}/labels"


def check(r: Recipe, o: Any) -> None:
    """Refuse options that contradict each other, before anything is declared."""
    check_word_votes(r, o)
    if "whisper" in o.models:
        r.refuse("--models", "models with public speech and a pool", "whisper",
                 "take recipe dpsgd for Whisper's decoder")
    if o.vote == "frame" and o.models != ("ctc",):
        r.refuse("--vote frame", "--models ctc: only CTC has a token a frame", " ".join(o.models),
                 "vote for utterances or tokens")
    if o.heads and o.init == "scratch":
        r.refuse("--init scratch", "whole teachers", "--heads true", "add --heads false")
    tokens = all_mechanisms(tokens=True)
    if o.vote == "token" and set(o.mechanisms) - set(tokens):
        r.refuse("--vote token", f"mechanisms among {' '.join(tokens)}", " ".join(o.mechanisms),
                 "remove the others")
    if o.vote == "token" and o.published_scale:
        r.refuse("--published-scale", "nothing with --vote token: a batch has its own answers",
                 " ".join(o.published_scale), "remove it, or vote for utterances")
    if o.vote == "token" and o.top_k and o.public_threshold is None:
        r.refuse("--top-k", "--public-threshold, which names the public model's part", "none",
                 "add --public-threshold X")
    if both := set(o.epsilons) & set(o.sweep_epsilons):
        r.refuse("--sweep-epsilons", "epsilons that --epsilons lacks", shown(min(both)),
                 "remove it")


def plan(r: Recipe, o: Any, e: E2e) -> None:
    """Stage 3: deal the private units to shards; tell how many queries each epsilon allows."""
    for number in o.teachers:
        r.stage(3, f"shards of {number} teachers", "make_shards", config="shards",
                in_private_feats=e.private,
                in_public_dev=e.public,
                in_public_roster=f"{e.sides}/roster_{o.privacy_unit}.txt",
                out_dir=shards(r, o, number), set={"teachers": number, "unit": o.privacy_unit})
    finite = [epsilon for epsilon in (*o.epsilons, *o.sweep_epsilons) if epsilon < inf]
    for name in o.mechanisms:
        if finite and mechanism(name).is_planned:
            r.stage(3, f"queries per epsilon, {name}", "privacy_plan", config="vote_plan",
                    in_shards=[f"{shards(r, o, number)}/shards.json" for number in o.teachers],
                    out_plan=f"{r.exp}/plan_{name}.json",
                    set={"mechanism": name, "teachers": o.teachers, "epsilon": finite,
                         "delta": o.delta})


def shards(r: Recipe, o: Any, number: int) -> str:
    """The folder of the shards of so many teachers."""
    return f"exp/shards_{upon(r)}{o.privacy_unit}/{number}"


def teachers_folder(r: Recipe, model: str, number: int) -> str:
    """The folder of so many teachers: a model each, or one of heads."""
    return f"{r.exp}/{model}/teachers_{number}"


def train_teachers(r: Recipe, o: Any, e: E2e, model: str, number: int) -> None:
    """Stage 7: one teacher for each shard."""
    out = teachers_folder(r, model, number)
    if o.heads:
        r.stage(7, f"{number} teachers as heads, {model}", "train_heads", train=True,
                config="heads", in_shards=shards(r, o, number), in_model=e.public_am(model),
                in_lang=e.lang, out_dir=out)
    else:
        r.stage(7, f"{number} teachers, {model}", "train_am", array=number, train=True,
                config=am_config(r, o, model), in_feats=f"{shards(r, o, number)}/shard_JOB",
                in_shards=f"{shards(r, o, number)}/shards.json", in_lang=e.lang,
                in_init=public_init(o, e, model), out_dir=f"{out}/JOB",
                set={"epochs": o.private_epochs, **part_values(r)})
    if o.score_ensemble:
        system = r.system(f"{model}/ensemble_{number}", label=f"ensemble of {number} teachers",
                          method="ensemble", compare_with=[e.public_model[model]], model=model,
                          teachers=number)
        e.decoded.append((system, model, out, {"in_shards": shards(r, o, number)}))
    for k in range(1, min(number, o.score_teachers) + 1):
        system = r.system(f"{model}/teacher_{number}_{k}", label=f"teacher {k} of {number}",
                          method="teacher", compare_with=[e.public_model[model]], model=model,
                          teachers=number, teacher=k)
        am, settings = (out, {"head": str(k)}) if o.heads else (f"{out}/{k}", {})
        e.decoded.append((system, model, am, settings))


@dataclass
class Releases:
    """The releases of labels: declared first, then labeled, then learned by students."""

    r: Recipe
    o: Any
    e: E2e
    all: list[Release] = field(default_factory=list)
    self_trained: dict[str, Declared] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for model in self.o.models if self.o.self_trained else ():
            self.self_trained[model] = self_trained(self.r, self.e, model)

    def cast_votes(self) -> None:
        """Stage 9: what every teacher votes, or its posteriors; and how far teachers agree."""
        r, o, e = self.r, self.o, self.e
        graph = e.graph and o.vote == "utterance"
        kinds = dict.fromkeys(["votes", *(mechanism(name).aggregates for name in o.mechanisms)])
        for model in o.models:
            for number in o.teachers:
                for kind in kinds:
                    r.stage(9, f"{kind} of {number} teachers, {model}", "cast_votes", jobs=r.run.nj,
                            device=True, config="votes", in_feats=e.pool, in_lang=e.lang,
                            in_private_teachers=teachers_folder(r, model, number),
                            in_shards=shards(r, o, number),
                            in_public_nbest=nbest(e, model) if o.vote == "utterance" else None,
                            in_public_weights=e.weights(model) if graph else None,
                            out_votes=f"{r.exp}/{model}/{kind}_{number}/JOB.safetensors",
                            set={"vote": o.vote, "of": kind})
                about = r.about(f"{model}/agreement_{number}", f"{number} teachers, {model}",
                                model=model, teachers=number)
                r.stage(9, f"agreement of {number} teachers, {model}", "vote_costs",
                        in_private_votes=f"{r.exp}/{model}/votes_{number}",
                        out_agreement=about.add("agreement",
                                             f"{r.exp}/{model}/agreement_{number}.json"))

    def declare(self, model: str, number: int, by: str, epsilon: float, label: str = "",
                published: str = "") -> None:
        """A release of labels by a mechanism at an epsilon, and the system of its student."""
        r, o, e = self.r, self.o, self.e
        name = f"clean_{number}" if epsilon == inf else f"{by}_{number}_{shown(epsilon)}"
        claims = epsilon < inf
        settings: dict[str, Any] = {"mechanism": by, "epsilon": epsilon}
        if claims:
            settings |= {"data": f"{r.people}/train", "delta": o.delta,
                         "max_answers": o.max_answers}
        if published:
            name += f"_{published}"
            settings["published_scale"] = published
        elif claims:
            settings |= self._limits(number, by)
        shown_epsilon = f"epsilon {shown(epsilon)}"
        if published:
            shown_epsilon = f"called epsilon {shown(epsilon)} by eq. 4 ({published})"
        system = r.system(
            f"{model}/{name}",
            label=label or f"{mechanism(by).label}, {number} teachers, {shown_epsilon}",
            method="pate" if claims else "clean",
            protects=e.protects if claims and not published else "",
            headline=claims and not published, public=e.public_model[model],
            not_private=e.not_private[model],
            model=model, teachers=number, mechanism=by, epsilon=epsilon, vote=o.vote,
            published_scale=published or None)
        self.all.append(Release(system, model, number, by, settings, published))

    def plan(self) -> None:
        """Stage 6: how many tokens each release will answer, and how often a majority wins."""
        r, o, e = self.r, self.o, self.e
        for release in self.all:
            if release.claims:
                r.stage(6, f"plan of answers, {release.system.name}", "vote_tokens",
                        config=("pate", "vote_tokens"), device=True, num_jobs=True,
                        in_shards=shards(r, o, release.teachers), in_public_feats=e.pool,
                        in_public_model=e.public_am(release.model),
                        out_plan=f"{release.system.folder}/plan.json",
                        set=self._token_settings(release))

    def _token_settings(self, release: Release) -> dict[str, Any]:
        return {**release.settings, "public_threshold": self.o.public_threshold,
                "top_k": self.o.top_k}

    def label(self) -> None:
        """Stage 10: labels by noisy votes, each a release; and an audit of each claim."""
        r, o, e = self.r, self.o, self.e
        for release in self.all:
            release.system.compare_with(*self._compared(release))
            privacy = release.system.path("privacy", "privacy.json") if release.claims else None
            title = f"labels, {release.system.name}"
            out = release.system.add("labels", release.labels)
            if o.vote == "token":
                r.stage(10, title, "vote_tokens", config=("pate", "vote_tokens"), device=True,
                        num_jobs=True, spends=release.claims,
                        in_private_teachers=teachers_folder(r, release.model, release.teachers),
                        in_private_shards=shards(r, o, release.teachers), in_public_feats=e.pool,
                        in_public_model=e.public_am(release.model), out_dir=out,
                        out_privacy=privacy,
                        set=self._token_settings(release))
            else:
                kind = mechanism(release.mechanism).aggregates
                r.stage(10, title, "aggregate_votes", config="pate", spends=release.claims,
                        in_lang=e.lang,
                        in_private_votes=f"{r.exp}/{release.model}/{kind}_{release.teachers}",
                        in_public_nbest=nbest(e, release.model) if o.vote == "utterance" else None,
                        out_dir=out, out_privacy=privacy, set=release.settings)
            if o.audit and release.claims:
                r.stage(10, f"audit of labels, {release.system.name}", "audit", config="audit_pate",
                        in_labels=out, out_audit=release.system.path("audit", "audit.json"))

    def train_students(self) -> None:
        """Stage 11: students of the labels, and the control that has none."""
        for model, system in self.self_trained.items():
            self._student(model, system, ("self_training",), None)
        for release in self.all:
            self._student(release.model, release.system, self.o.unlabeled_data,
                          f"{release.labels}/labels.jsonl")

    def _student(self, model: str, system: Declared, unlabeled: tuple[str, ...],
                 labels: str | None) -> None:
        o = self.o
        learns_public = o.labeled_data
        if learns_public is None:
            learns_public = o.init == "scratch" or (o.vote != "utterance"
                                                     and o.public_threshold is None)
        train_student(self.r, o, self.e, system, model, number=11, unlabeled=unlabeled,
                      labels=labels, learns_public=learns_public, epochs=o.student_epochs)

    def _limits(self, number: int, by: str) -> dict[str, Any]:
        """How much noise and how many answers, where no option says so."""
        o = self.o
        limits: dict[str, Any] = {"noise": o.noise}
        if (o.vote == "utterance"
            or o.public_threshold is not None) and o.noise is None and o.max_answers is None:
            most = mechanism(by).default_noise(number, tokens=o.vote == "token")
            limits = {"min_answers": o.min_answers, "max_sigma": most}
        if mechanism(by).needs_threshold:
            limits["threshold"] = ceil(number * o.threshold / 100)
        return limits

    def _compared(self, release: Release) -> list[Declared | None]:
        """The public model and, where noise is added, the controls and the other mechanism."""
        public = self.e.public_model[release.model]
        if not release.claims:
            return [public]
        same = [other for other in self.all
                if (other.model, other.teachers) == (release.model, release.teachers)]
        twins = [other.system for other in same if release.mechanism == "gnmax"
                 and other.mechanism in ("lnmax", "gumbel_max")
                 and (other.epsilon, other.published) == (release.epsilon, release.published)]
        clean = [other.system for other in same if not other.claims]
        dpsgd = None if release.published else self.e.dpsgd.get((release.model, release.epsilon))
        rnnt = [other.system for other in self.all
                if (release.model, release.mechanism) == ("rnnt", "gnmax")
                and other.model != "rnnt"
                and (other.teachers, other.settings) == (release.teachers, release.settings)]
        return [public, self.self_trained.get(release.model), dpsgd, *clean, *twins, *rnnt]
