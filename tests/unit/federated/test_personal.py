"""What devices learn of their own users, against models made anew for each group of utterances."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.config import load
from privasr_k2.errors import ConfigError
from privasr_k2.federated.fmp_scores import World, open_adaptable, references, token_scores
from privasr_k2.federated.fmp_settings import FmpConfig
from privasr_k2.federated.fmp_simulation import rounds_of, tokens_of
from privasr_k2.federated.fmp_spoken import Turn, spoken_of
from privasr_k2.federated.personal import personal_scores
from privasr_k2.federated.personal_methods import METHODS, AdapterConfig, PersonalConfig
from privasr_k2.lm.neural.files import save_lm
from privasr_k2.lm.neural.kinds import new_lm
from privasr_k2.lm.neural.lstm import LstmConfig, LstmSpec
from privasr_k2.lm.neural.softmax import OutputConfig
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from privasr_k2.training.trainable import LoraConfig
from tests.support.conf import section
from tests.support.fmp_tiny import made_lists

WORDS = tuple("abcdefgh")
VOCABULARY = Vocabulary((*SYMBOLS, *WORDS))
ROUNDS = 2
SAID = [
    ["a b c", "a b"], ["b c d"], ["h h a"], [""], ["a b h"], ["h h", "h"],   # one client
    ["c c", "d"], ["d e f"], ["d e d e"],                                    # another one
]  # fmt: skip
CLIENTS = ["x"] * 6 + ["y"] * 3


def config(method: str, **changed: object) -> PersonalConfig:
    lora = LoraConfig(rank=2, scale=1.0, layers=["output.linear", "project"])
    values = {
        "method": method,
        "rounds": ROUNDS,
        "strength": 0.0,
        "strengths": [0.0, 0.5],
        "adapter": AdapterConfig(trained=["lora"], lora=lora, epochs=1, batch_size=2),
        "order": 2,
        "rare": 0.05,
        "normalized": True,
        "criterion": "perplexity",
        "name": "",
        "seed": 1,
    }
    return PersonalConfig(**{**values, **changed})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model."""
    output = OutputConfig("full", [3], 2.0, False)
    spec = LstmSpec("lstm", output, network=LstmConfig(6, 6, 1, 0.0))
    lm = new_lm(spec, VOCABULARY, 3)
    with torch.no_grad():
        for parameter in lm.parameters():
            generator = torch.Generator().manual_seed(1)
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    path = tmp_path_factory.mktemp("lm")
    save_lm(path, spec, lm.state_dict(), VOCABULARY)
    return path


def world_of(path: Path, first: int = 0) -> World:
    lm, lists = open_adaptable(path, "cpu"), made_lists(SAID[first:])
    whose = zip(lists.lists, CLIENTS[first:])
    turns = [Turn(one.id, client, client, "speaker") for one, client in whose]
    background = np.full(len(VOCABULARY), 0.2)
    background[VOCABULARY.ids["h"]] = background[VOCABULARY.ids["e"]] = 0.01
    return World(lists, spoken_of(lists, turns, lm.numbers), background)


def scores_of(path: Path, of: PersonalConfig, strengths: list[float], first: int = 0) -> np.ndarray:
    """Those of utterances from ``first`` on."""
    lm, world = open_adaptable(path, "cpu"), world_of(path, first)
    begin = METHODS[of.method](path, lm, of, strengths, world.background)
    found, costs = personal_scores(world, lm, begin, len(strengths), of.rounds)
    assert costs.sent_bytes == 0 and (costs.kept_bytes > 0) == (of.method != "none")
    assert costs.score_ms > 0
    return found


def witten_bell(said: list[list[str]], before: str, word: str) -> float:
    """P(word | before) of the bigrams that were said, smoothed to unigrams and to even chances."""
    pairs = Counter(pair for of in said for pair in zip(["<s>", *of], [*of, "</s>"]))
    singles = Counter(word for of in said for word in [*of, "</s>"])
    kinds = len(singles)
    lower = (singles[word] + kinds / (len(WORDS) + 2)) / (singles.total() + kinds)
    after = {pair: count for pair, count in pairs.items() if pair[0] == before}
    if not after:
        return lower
    return (pairs[before, word] + len(after) * lower) / (sum(after.values()) + len(after))


def groups(world: World) -> list[tuple[np.ndarray, list[list[str]], list[list[list[str]]]]]:
    """Of each client and group: its tokens, what was said before, and its lists."""
    turns, found = rounds_of(world.spoken, ROUNDS), []
    for client in range(2):
        own = np.flatnonzero(world.spoken.clients == client)
        for turn in range(ROUNDS + 1):
            now = own[turns[own] == turn]
            before = [SAID[i][0].split() for i in own[turns[own] < turn] if SAID[i][0]]
            nbests = [[hyp.split() for hyp in SAID[i]] for i in now]
            found.append((tokens_of(world.spoken, now), before, nbests))
    return found


@pytest.mark.parametrize("method", [*METHODS])
def test_strength_0_and_the_first_group_are_the_shared_model(folder: Path, method: str) -> None:
    world, found = world_of(folder), scores_of(folder, config(method), [0.0, 0.5])
    plain = open_adaptable(folder, "cpu").plain([[hyp.split() for hyp in said] for said in SAID])
    assert np.abs(found[:, 0] - plain).max() < 1e-5
    for at, before, _ in groups(world):
        differs = bool(np.abs(found[at, 1] - plain[at]).max() > 1e-4)
        heard = {word for said in before for word in said}
        changing = {"none": set(), "names": {"h", "e"}}.get(method, heard)
        assert differs == bool(heard & changing)


def test_a_cache_is_the_mixture_with_an_ngram_model_of_what_was_said(folder: Path) -> None:
    found, lm = scores_of(folder, config("cache"), [0.3])[:, 0], open_adaptable(folder, "cpu")
    for at, before, nbests in groups(world_of(folder)):
        expected = np.exp(lm.plain(nbests))
        if before:
            own = [
                witten_bell(before, *pair)
                for nbest in nbests for hyp in nbest for pair in zip(["<s>", *hyp], [*hyp, "</s>"])
            ]  # fmt: skip
            expected = 0.7 * expected + 0.3 * np.array(own)
        assert np.abs(np.exp(found[at]) - expected).max() < 1e-5


def test_names_scale_rare_words_that_were_said_and_are_distributions(folder: Path) -> None:
    found, lm = scores_of(folder, config("names"), [2.0])[:, 0], open_adaptable(folder, "cpu")
    rare = {"h", "e"}
    for at, before, nbests in groups(world_of(folder)):
        names = rare & {word for said in before for word in said}
        expected = []
        for nbest in nbests:
            for hyp in nbest:
                for n, word in enumerate([*hyp, None]):
                    others = [[*hyp[:n], other] for other in (*WORDS, "<unk>")]
                    chances = [np.exp(lm.plain([[other]])[n]) for other in others]
                    chances.append(np.exp(lm.plain([[hyp[:n]]])[n]))
                    weights = [np.exp(2.0) if other[-1] in names else 1.0 for other in others]
                    z = float(np.dot(chances, [*weights, 1.0]))
                    assert sum(chances) == pytest.approx(1.0, abs=1e-5)
                    place = len(others) if word is None else WORDS.index(word)
                    expected.append(np.log(chances[place] * [*weights, 1.0][place] / z))
        assert np.abs(found[at] - expected).max() < 1e-4


def test_unnormalized_names_add_the_bonus_alone(folder: Path) -> None:
    found = scores_of(folder, config("names", normalized=False), [2.0])[:, 0]
    lm = open_adaptable(folder, "cpu")
    for at, before, nbests in groups(world_of(folder)):
        said = {word for sentence in before for word in sentence}
        added = [
            2.0 * (word in said and word in ("h", "e"))
            for nbest in nbests for hyp in nbest for word in [*hyp, "</s>"]
        ]  # fmt: skip
        assert found[at] == pytest.approx(lm.plain(nbests) + added, abs=1e-5)


def test_devices_that_train_do_not_see_each_other(folder: Path) -> None:
    alone = scores_of(folder, config("adapter"), [0.5])[:, 0]
    both = scores_of(folder, config("adapter"), [0.1, 0.5])[:, 1]
    assert np.abs(alone - both).max() < 1e-6
    own = scores_of(folder, config("adapter"), [0.5], first=6)[:, 0]
    assert np.abs(own - alone[-len(own) :]).max() < 1e-6


def test_a_device_that_diverges_scores_by_the_shared_model(folder: Path) -> None:
    scores = scores_of(folder, config("adapter"), [0.0, 0.5, 1e30])
    assert np.isfinite(scores).all()
    assert (scores[:, 2] != scores[:, 0]).any()  # some are not finite after several steps alone
    assert (scores[:, 1] != scores[:, 0]).any()


def test_adapters_learn_what_is_said_again(folder: Path) -> None:
    of = config(
        "adapter",
        adapter=AdapterConfig(
            trained=["all"], lora=LoraConfig(1, 1.0, ["project"]), epochs=20, batch_size=2
        ),
    )
    found, lm = scores_of(folder, of, [0.5])[:, 0], open_adaptable(folder, "cpu")
    at, _, nbests = groups(world_of(folder))[-1]
    assert found[at].sum() > lm.plain(nbests).sum() + 1.0


@pytest.mark.parametrize("changed", [{"strengths": [1.0]}, {"strength": 1.5}, {"method": "lora"}])
def test_values_that_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"cache|method"):
        config(**{"method": "cache", **changed})


def test_an_ngram_model_has_no_adapters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="adapter"):
        METHODS["adapter"](tmp_path, None, config("adapter"), [0.1], np.zeros(3))  # type: ignore[arg-type]


REFS = ["a b h", "b c", "h e a", "a", "a b h h", "h", "c d", "d e f g", "e e"]


def two_worlds(path: Path) -> tuple[World, World]:
    """First hypotheses with other references; and the same references as second hypotheses."""
    lm = open_adaptable(path, "cpu")
    u, worlds = world_of(path).background, []
    for nbests in ([[s[0]] for s in SAID], [[s[0], ref] for s, ref in zip(SAID, REFS)]):
        made = made_lists(nbests)
        lists = replace(made, lists=tuple(
            replace(one, ref=ref) for one, ref in zip(made.lists, REFS)))  # fmt: skip
        turns = [Turn(one.id, c, c, "speaker") for one, c in zip(lists.lists, CLIENTS)]
        worlds.append(World(lists, spoken_of(lists, turns, lm.numbers), u))
    return worlds[0], worlds[1]


@pytest.mark.parametrize("method", ["adapter", "cache", "names", "marginals"])
def test_references_are_scored_by_what_hypotheses_taught(folder: Path, method: str) -> None:
    """As second hypotheses, from which nothing is learned."""
    first, both = two_worlds(folder)
    lm, found = open_adaptable(folder, "cpu"), []
    for world, said in ((first, references(first)), (both, None)):
        if method == "marginals":
            given = ["rounds=2", "normalized=true", "kernel_bandwidth=0", "lam=0.7"]
            of = load(FmpConfig, [section("fmp")], given)
            found.append(token_scores(world, lm, of, [0.7], None, None, said)[:, 0])
            continue
        begin = METHODS[method](folder, lm, config(method), [0.5], world.background)
        found.append(personal_scores(world, lm, begin, 1, ROUNDS, said)[0][:, 0])
    is_second = both.spoken.ranks[both.spoken.token_hyps] == 2
    assert found[0] == pytest.approx(found[1][is_second], abs=1e-5)
    plain = lm.plain([[ref.split()] for ref in REFS])
    assert np.abs(found[0] - plain).max() > 1e-3
