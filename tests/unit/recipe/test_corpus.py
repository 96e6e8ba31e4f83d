"""Corpora as recipes see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe.corpus import Corpus, corpus_names, find_corpus
from privasr_k2.recipe.front import declare

ROOT = Path(__file__).resolve().parents[3]


def test_every_corpus_of_egs_is_read() -> None:
    for name in corpus_names(ROOT):
        corpus = find_corpus(name, ROOT, ROOT)
        # Only one folder of egs/ has people that another has, too: one ledger name for both.
        assert corpus.people == ("an4" if name == "an4_prompts" else name)
        started = (ROOT / f"egs/{name}/run.sh").read_text(encoding="utf-8")
        assert corpus.description and started.splitlines()[1] == f"# {corpus.description}"
        assert started.endswith(f'/../../run.sh" {name} "$@"\n')
        for recipe in (*corpus.recipes, *corpus.recipe_definitions):
            assert corpus.for_recipe(recipe, ROOT).definition.is_file()


def test_a_recipe_with_a_spoken_part_of_a_corpus_of_text() -> None:
    sgd = find_corpus("sgd", ROOT, ROOT)
    text, spoken = (sgd.for_recipe(recipe, ROOT) for recipe in ("fedlm", "classlm"))
    assert (text.manifests, text.text_options) == ("data/manifests", "")
    assert (spoken.manifests, spoken.text_options) == ("data/manifests_spoken", "speech=none")
    assert (text.conf_name, spoken.conf_name) == ("sgd", "sgd_names")


def test_defaults_of_a_recipe_and_its_paths() -> None:
    an4 = find_corpus("an4", ROOT, ROOT)
    defaults = an4.defaults("pate", {"public_dir", "token_type"}, "small")
    assert defaults["public_dir"] == str(ROOT / "egs/an4/corpus/LibriSpeech")
    assert defaults["words"] == ["yes", "stop"] and "corpus_dir" not in defaults


def test_a_preset_has_defaults_of_its_own() -> None:
    mini = find_corpus("mini_pate", ROOT, ROOT)
    teachers = [mini.defaults("pate", (), preset)["teachers"] for preset in ("tiny", "small")]
    assert teachers == [3, 250]


def test_options_of_a_preset_stand_between_those_of_a_corpus() -> None:
    """Over its options of any preset, below its own of this one; only those that a recipe has."""
    corpus = Corpus(
        "c",
        options={"nbest": 1, "mix": 1},
        recipe_options={"fmp": {"mix": 2, "client": 2}},
        preset_options={"paper": {"fmp": {"client": 4}}},
    )
    of_preset = {"mix": 3, "client": 3, "rounds": None, "teachers": 3}
    known = {"nbest", "mix", "client", "rounds"}
    found = corpus.defaults("fmp", known, "paper", of_preset)
    assert found == {"nbest": 1, "mix": 3, "client": 4, "rounds": None}


def test_a_misspelled_key(tmp_path: Path) -> None:
    (tmp_path / "egs/toy").mkdir(parents=True)
    (tmp_path / "egs/toy/corpus.yaml").write_text("description: x\noptoins: {}\n")
    with pytest.raises(ConfigError, match="optoins"):
        find_corpus("toy", tmp_path, tmp_path)
    (tmp_path / "egs/toy/corpus.yaml").write_text("description: [\n")
    with pytest.raises(ConfigError, match="YAML"):
        find_corpus("toy", tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("options", "way_out"),
    [("train: cuts.jsonl.gz", "correct it; ./run.sh toy RECIPE"), ("teachrs: 3", "teachers")],
)
def test_a_default_that_no_recipe_has(tmp_path: Path, options: str, way_out: str) -> None:
    (home := tmp_path / "egs/toy").mkdir(parents=True)
    for name in ("conf", "local"):
        (tmp_path / name).symlink_to(ROOT / name)
    shared = "description: x\ndefinition: data_dir\noptions: {corpus_dir: ., teachers: 3"
    (home / "corpus.yaml").write_text(f"{shared}}}\n")  # ctc has no teachers, pate has
    declare("toy", "ctc", [], tmp_path, tmp_path)
    (home / "corpus.yaml").write_text(f"{shared}, {options}}}\n")
    with pytest.raises(ConfigError, match=way_out):
        declare("toy", "ctc", [], tmp_path, tmp_path)


def test_a_corpus_of_files_needs_no_folder(tmp_path: Path) -> None:
    words = ["--train", "a.jsonl.gz", "--test=b.jsonl.gz"]
    corpus = find_corpus("data:mine", ROOT, tmp_path, words)
    assert (corpus.home, corpus.people) == (ROOT / "egs/user/mine", "mine")
    assert "corpus_dir" not in corpus.options and corpus.source is None
    with pytest.raises(ConfigError, match="name files: data:mine RECIPE --train FILE"):
        find_corpus("data:mine", tmp_path, tmp_path)
    with pytest.raises(ConfigError, match="expected --train beside --dev --test, found none"):
        find_corpus("data:mine", tmp_path, tmp_path, ["--test", "b", "--dev=c"])
    with pytest.raises(ConfigError):
        find_corpus("data:no/folder", ROOT, tmp_path, words)
    made = declare("data:mine", "ctc", [*words, "--adapt", "c d"], ROOT, tmp_path)
    argv = " ".join(made.stages[0].tasks[0].argv)
    assert f"--raw-train {tmp_path}/a.jsonl.gz" in argv and "name=mine" in argv
    assert f"--raw-adapt {tmp_path}/c {tmp_path}/d" in argv and "--raw-corpus" not in argv
    (tmp_path / "egs/user/mine/.stages").mkdir(parents=True)  # later, as for report
    assert find_corpus("data:mine", tmp_path, tmp_path).people == "mine"


@pytest.mark.parametrize("words", [["--work-dir", "work"], ["--nj=2", "--work-dir=work"]])
def test_a_corpus_of_files_is_known_by_its_work_folder(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(ConfigError, match="name files: data:mine"):
        find_corpus("data:mine", tmp_path, tmp_path, words)
    (tmp_path / "work/.stages").mkdir(parents=True)
    assert find_corpus("data:mine", tmp_path, tmp_path, words).people == "mine"


def test_a_switch_of_a_corpus_has_two_values(tmp_path: Path) -> None:
    words = ["--train", "a", "--allow-pipes"]
    for value in ("true", "false"):
        made = declare("data:mine", "ctc", [*words, value], ROOT, tmp_path)
        assert f"allow_pipes={value}" in made.stages[0].tasks[0].argv
    with pytest.raises(ConfigError, match="expected one of true, false, found 'yes'"):
        declare("data:mine", "ctc", [*words, "yes"], ROOT, tmp_path)
    plain = declare("data:mine", "ctc", words[:2], ROOT, tmp_path)
    assert "allow_pipes" not in " ".join(plain.stages[0].tasks[0].argv)


def test_an_option_of_a_corpus_that_is_not_given_hides_no_setting(tmp_path: Path) -> None:
    """--corpus-options users=79 made 49 users: --users, which was not given, came after it."""
    both = (["--users", "7"], ["--corpus-options", "users=7 written=0"])
    for words in both:
        made = declare("mini", "ctc", words, ROOT, tmp_path)
        assert "users=7" in made.stages[0].tasks[0].argv
    with pytest.raises(ConfigError, match="--users: expected a setting given once, found users=7"):
        declare("mini", "ctc", [*both[0], *both[1]], ROOT, tmp_path)


def test_a_recipe_of_lhotse(tmp_path: Path) -> None:
    words = ["--corpus-dir", "d", "--corpus-options", "train=a,b test=c"]
    made = declare("lhotse:yesno", "ctc", words, ROOT, tmp_path)
    assert made.corpus.people == "yesno" and made.work_dir == ROOT / "egs/user/lhotse_yesno"
    argv = " ".join(made.stages[0].tasks[0].argv)
    assert "corpora/lhotse_recipe.py" in argv and f"--raw-corpus {tmp_path}/d" in argv
    assert "recipe=yesno name=yesno train=a,b test=c" in argv


@pytest.mark.parametrize(
    "name",
    ["lhotse:", "lhotse:../x", "nono", "../egs/mini", "", "data:", "data:nowhere", "nowhere.py"],
)
def test_there_is_no_such_corpus(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        find_corpus(name, ROOT, tmp_path)
