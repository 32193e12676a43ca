import socket
from pathlib import Path
from typing import NamedTuple

from penstock.net.output import TURN_BYTES, Output
from penstock.runtime.files import OsDisk, OsFile


class Part(NamedTuple):
    file: OsFile
    position: int
    size_bytes: int


def test_a_reader_that_takes_all_at_once_does_not_keep_the_others_from_their_turn(
    tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * TURN_BYTES))
    taken: list[int] = []

    def take_all(target: int, source: int, position: int, size: int) -> int:
        taken.append(size)
        return size

    monkeypatch.setattr("os.sendfile", take_all)
    one, other = socket.socketpair()
    with one, other:
        output = Output(one)
        output.extend([Part(OsDisk().open(str(path)), 5, 2 * TURN_BYTES + 20_000)])
        turns = 1
        while not output.send():
            turns += 1
    assert (turns, sum(taken)) == (3, 2 * TURN_BYTES + 20_000)
    assert max(taken) <= TURN_BYTES
