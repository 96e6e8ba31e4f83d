"""The recipes pate and dpsgd on two tiny corpora: tables, guarantees, resumed; what cannot be."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, read_jsonl, read_yaml, write_text
from privasr_k2.privacy.events import terms
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.lineage import lineage
from privasr_k2.privacy.totals import joint_guarantee
from privasr_k2.publish.check import check_published
from privasr_k2.publish.folder import publish
from privasr_k2.scoring.nbest_lists import read_nbest
from privasr_k2.training.weights import read_header
from tests.support.recipe_tools import assert_up_to_date, check_names, dry_run, recipe
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    tiny_whisper,
)

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/pate_char_speaker_utterance/ctc"
DRY = "mini_pate pate --preset tiny"
TINY = f"{DRY} --nj 1 --teachers 3 --heads false --vote utterance --score-teachers 1 --epsilons 8"
TINY += " --mechanisms gnmax"


@pytest.mark.timeout(1500)  # some fifty stages
def test_from_two_corpora_to_the_tables(tmp_path: Path) -> None:
    recipe(TINY, "--work-dir", tmp_path)
    exp = (tmp_path / EXP).parent
    rows = list(read_jsonl(exp / "results.jsonl"))
    wer = {row["label"]: row for row in rows if (row["metric"], row["part"]) == ("wer", "test")}
    check_names(rows)
    label = "GNMax, 3 teachers, epsilon 8"
    assert {"public only", "not private", "teacher 1 of 3", label} <= wer.keys()
    assert wer[label]["person_epsilon"] == wer[label]["epsilon"] <= 8
    assert wer[label]["unit"] == "speaker"
    assert "Synthetic speech" in (exp / "RESULTS.md").read_text()
    sides = read_json(tmp_path / "data/sides_fbank/sides.json")
    people = [set(sides[side]["speakers"]) for side in ("private", "public", "pool")]
    assert all(people) and not any(a & b for a, b in combinations(people, 2))
    shards = read_json(tmp_path / "exp/shards_speaker/3/shards.json")
    assert set(shards["roster"]) == people[0]

    [entry] = Ledger(tmp_path / "privacy/ledger.json").entries()
    assert (entry.spending.data, entry.spending.unit) == ("mini_pate/train", "speaker")
    # All ways back from the student end in its release or in public data; not so from a teacher.
    student = lineage(tmp_path / EXP / "gnmax_3_8/am", tmp_path)
    assert student.is_covered and len(student.spent) == 1, list(student.lines())
    assert not lineage(tmp_path / EXP / "teachers_3/1", tmp_path).is_covered
    assert "tied" in read_json(tmp_path / EXP / "gnmax_3_8/audit.json")
    assert {"audit_lower", "auc"} <= {row["metric"] for row in rows}
    assert_up_to_date(TINY, "--work-dir", tmp_path)
    # DP-SGD takes the public model over, with a graph, and begins at what it teaches itself.
    dpsgd = "mini_pate dpsgd --preset tiny --nj 1 --dpsgd-epsilons 8 --audit false --graph true"
    text = recipe(f"{dpsgd} --self-trained true", "--work-dir", tmp_path)
    assert "public model, ctc ... up to date" in text and "DP-SGD, epsilon 8" in text
    assert len(Ledger(tmp_path / "privacy/ledger.json").entries()) == 2
    exp = tmp_path / "exp/dpsgd_char_speaker_self_trained_graph"
    model = lineage(exp / "ctc/dpsgd_8/am", tmp_path)
    assert model.is_covered and len(model.spent) == 1, list(model.lines())
    assert any("self_trained" in path for _, path in model.public)
    compared = {(row["system"], row["against"]) for row in read_jsonl(exp / "results.jsonl")}
    assert ("ctc/dpsgd_8", "ctc/self_trained") in compared


@pytest.mark.timeout(1500)
def test_a_teacher_a_speaker_and_one_of_them_has_no_data(tmp_path: Path) -> None:
    """Without the data of one of five speakers the run ended at an empty shard."""
    roster = tmp_path / "roster"
    write_text(roster, "".join(f"user{number}\n" for number in (1000, 1001, 1002, 1003, 9999)))
    options = f"--teachers 5 --roster {roster} --epsilons 8 --mechanisms gnmax --audit false"
    recipe(f"{DRY} --nj 1 {options}", "--work-dir", tmp_path / "work")
    shards = read_json(tmp_path / "work/exp/shards_speaker/5/shards.json")
    assert "user9999" in shards["roster"] and shards["units_in_a_shard"] == 1
    sides = read_json(tmp_path / "work/data/sides_fbank/sides.json")
    assert set(sides["private"]["speakers"]) == set(shards["roster"])
    [entry] = Ledger(tmp_path / "work/privacy/ledger.json").entries()
    assert (entry.spending.units, entry.spending.person_units) == (5, 1)
    [(_, answers)] = terms(entry.spending.event).items()  # of one count each: sensitivity 1
    exp = tmp_path / "work/exp/pate_char_speaker_token_heads/ctc"
    about = read_json(exp / "gnmax_5_8/labels/labels.json")
    assert about["votes_planned"]["answered"] == answers
    assert about["sensitivity"] == {"l1": 1, "l2": 1.0}
    header = read_header(exp / "teachers_5/heads.safetensors")
    assert header["abstaining"] == [shards["roster"]["user9999"]]


@pytest.mark.timeout(1500)
def test_phones_are_searched_in_the_graph_of_public_words(tmp_path: Path) -> None:
    text = tmp_path / "public.txt"
    write_text(text, "please call leila now\nnone says wunderkind\n")
    options = "--token-type phone --vote utterance --teachers 3 --score-teachers 1 --epsilons 8"
    options += f" --mechanisms gnmax --graph-text {text} --self-trained false"
    options += " --audit false --word-votes 500"  # of four speakers: a smaller one releases nothing
    recipe(f"{DRY} --nj 1 --unlabeled-data none {options}", "--work-dir", tmp_path / "work")
    exp = tmp_path / "work/exp/pate_phone_speaker_utterance_heads"
    rows = [row for row in read_jsonl(exp / "results.jsonl") if row["metric"] == "wer"]
    label = "GNMax, 3 teachers, epsilon 8"
    wanted = {"public only", "not private", "teacher 1 of 3", label}
    assert wanted <= {row["label"] for row in rows if row["part"] == "test"}
    weights = read_json(tmp_path / "work/exp/e2e_phone/ctc/weights.json")
    assert weights["lm_weight"] > 0
    words = (tmp_path / "work/data/graph_phone_public/words.txt").read_text().split()
    assert "wunderkind" in words
    nbest = read_nbest(tmp_path / "work/exp/e2e_phone/ctc/public/nbest_pool")
    said = {word for one in nbest.lists for hyp in one.hyps for word in hyp.words.split()}
    assert said and said <= set(words)
    student = lineage(exp / "ctc/gnmax_3_8/am", tmp_path / "work")
    assert student.is_covered and len(student.spent) == 1, list(student.lines())
    # In the graph of words that private speakers have released: both releases, one epsilon.
    graph = lineage(tmp_path / "work/exp/wordvotes_phone/eps_500/graph", tmp_path / "work")
    assert graph.is_covered and len(graph.spent) == 1, list(graph.lines())
    entries = Ledger(tmp_path / "work/privacy/ledger.json").entries()
    assert len(entries) == 2
    together, *alone = (
        joint_guarantee([entry.spending for entry in of]).epsilon.value
        for of in (entries, entries[:1], entries[1:])
    )
    found = {row["label"]: row["person_epsilon"] for row in rows if row["part"] == "test"}
    end = ", with words at epsilon 500"
    assert sorted(alone) == sorted([found[label], found[f"public only{end}"]])
    assert found[f"{label}{end}"] == pytest.approx(together) and together > max(alone)
    assert not {f"not private{end}", f"teacher 1 of 3{end}"} & found.keys()
    page = (exp / "RESULTS.md").read_text()
    assert "## Rows of several releases about the same data" in page
    assert "all 2 together" in page and "## Votes for words" in page


def test_released_words_are_those_of_recipe_wordvotes(tmp_path: Path) -> None:
    option = "--graph true --word-votes 4"
    pate, dpsgd, alone = (
        dry_run(f"mini_pate {rest} --preset tiny --max-words 30", "--work-dir", tmp_path)
        for rest in (f"pate {option}", f"dpsgd {option} --people '2 0'", "wordvotes --epsilons 4")
    )
    # One release for all three recipes.
    votes = "7 (votes for words, epsilon 4)"
    assert "max_words=30" in pate[votes] and pate[votes] == dpsgd[votes] == alone[votes]
    score = pate["12 (score ctc/gnmax_3_8_words_4)"]
    weights = "gnmax_3_8/graph/words_4/own_weights/weights.json"
    assert "gnmax_3_8/graph/words_4/own_weights/decode_test" in score and weights in score
    public = dry_run(
        f"mini_pate pate {option} --weights public --preset tiny --max-words 30",
        "--work-dir",
        tmp_path,
    )["12 (score ctc/gnmax_3_8_words_4)"]
    assert "gnmax_3_8/graph/words_4/decode_test" in public and "eps_4/weights.json" in public
    assert "12 (score ctc/self_trained_words_4)" in pate
    fewer = dpsgd["7 (votes for words, epsilon 4, 2 people)"]
    assert "sides_fbank_2people/private" in fewer and "wordvotes_char_2people/eps_4" in fewer
    both = dpsgd["8 (decode test, ctc/dpsgd_8_2people_words_4)"]
    assert "wordvotes_char_2people/eps_4/graph" in both
    assert "wordvotes_char/eps_4/graph" in dpsgd["8 (decode test, ctc/dpsgd_8_words_4)"]


def titles(shown: dict[str, str]) -> set[str]:
    """The titles of the stages of a dry run."""
    return {name.partition(" (")[2].removesuffix(")") for name in shown}


def test_all_that_can_be_asked_for_fits_together(tmp_path: Path) -> None:
    every = (
        "--models 'ctc rnnt ctc_attention las' --teachers '2 3' --heads false --epsilons '1 inf'"
    )
    every += " --vote utterance --published-scale figures --sweep-epsilons 100"
    every += " --mechanisms 'gnmax lnmax gumbel_max confident_gnmax gaussian_posteriors'"
    every += " --dpsgd-epsilons '8 inf' --words yes --attacks 'white_box black_box'"
    declared = titles(dry_run(f"{DRY} {every}", "--work-dir", tmp_path))
    assert {
        "student, las/confident_gnmax_3_1",
        "queries per epsilon, gumbel_max",
        "audit of labels, ctc/gumbel_max_2_1",
        "student, rnnt/lnmax_2_1_figures",
        "labels, ctc/clean_3",
        "posteriors of 2 teachers, ctc",
        "DP-SGD, ctc_attention, epsilon inf",
        "inversion, black_box, las control",
        "student, ctc/gnmax_3_100",
    } <= declared
    assert "student, rnnt/gnmax_3_100" not in declared


def test_token_votes_need_no_hypotheses(tmp_path: Path) -> None:
    alone = "--heads false --self-trained false --unlabeled-data none"
    text = " ".join(titles(dry_run(f"{DRY} {alone}", "--work-dir", tmp_path)))
    assert "N-best lists of the pool" not in text and "votes of" not in text
    shown = dry_run(DRY, "--work-dir", tmp_path)
    assert {"3 teachers as heads, ctc", "student, ctc/self_trained"} <= titles(shown)
    # A graph is another decoder of the same models: nothing of the other is overwritten, and no
    # release is made again.
    in_graph = dry_run(f"{DRY} --graph true", "--work-dir", tmp_path)
    assert "exp/e2e_char/ctc/public/am" in in_graph["10 (labels, ctc/gnmax_3_8)"]
    assert "exp/e2e_char/ctc/public/am" in shown["10 (labels, ctc/gnmax_3_8)"]
    assert "public/graph/score_test" in in_graph["12 (score ctc/public)"]
    command = "mini_pate dpsgd --preset tiny"
    plain, graph = (
        dry_run(f"{command} --graph {on}", "--work-dir", tmp_path) for on in ("false", "true")
    )
    title = "6 (DP-SGD, ctc, epsilon 8)"
    assert plain[title] == graph[title]
    text = tmp_path / "text.txt"
    write_text(text, "please call leila now\n")
    words = dry_run(f"{command} --graph true --graph-text {text}", "--work-dir", tmp_path)
    assert "exp/e2e_char_graph/ctc/public/am" in words[title]


def test_attacks_upon_heads(tmp_path: Path) -> None:
    shown = dry_run(f"{DRY} --teachers '2 3' --words yes --per true", "--work-dir", tmp_path)
    assert {
        "membership in shards, ctc",
        "inversion, white_box, ctc teacher_3_1",
        "inversion, white_box, ctc ensemble_3",
        "decode test, ctc/teacher_3_2",
    } <= titles(shown)
    files = ("gnmax_2_8/audit", "membership_models", "inversion_white_box/inversion")
    assert all(f"{file}.json" in shown["14 (results)"] for file in files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--epsilons 0", "--epsilons: expected a number above 0"),
        ("--sweep-epsilons '1 8'", "expected epsilons that --epsilons lacks, found 8"),
        ("--teachers '5 0'", "--teachers: expected a whole number of at least 1"),
        ("--threshold 120", "--threshold: expected"),
        ("--threshold 50", "--threshold: expected options that change something here"),
        ("--mechanisms noise", "--mechanisms: expected one of gnmax, lnmax"),
        ("--models ''", "--models: expected"),
        ("--vote frame --models las", "only CTC has a token a frame"),
        ("--init scratch --heads true", "add --heads false"),
        ("--vote token --heads false --mechanisms gaussian_posteriors", "gnmax lnmax"),
        ("--vote token --published-scale figures", "nothing with --vote token"),
        ("--vote utterance --public-threshold 0.8", "--public-threshold: expected options that"),
        ("--vote utterance --top-k 4", "--top-k: expected options that change"),
        ("--token-type phone --models 'ctc las'", "--models: expected ctc alone with a graph"),
        ("--graph-text README.md", "--graph-text: expected a graph"),
        ("--word-votes 8", "--word-votes: expected CTC in a graph"),
        ("--word-votes 8 --graph true --models las", "are released, found --models las"),
        ("--word-votes inf --graph true", "--word-votes: expected"),
        ("--graph true --max-words 9", "--max-words: expected options that change"),
    ],
)
def test_what_cannot_be(options: str, message: str, tmp_path: Path) -> None:
    text = recipe(f"{DRY} {options} --dry-run true", "--work-dir", tmp_path, code=2)
    assert message in text and "way out" in text


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "command",
    [
        "an4 pate --corpus-dir {0}/an4 --public-dir {0}/LibriSpeech",
        "librispeech pate --corpus-dir {0}/LibriSpeech --unlabelled {0}/unlabelled",
        "librispeech dpsgd --corpus-dir {0}/LibriSpeech --unlabelled {0}/unlabelled",
        "timit pate --corpus-dir {1} --public-dir {0}/LibriSpeech",
        "data:{0}/an4 pate --token-type char --feature auto",
    ],
)
def test_real_corpora_fit_together(shared_data: Path, tmp_path: Path, command: str) -> None:
    command = f"{command.format(shared_data, tmp_path)} --preset tiny"
    assert "results" in titles(dry_run(command, "--work-dir", tmp_path / "work"))


@pytest.mark.timeout(900)
def test_upon_a_public_encoder_by_default_and_published(tmp_path: Path) -> None:
    """All defaults of the preset; the encoder's name leaves, its folder here does not."""
    encoder, work = tmp_path / "tiny_whisper", tmp_path / "work"
    save_safetensors(encoder, hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)
    recipe(f"{DRY} --nj 1 --encoder-model {encoder} --audit false", "--work-dir", work)
    [student] = (work / "exp").glob("pate_*/ctc/gnmax_3_8/am")
    publish(student, tmp_path / "out")
    assert len(check_published(tmp_path / "out")) == 1
    settings = read_yaml(tmp_path / "out/features.yaml")
    assert settings["dim"] == 64 and settings["public_encoder"]["name"] == "tiny_whisper"
    texts = [path.read_bytes() for path in (tmp_path / "out").iterdir()]
    assert not any(str(tmp_path).encode() in text for text in texts)


@pytest.mark.parametrize(
    ("options", "sections"),
    [
        ("mini_pate dpsgd", ["dpsgd", "dpsgd_norms"]),
        ("mini_pate dpsgd --dpsgd-whole true", ["dpsgd"]),
        ("mini_pate dpsgd --init scratch", ["dpsgd"]),
        ("mini_pate dpsgd --preset paper", ["dpsgd"]),
        ("mini_pate pate --preset paper --models ctc --dpsgd-epsilons 8", ["dpsgd"]),
        ("mini redteam", ["dpsgd"]),
    ],
)
def test_random_weights_and_the_baseline_of_the_paper_are_trained_whole(
    tmp_path: Path, options: str, sections: list[str]
) -> None:
    stages = dry_run(options, "--work-dir", tmp_path)
    (command,) = (text for title, text in stages.items() if "(DP-SGD, ctc, epsilon 8)" in title)
    read = re.findall(r"conf/pate\.yaml#(\w+)", command.split("command", 1)[1])
    assert read == sections
