"""A release spends once, draws under a key that dies with it, and is refused beyond the budget."""

from __future__ import annotations

import dataclasses
import hashlib
import stat

import numpy as np
import pytest

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.privacy import events, release
from privasr_k2.privacy.ledger import Ledger
from tests.support.made_spending import COUNTS
from tests.support.releases import begin, enter, refuse, spent

OTHER_EVENT = dataclasses.replace(COUNTS, event=events.pure(0.9))


@pytest.fixture
def ledger(tmp_path):
    """Where the ledger goes; nothing is there yet."""
    return tmp_path / "privacy" / "ledger.json"


def noise(made):
    """Some noise of a release."""
    return made.stream("noise", 0).uniform(5).tolist()


def keys(ledger):
    """What lies beside the ledger."""
    return list((ledger.parent / "ledger.json.keys").iterdir())


def test_first_time(ledger, tmp_path):
    with begin(ledger, tmp_path / "exp") as made:
        assert not made.is_continued and not made.is_finished
        assert np.isfinite(noise(made)).all()
    assert spent(ledger) == 1
    assert Ledger(tmp_path / "exp" / "privacy.json").entries()[0] == made.entry


def test_a_continued_release_draws_the_same_and_spends_nothing(ledger, tmp_path):
    with begin(ledger, tmp_path / "exp") as first:
        before = noise(first)
    with begin(ledger, tmp_path / "exp") as second:
        assert second.is_continued and not second.is_finished
        assert noise(second) == before
        assert second.stream("noise", 1).uniform(5).tolist() != before
    assert spent(ledger) == 1


def test_a_finished_release_draws_nothing(ledger, tmp_path):
    enter(ledger, tmp_path / "exp", finish=True)
    with begin(ledger, tmp_path / "exp") as second:
        assert second.is_finished
        with pytest.raises(PrivacyError, match="--force true"):
            second.stream("noise", 0)
    assert spent(ledger) == 1


@pytest.mark.parametrize("changes", [{"fingerprint": "b" * 64}, {"spending": OTHER_EVENT}])
def test_other_data_or_configuration_spend_again_with_other_noise(ledger, tmp_path, changes):
    with begin(ledger, tmp_path / "exp") as first:
        before = noise(first)
    with begin(ledger, tmp_path / "exp", **changes) as second:
        assert not second.is_continued
        assert noise(second) != before
    assert spent(ledger) == 2


def test_nobody_without_the_key_can_test_a_guess_at_the_inputs(ledger, tmp_path):
    guess = "a" * 64
    made = enter(ledger, tmp_path / "exp", fingerprint=guess)
    elsewhere = enter(tmp_path / "other" / "ledger.json", tmp_path / "other", fingerprint=guess)
    assert len({guess, made.entry.fingerprint, elsewhere.entry.fingerprint}) == 3
    assert guess not in ledger.read_text()
    assert hashlib.sha256(guess.encode()).hexdigest() not in ledger.read_text()


def test_the_same_again_elsewhere_is_a_second_release(ledger, tmp_path):
    # As with --force and a deleted exp/: nothing beside, so nothing to continue.
    with begin(ledger, tmp_path / "one") as first, begin(ledger, tmp_path / "two") as second:
        assert noise(first) != noise(second)
    assert spent(ledger) == 2


@pytest.fixture
def killed_before_the_ledger(ledger, tmp_path, monkeypatch):
    """A release in ``exp`` that stands in the copy alone."""
    real, calls = Ledger.append, []

    def append(self, entry):
        calls.append(self.path.name)
        if self.path == ledger:
            raise KeyboardInterrupt
        real(self, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", append)
        with pytest.raises(KeyboardInterrupt), begin(ledger, tmp_path / "exp"):
            raise AssertionError("noise may not be drawn before the ledger is written")
    assert calls == ["privacy.json", "ledger.json"] and spent(ledger) == 0


def test_a_release_killed_before_the_ledger_is_continued(
    ledger, tmp_path, killed_before_the_ledger
):
    with begin(ledger, tmp_path / "exp") as made:
        assert made.is_continued and np.isfinite(noise(made)).all()
    assert spent(ledger) == 1


def test_a_release_killed_before_the_ledger_is_entered_with_the_next(
    ledger, tmp_path, killed_before_the_ledger
):
    enter(ledger, tmp_path / "exp", fingerprint="b" * 64)
    assert spent(ledger) == 2


def test_killed_between_seal_and_ledger(ledger, tmp_path):
    enter(ledger, tmp_path / "exp")
    for path in [ledger, *keys(ledger)]:
        if path.name != "seal":
            path.unlink()
    enter(ledger, tmp_path / "other")
    assert spent(ledger) == 1


@pytest.mark.parametrize(
    ("finish", "lost"), [(False, "ledger.json"), (True, "ledger.json.keys/seal")]
)
def test_a_removed_ledger_or_seal_is_noticed(ledger, tmp_path, finish, lost):
    enter(ledger, tmp_path / "exp", finish=finish)
    (ledger.parent / lost).unlink()
    refuse("what was spent is not known", ledger, tmp_path / "other")


def test_an_older_ledger_put_back_is_noticed(ledger, tmp_path):
    enter(ledger, tmp_path / "one", finish=True)
    old = ledger.read_bytes()
    enter(ledger, tmp_path / "two", finish=True)
    ledger.write_bytes(old)
    refuse("--ledger FILE", ledger, tmp_path / "two")


def test_a_damaged_ledger_stops_before_anything_is_spent(ledger, tmp_path):
    enter(ledger, tmp_path / "exp")
    ledger.write_text(ledger.read_text()[:-40])
    refuse("whole ledger", ledger, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_keys_are_for_the_owner_alone_and_in_no_ledger(ledger, tmp_path):
    with begin(ledger, tmp_path / "exp") as made:
        paths = keys(ledger)
        names = {path.name.split(".")[0] for path in paths}
        assert len(paths) == 2 and names == {"seal", made.entry.release}
        books = ledger.read_bytes(), (tmp_path / "exp" / "privacy.json").read_bytes()
        for path in paths:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            key = path.read_bytes()
            assert not any(key in text or key.hex().encode() in text for text in books)
        made.finish()
        assert [path.name for path in keys(ledger)] == ["seal"]


def test_fingerprint_follows_content_and_configuration_not_names(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Config:
        lr: float

    for name, text in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).write_text(text)

    def of(name, lr=0.1):
        return release.fingerprint_of(Config(lr), [tmp_path / name])

    assert of("a") == of("b") != of("c")
    assert of("a") != of("a", lr=0.2)
    with pytest.raises(DataError):
        of("nothing")


def test_noise_of_one_name_is_drawn_once(ledger, tmp_path):
    with begin(ledger, tmp_path / "exp") as made:
        drawn = made.noise(0, "counts").uniform(3).tolist()
        assert made.noise(1, "counts").uniform(3).tolist() != drawn
        with pytest.raises(PrivacyError, match="a second time"):
            made.noise(0, "counts")
    with begin(ledger, tmp_path / "exp") as again:  # a killed round draws the same
        assert again.noise(0, "counts").uniform(3).tolist() == drawn


def test_the_key_of_a_release_that_was_given_up_is_destroyed(ledger, tmp_path):
    first = enter(ledger, tmp_path / "exp")
    (tmp_path / "exp" / "privacy.json").unlink()  # as the stage runner clears what was given up
    elsewhere = enter(ledger, tmp_path / "elsewhere")
    second = enter(ledger, tmp_path / "exp", fingerprint="b" * 64)
    names = {path.name.split(".")[0] for path in keys(ledger)}
    assert names == {"seal", elsewhere.entry.release, second.entry.release}
    assert first.entry.release not in names


def test_a_ledger_and_its_tree_can_be_moved_together(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    with begin(old / "privacy" / "ledger.json", old / "exp") as made:
        before = noise(made)
    old.rename(new)
    with begin(new / "privacy" / "ledger.json", new / "exp") as made:
        assert made.is_continued and noise(made) == before


def test_a_link_means_the_ledger_that_it_leads_to(ledger, tmp_path):
    enter(ledger, tmp_path / "one", finish=True)
    link = tmp_path / "link.json"
    link.symlink_to(ledger)
    enter(link, tmp_path / "two", finish=True)
    assert link.is_symlink() and spent(ledger) == 2


def test_two_processes_cannot_make_one_release(ledger, tmp_path):
    with begin(ledger, tmp_path / "exp") as first:
        refuse("one process that makes it", ledger, tmp_path / "exp")
        before = noise(first)
    with begin(ledger, tmp_path / "exp") as second:  # the first was killed before it ended
        assert noise(second) == before
        second.finish()
    with begin(ledger, tmp_path / "exp") as third, begin(ledger, tmp_path / "exp") as fourth:
        assert third.is_finished and fourth.is_finished  # they draw nothing
    assert spent(ledger) == 1


@pytest.fixture
def earlier(monkeypatch):
    """What 075ac45 wrote: fingerprints without a scheme."""
    with monkeypatch.context() as patch:
        patch.setattr(release, "SCHEME", "")
        yield patch


@pytest.mark.parametrize("finished", [True, False])
def test_a_release_of_an_earlier_version_is_read(ledger, tmp_path, earlier, finished):
    with begin(ledger, tmp_path / "exp") as first:
        before = noise(first)
        if finished:
            first.finish()
    earlier.undo()
    with begin(ledger, tmp_path / "exp") as second:
        assert second.entry == first.entry
        assert second.is_continued and second.is_finished == finished
        assert finished or noise(second) == before
    assert spent(ledger) == 1


def test_a_release_of_an_earlier_version_is_refused_by_name(ledger, tmp_path, earlier):
    first = enter(ledger, tmp_path / "exp", finish=True)
    earlier.undo()
    refuse(first.entry.release, ledger, tmp_path / "exp", fingerprint="b" * 64)
    # Where something else is spent it is another release; and so it is in another place.
    enter(ledger, tmp_path / "exp", spending=OTHER_EVENT)
    enter(ledger, tmp_path / "new")
    assert spent(ledger) == 3


def test_fingerprints_of_releases_are_those_of_earlier_versions(tmp_path):
    """Hash by 075ac45; another one would make finished releases again."""
    (tmp_path / "folder").mkdir()
    for name in ("votes", "folder/a", "folder/.hidden"):
        (tmp_path / name).write_text("content")

    @dataclasses.dataclass(frozen=True)
    class Inner:
        rate: float
        names: list[str]

    @dataclasses.dataclass(frozen=True)
    class Config:
        mechanism: str
        inner: Inner
        limit: float | None

    config = Config("gnmax", Inner(0.5, ["a", "b"]), None)
    found = release.fingerprint_of(config, [tmp_path / "votes", tmp_path / "folder"])
    assert found == "edc163879eadbd91e02a5d2b289f22c477f75f9c89428b2c11a1bde15bbf6b59"
