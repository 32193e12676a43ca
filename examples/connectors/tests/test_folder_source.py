from pathlib import Path

import pytest
from example_connectors.folder_source import FolderSource

from penstock.connect import ConnectError
from penstock.connect.testing import SourceTest, mistakes_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "inbox"
    found.mkdir()
    return found


def test_the_configuration_is_checked(folder: Path) -> None:
    assert mistakes_in(FolderSource, {"folder": str(folder), "topic": "files"}) == {}
    missing = mistakes_in(FolderSource, {"folder": str(folder / "not there"), "topic": "files"})
    assert missing == {"folder": [f"there is no folder {folder}/not there"]}
    assert mistakes_in(FolderSource, {"folder": str(folder)}).keys() == {"topic"}


def test_each_file_comes_once_also_after_a_restart(folder: Path) -> None:
    for name in ("1.txt", "2.txt", "3.txt"):
        (folder / name).write_text(f"the text of {name}")
    with SourceTest(FolderSource, {"folder": str(folder), "topic": "files", "batch.size": "2"}) as test:
        assert [(record.key, record.value) for record in test.poll()] == [
            ("1.txt", "the text of 1.txt"),
            ("2.txt", "the text of 2.txt"),
        ]
        test.restart()
        assert [record.key for record in test.poll()] == ["3.txt"]
        assert test.poll() == []
        (folder / "4.txt").write_text("")
        assert [record.key for record in test.poll()] == ["4.txt"]


def test_what_was_not_committed_comes_again_after_a_crash(folder: Path) -> None:
    (folder / "1.txt").touch()
    with SourceTest(FolderSource, {"folder": str(folder), "topic": "files"}) as test:
        test.poll()
        test.commit()
        (folder / "2.txt").touch()
        test.poll()
        test.crash()
        assert [record.key for record in test.poll()] == ["2.txt"]
        assert test.offset({"folder": str(folder)}) == {"last": "1.txt"}


def test_a_folder_that_is_gone_is_told(folder: Path) -> None:
    test = SourceTest(FolderSource, {"folder": str(folder), "topic": "files"})
    folder.rmdir()
    with pytest.raises(ConnectError, match="there is no folder"), test:
        pass
