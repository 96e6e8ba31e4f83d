"""Words that many private speakers say, released by noisy votes, for a public recognizer."""

from dataclasses import dataclass
from pathlib import Path

from local.stages.data import PhoneOptions, upon
from local.stages.sides import PublicOptions, prepare_sides
from local.stages.voted_words import (
    Lms,
    PublicModel,
    Students,
    VoteOptions,
    WhisperLists,
    candidates,
    grammar_lists,
    prepare_text,
)
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Positives, from_conf, option, path_option


@dataclass(frozen=True)
class Options(PhoneOptions, VoteOptions, PublicOptions):
    """Those of public speech, and those of the votes."""

    epsilons: Positives = option((8.0,), "epsilons of the words, a release each")
    grammars: bool = option(False, "public grammars of spelled letters, numbers and dates in all"
                                   " LMs; by the weight that dev prefers")
    whisper: Path | None = path_option(
        "folder of a Whisper model for CTranslate2: its lists are rescored, no model is trained")
    students: bool = option(False, "students of the pool's words, as each graph finds them")
    private_epochs: Count | None = from_conf("am_finetune.epochs",
                                             "--students: epochs on all private speech")
    student_epochs: Count | None = from_conf("am_finetune.epochs",
                                             "--students: epochs, or more in a small pool")
    mix: bool = option(True, "LMs are mixed with that of public text by dev; false: votes alone")


def stages(r: Recipe, o: Options) -> None:
    """The recognizer is public and the same for all; its words and LM differ."""
    if o.students and o.whisper is not None:
        r.refuse("--students", "an acoustic model to train", "--whisper", "remove one")
    if o.whisper is None:
        s, name = prepare_sides(r, o), f"{upon(r)}{r.data.token_type}"  # 0-3
    else:
        s, name = prepare_text(r, o), f"whisper_{o.whisper.name}"       # 0, 3
    r.exp = f"exp/wordvotes_{name}{'_grammars' * o.grammars}{'' if o.mix else '_alone'}"
    recognizer = WhisperLists(r, o, s) if o.whisper else PublicModel(r, o, s)  # 4
    public = r.system("public", label="public words", method="public",
                      compare_with=recognizer.alone())
    not_private = r.system("nonprivate", label="all private words", method="not_private",
                           compare_with=[public])
    lists = grammar_lists(r, o)                                         # 5
    lms = Lms(r, o, s, candidates(r, o, s, lists), lists, mix=o.mix)    # 5
    lms.use_grammars()                                                  # 5
    public_lm = lms.public(lms.lang, public.folder)                     # 5
    systems = [(not_private, *lms.of_all_text(not_private)),            # 5-6
               (public, lms.lang, lms.with_grammars(public, public_lm))]  # 6
    for epsilon in o.epsilons:
        voted = r.system(f"eps_{epsilon:g}", label=f"released words, epsilon {epsilon:g}",
                         method="votes", public=public, not_private=not_private,
                         compare_with=[public], headline=True, epsilon=epsilon, learner="public",
                         protects=f"each speaker of {r.people}/train")
        systems.append((voted, lms.lang, lms.of_votes(voted, epsilon, public_lm)))  # 7
    firsts = [(system, recognizer.recognize(system, lang, lm))          # 8
              for system, lang, lm in systems]
    if o.students:
        Students(r, o, s).train(*firsts)                                # 9-10
    r.report(11, manifests=s.data.manifests, phones=o.per)
