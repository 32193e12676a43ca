import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.admin.dead_letters.reading import METADATA_MAX_CHARACTERS, Replayed
from penstock.client.errors import UserError


def kept(replayed: Replayed) -> Replayed:
    text = replayed.to_metadata()
    assert text is not None
    return Replayed.of_metadata(replayed.start_offset, text)


@given(st.sets(st.integers(0, 2000)), st.integers(0, 2000))
def test_what_is_kept_in_the_metadata_comes_back(offsets: set[int], start_offset: int) -> None:
    replayed = Replayed()
    for offset in offsets:
        replayed.add(offset)
    replayed.skip_to(start_offset)
    again = kept(replayed)
    for offset in range(2100):
        assert (offset in again) == (offset in offsets or offset < start_offset)


def test_the_start_moves_over_what_is_done() -> None:
    replayed = Replayed()
    for offset in (0, 1, 3):
        replayed.add(offset)
    replayed.skip_to(0)
    assert (replayed.start_offset, 2 in replayed, 3 in replayed) == (2, False, True)
    replayed.add(2)
    replayed.skip_to(0)
    assert (replayed.start_offset, replayed.to_metadata()) == (4, "")


def test_twenty_four_thousand_letters_fit_however_they_are_chosen() -> None:
    chance = random.Random(5)
    replayed = Replayed(0, chance.getrandbits(24_000) | 1 << 23_999)
    text = replayed.to_metadata()
    assert text is not None
    assert len(text) <= METADATA_MAX_CHARACTERS


def test_what_does_not_fit_is_said() -> None:
    assert Replayed(0, random.Random(5).getrandbits(50_000)).to_metadata() is None


def test_without_a_committed_offset_nothing_was_replayed() -> None:
    assert 0 not in Replayed.of_metadata(-1001, None)


def test_offsets_that_somebody_else_committed_count_without_their_metadata() -> None:
    replayed = Replayed.of_metadata(5, "from another tool")
    assert (4 in replayed, 5 in replayed) == (True, False)


def test_spoiled_metadata_is_told() -> None:
    with pytest.raises(UserError, match="not by this command"):
        Replayed.of_metadata(5, "replayed:%%%")
