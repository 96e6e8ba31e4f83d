"""Stages 9 to 16 of recipe personal: an LM that clients trained, personalized on each device."""

from dataclasses import dataclass
from typing import Any

from local.stages.composed import train_private
from local.stages.data import Data
from local.stages.first_pass import FirstPass
from local.stages.marginals import Marginals, Run
from local.stages.second_pass import nbest_lists, train_lm
from privasr_k2.recipe.declare import Declared, Recipe


def shared_lm(r: Recipe, o: Any, data: Data, first: FirstPass | None) -> str:
    """Stages 9 and 10: the LM of --lm, or one that is trained on public text, then by clients."""
    if o.lm is not None:
        return str(o.lm)
    pretrained = train_lm(r, 9, f"neural LM, {o.nnlm}, pre-trained", o.nnlm,
                          f"{r.exp}/lm/pretrained", in_manifests=data.manifests, in_lang=data.lang,
                          raw_text=o.nnlm_text, set={"epochs": o.lm_epochs})
    cuts, said = f"{data.manifests}/cuts_ROLE.jsonl.gz", {"client": "speaker", "text": "ref"}
    role = o.adapt_role
    heard: dict[str, str] = {"in_cuts": cuts.replace("ROLE", role)}
    if first is not None:
        nbest_lists(r, 10, f"N-best lists of {role}", first, role,
                    f"{r.exp}/nbest_{role}", num_paths=o.nbest, hyps=f"{r.exp}/decode_{role}")
        heard = {"in_nbest": f"{r.exp}/nbest_{role}"}
    clients = r.stage(10, f"clients of {role}", "make_clients", config="clients", **heard,
                      out_clients=f"{r.exp}/clients.jsonl.gz",
                      set=said if first is None else {"client": "speaker"})
    r.stage(10, "references of dev", "make_clients", config="clients",
            in_cuts=cuts.replace("ROLE", "dev"), out_clients=f"{r.exp}/dev/clients.jsonl.gz",
            out_text=f"{r.exp}/dev/text.txt.gz", set=said)
    federated = r.system("federated", label="trained on devices", method="fedlm",
                         protects=f"each speaker of {r.people}/{role}")
    people = f"{r.people}/{role}"
    lm, privacy = train_private(r, o, 10, pretrained, clients, people)
    federated.add("privacy", privacy)
    return lm


@dataclass
class Personalization(Marginals):
    """Ways in which devices personalize the shared LM; each has its strength from dev."""

    @property
    def most_rounds(self) -> int:
        return int(self.o.groups)

    @property
    def form(self) -> dict[str, Any]:
        return {**super().form, "name": self.name}

    def shared(self) -> Declared:
        """The shared LM, which all rows are compared with."""
        system = self.r.system("shared", label="shared by all", method="public", study="all")
        own = {"rounds": self.most_rounds, "method": "none"}
        self.runs.append(Run(system, own, None, config=("personal",)))
        return system

    def own_marginals(self) -> Declared:
        """Marginals of each user alone; no other user's count."""
        return self._declare("marginals", "own unigrams", ("fmp", "fmp_own"))

    def devices(self, method: str, label: str) -> Declared:
        """A method of verb personalize."""
        return self._declare(method, label, ("personal", f"personal_{method}"))

    def compare_people(self, number: int) -> None:
        """For whom each system is the best, by how much they said."""
        systems = [run.system for run in self.runs]
        kind, flag = ("run", "in_runs") if self.first is None else ("score_test", "in_scores")
        paths = [system.artifacts[kind] for system in systems]
        out = self.r.stage(number, "for whom each is the best", "compare", config="wins",
                           **{flag: paths}, out_wins=f"{self.r.exp}/wins.json")
        for system, path in zip(systems, paths):
            system.add("wins", f"{out}#{path}")

    def _declare(self, name: str, label: str, config: tuple[str, ...]) -> Declared:
        r, settings = self.r, {"rounds": self.most_rounds}
        system = r.system(name, label=label, method="personal", study="all",
                          public=self.runs[0].system, compare_with=[self.runs[0].system])
        choice = self._tune(f"strength of {name}, chosen on clients of dev", config,
                            system.path("weights", "strength.json"))
        self.runs.append(Run(system, settings, choice, config=config))
        return system
