"""Which class a name is of."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from penstock.connect import InvalidConfig
from penstock.connect.connectors.file import FileSink, FileSource
from penstock.connect.plugin_table import TABLE
from penstock.connect.plugins import Plugins, loaded, split_path

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "FileStreamSourceConnector",
        "FileStreamSource",
        "penstock.connect.connectors.file.FileSource",
        "FileSource",
    ],
)
def test_a_connector_goes_by_kafkas_names_and_by_ours(name: str) -> None:
    assert Plugins().load(name, "source", "sink") is FileSource


def test_a_name_counts_for_its_kind() -> None:
    plugins = Plugins()
    assert plugins.find("FileStreamSink", "source") is None
    assert plugins.load("FileStreamSink", "sink") is FileSink
    assert plugins.find(JSON, "converter") is not None
    assert plugins.find(JSON, "header_converter") is not None
    with pytest.raises(InvalidConfig, match="Class nope could not be found"):
        plugins.load("nope")


def test_sides_of_a_transform_need_the_whole_name() -> None:
    plugins = Plugins()
    assert plugins.find("org.apache.kafka.connect.transforms.Cast$Value", "transformation") is not None
    assert plugins.find("Value", "transformation") is None


def test_all_rows_of_the_table_can_be_loaded() -> None:
    plugins = Plugins()
    assert len(plugins.all()) >= len(TABLE)
    for name, kind, where, *_ in TABLE:
        plugin = plugins.find(name, kind)
        assert plugin is not None
        assert importlib.util.find_spec(where.partition(":")[0]) is not None, where
        if where.startswith("penstock.connect.connectors.") and not where.endswith(
            (":FileSource", ":FileSink")
        ):
            continue  # they may need packages that are not here
        found = loaded(plugin)
        assert name in (*found.java_names, f"{found.__module__}.{found.__qualname__}"), name


PLUGIN = """
from penstock.connect import SinkConnector, SinkTask, Transformation
from {module}.inner import VERSION

class Task(SinkTask):
    pass

class Mine(SinkConnector):
    version = VERSION
    task_class = Task
    java_names = ("com.example.MineSinkConnector",)

class _Hidden(SinkConnector):
    pass

class Twice(Transformation):
    pass
"""


def test_folders_of_plugin_path_are_looked_through(tmp_path: Path) -> None:
    package = tmp_path / "a_plugin_of_tests"
    package.mkdir()
    (package / "__init__.py").write_text(PLUGIN.format(module=package.name))
    (package / "inner.py").write_text("VERSION = '7'\n")
    (tmp_path / "broken.py").write_text("1/0\n")
    (tmp_path / "notes.txt").write_text("")
    plugins = Plugins([str(tmp_path), str(tmp_path / "missing")])
    found = plugins.find("MineSink", "sink")
    assert found is not None
    assert (found.name, found.version) == ("a_plugin_of_tests.Mine", "7")
    assert plugins.find("Twice", "transformation") is not None
    assert plugins.find("_Hidden") is None
    again = Plugins([str(tmp_path)]).find("Mine")
    assert again is not None
    assert loaded(again) is loaded(found), "a class is the same for all"


def test_plugin_path_is_a_list_of_folders() -> None:
    assert split_path(" /a, /b ,") == ("/a", "/b")
    assert split_path(None) == ()


def test_what_is_excluded_is_nobodys() -> None:
    plugins = Plugins(excluded=["python", "FileStreamSource", "JsonConverter"])
    for name in ("python", "penstock.connect.transforms.python.PythonTransform", "PythonTransform",
                 "org.apache.kafka.connect.file.FileStreamSourceConnector", "FileStreamSource"):  # fmt: skip
        assert plugins.find(name) is None
    assert {one.kind for one in plugins.all() if one.name.endswith("JsonConverter")} == set()
    assert plugins.find("FileStreamSink") is not None
    assert plugins.unknown_excluded == []
    assert Plugins(excluded=["FileSteamSource"]).unknown_excluded == ["FileSteamSource"]
