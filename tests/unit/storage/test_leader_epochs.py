from pathlib import Path

import pytest

from penstock.runtime.files import OsDisk
from penstock.storage.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(disk: OsDisk, tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(disk, str(tmp_path / "leader-epoch-checkpoint"))
    for epoch, offset in ((0, 0), (2, 10), (5, 30)):
        epochs.assign(epoch, offset)
    return epochs


def reloaded(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    again = LeaderEpochs(OsDisk(), epochs.path)
    assert again.load()
    return again.entries


def test_the_file_has_kafkas_lines(epochs: LeaderEpochs) -> None:
    assert Path(epochs.path).read_text() == "0\n3\n0 0\n2 10\n5 30\n"
    assert reloaded(epochs) == epochs.entries


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(0, (0, 10)), (1, (0, 10)), (2, (2, 30)), (4, (2, 30)), (5, (5, 99)), (6, (-1, -1)), (-1, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_known_one_begins(
    epochs: LeaderEpochs, epoch: int, answer: tuple[int, int]
) -> None:
    assert epochs.end_offset_for(epoch, 99) == answer


def test_an_epoch_below_all_known_ones_ends_where_the_first_begins(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_start(20)
    assert epochs.entries == [(2, 20), (5, 30)]
    assert epochs.end_offset_for(1, 99) == (1, 20)


def test_a_new_epoch_drops_entries_that_contradict_it(epochs: LeaderEpochs) -> None:
    epochs.assign(6, 30)
    assert epochs.entries == [(0, 0), (2, 10), (6, 30)]
    epochs.assign(1, 50)
    assert reloaded(epochs) == [(0, 0), (1, 50)]


def test_truncation_at_the_end_drops_epochs_that_begin_there(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_end(30)
    assert reloaded(epochs) == [(0, 0), (2, 10)]
    assert epochs.latest == 2


@pytest.mark.parametrize("offset", [0, 10, 30])
def test_truncation_at_the_start_keeps_an_epoch_that_begins_there(epochs: LeaderEpochs, offset: int) -> None:
    epochs.truncate_from_start(offset)
    assert epochs.entries[0][1] == offset


@pytest.mark.parametrize("content", ["", "1\n0\n", "0\n2\n0 0\n", "0\n1\nzero 0\n", "0\nx\n", "0"])
def test_a_damaged_file_is_no_epochs(disk: OsDisk, tmp_path: Path, content: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(content)
    epochs = LeaderEpochs(disk, str(path))
    assert not epochs.load()
    assert epochs.latest == -1


def test_the_epoch_of_an_offset_is_the_last_that_began_at_or_below_it(epochs: LeaderEpochs) -> None:
    assert [epochs.epoch_at(offset) for offset in (0, 9, 10, 99)] == [0, 0, 2, 5]
