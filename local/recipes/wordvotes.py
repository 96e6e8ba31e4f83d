"""Words that many private speakers say, released by noisy votes, for a public recognizer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from local.stages.data import PhoneOptions, upon
from local.stages.e2e import PublicOptions, prepare_sides, train_public
from local.stages.first_pass import score
from local.stages.voted_words import Lms, candidates, decode_with, grammar_lists
from privasr_k2.recipe.declare import Recipe
from privasr_k2.recipe.options import Count, Natural, Positives, from_conf, option, path_option


@dataclass(frozen=True)
class Options(PhoneOptions, PublicOptions):
    """Those of public speech, and those of the votes."""

    epsilons: Positives = option((8.0,), "epsilons of the words, a release each")
    word_list: Path | None = path_option(
        "public words to vote on, besides those of public text: a word a line")
    max_words: Count | None = from_conf("vote_words.max_words", "words that a speaker votes for")
    max_bigrams: Natural | None = from_conf("vote_words.max_bigrams",
                                            "bigrams of released words that a speaker votes for")
    choose: Literal["most_said", "random"] | None = from_conf(
        "vote_words.choose", "which of the words they said")
    grammars: bool = option(False, "public grammars of spelled letters, numbers and dates in all"
                                   " LMs; by the weight that dev prefers")
    mix: bool = option(True, "LMs are mixed with that of public text by dev; false: votes alone")


def stages(r: Recipe, o: Options) -> None:
    """The acoustic model is public and the same for all; graphs differ in their words and LM."""
    s = prepare_sides(r, o)                                             # 0-3
    name = f"{upon(r)}{r.data.token_type}"
    r.exp = f"exp/wordvotes_{name}{'_grammars' * o.grammars}{'' if o.mix else '_alone'}"
    public = r.system("public", label="public words", method="public")
    not_private = r.system("nonprivate", label="all private words", method="not_private",
                           compare_with=[public])
    am = train_public(r, o, s, "ctc", f"exp/e2e_{name}/ctc/public")     # 4
    lists = grammar_lists(r, o)                                         # 5
    lms = Lms(r, o, s, candidates(r, o, s, lists), lists)               # 5
    lms.use_grammars()                                                  # 5
    public_lm = lms.public(lms.lang, public.folder)                     # 5
    systems = [(not_private, *lms.of_all_text(not_private)),            # 5-6
               (public, lms.lang, lms.with_grammars(public, public_lm))]  # 6
    for epsilon in o.epsilons:
        voted = r.system(f"eps_{epsilon:g}", label=f"released words, epsilon {epsilon:g}",
                         method="votes", public=public, not_private=not_private,
                         compare_with=[public], headline=True, epsilon=epsilon,
                         protects=f"each speaker of {r.people}/train")
        systems.append((voted, lms.lang, lms.of_votes(voted, epsilon, public_lm)))  # 7
    for system, lang, lm in systems:
        first = decode_with(r, system, s, am, lang, lm)                 # 8
        system.add("weights", first.weights)
        score(r, 8, f"score {system.name}", hyps=f"{first.exp}/decode_test",
              weights=first.weights, first=first, out=system.path("score_test"))
    r.report(9, manifests=s.data.manifests, phones=o.per)
