"""Systems of pate and dpsgd in a graph of released words, beside that of public ones.

What private speakers say is released by votes, as in recipe wordvotes. A system that has a
guarantee of its own and finds words in that graph has two releases about the same people, and one
epsilon of both. Decoding is post-processing: it costs nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from local.stages import e2e
from local.stages.e2e import E2e, E2eOptions, decode_test, shown
from local.stages.first_pass import FirstPass
from local.stages.voted_words import Lms, VoteOptions, candidates, in_graph
from privasr_k2.recipe.declare import Declared, Recipe
from privasr_k2.recipe.options import Finite, option


@dataclass(frozen=True)
class WordGraphOptions(VoteOptions, E2eOptions):
    """Options of both recipes of yang2022, and of the words that are released beside them."""

    word_votes: Finite | None = option(
        None, "ctc in a graph: epsilon of private words by votes; systems also in their graph")


def check_word_votes(r: Recipe, o: WordGraphOptions) -> None:
    """Refuse votes for words that no graph would have, before anything is declared."""
    if o.word_votes is None or (o.models == ("ctc",) and (o.graph or r.data.token_type == "phone")):
        return
    found = "no graph" if o.models == ("ctc",) else f"--models {' '.join(o.models)}"
    r.refuse("--word-votes", "CTC in a graph, whose words are released", found,
             "add --models ctc and --graph true, or remove --word-votes")


def decode_all(r: Recipe, o: WordGraphOptions, e: E2e, number: int,
               groups: Sequence[E2e] = ()) -> None:
    """Decode test with every system; with --word-votes in the graph of released words, too.

    Args:
        number: of the stages; stages 5, 7 and 8 make the graphs, a release each.
        groups: those of each number of people, whose words are released; none: ``e`` alone.
    """
    e2e.decode_all(r, o, e, number)
    if o.word_votes is not None:
        for group in groups or [e]:
            decode_in_released(r, o, group, o.word_votes, max(number, 8))


def decode_in_released(r: Recipe, o: WordGraphOptions, e: E2e, epsilon: float,
                       number: int) -> None:
    """The systems of some people in the graph of the words that these people have released."""
    voted, first = release_words(r, o, e, epsilon)
    in_words = replace(e, graph=first.graph, data=first.data)
    people = voted.artifacts.get("people")
    for base, _, am, settings in e.decoded[1:]:  # the first is the public model
        is_public = base.values["method"] == "public"
        if not (is_public or "privacy" in base.artifacts):
            continue
        if base.artifacts.get("people") in (None, people):
            system = beside(r, e, base, voted, epsilon)
            decode_test(r, o, in_words, number, system, system.folder, am=am,
                        weights=f"{voted.folder}/weights.json", **settings)


def release_words(r: Recipe, o: WordGraphOptions, e: E2e,
                  epsilon: float) -> tuple[Declared, FirstPass]:
    """Stages 5 to 8: votes, an LM of them, and the public model in its graph.

    Folders are those of recipe wordvotes: both recipes make the same release of the same words.
    """
    exp = f"exp/wordvotes_{e.base.removeprefix('exp/e2e_')}"
    some = f"_{e.people}people" if e.people else ""
    lms = Lms(r, o, e, candidates(r, o, e, ""), end=e.of_people)
    public = lms.public(lms.lang, f"{exp}/public")
    voted = e.private_system(
        r, f"ctc/public_words_{shown(epsilon)}", label=f"public only{of_words(epsilon)}",
        method="votes", folder=f"{exp}{some}/eps_{shown(epsilon)}", public=e.public_model["ctc"],
        not_private=e.not_private["ctc"], compare_with=e.public_systems("ctc"),
        headline=True, protects=f"each speaker of {r.people}/train", model="ctc",
        word_votes=epsilon)
    lm = lms.of_votes(voted, epsilon, public)
    return voted, in_graph(r, e.data, e.public_am("ctc"), voted, lms.lang, lm)


def beside(r: Recipe, e: E2e, base: Declared, voted: Declared, epsilon: float) -> Declared:
    """The row of a system in the graph of released words: of their release and its own, if any."""
    end, is_public = f"words_{shown(epsilon)}", base.values["method"] == "public"
    of_people = f"_{e.people}people" if is_public and e.people else ""
    kept = voted if is_public else base
    system = r.system(
        f"{base.name}_{end}{of_people}", folder=f"{base.folder}{e.below}/{end}{of_people}",
        label=f"{base.values['label']}{of_words(epsilon)}{e.of_people if is_public else ''}",
        public=e.public_model["ctc"], not_private=e.not_private["ctc"],
        compare_with=[*e.public_systems("ctc"), base, voted],
        method=kept.values["method"], protects=kept.values["protects"],
        headline=kept.values["headline"], **{**base.values["facts"], "word_votes": epsilon})
    own = [base.artifacts["privacy"]] if "privacy" in base.artifacts else []
    for kind, path in zip(("privacy", "privacy_words"), [*own, voted.artifacts["privacy"]]):
        system.add(kind, path)
    if "people" in kept.artifacts:
        system.add("people", kept.artifacts["people"])
    return system


def of_words(epsilon: float) -> str:
    """End of the label of a system in the graph of released words."""
    return f", with words at epsilon {shown(epsilon)}"
