"""Each new file in a folder becomes a record: the key is its name, the value its text.

Files are taken in the order of their names, each once. Whoever writes a file gives it its name when it is complete, and gives
later files later names.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.connect import ConnectError, Kind, Setting, Settings, SourceConnector, SourceRecord, SourceTask
from penstock.connect.data import STRING
from penstock.connect.settings import HIGH, LOW, at_least

SETTINGS = Settings(
    Setting("folder", Kind.STRING, "The folder to watch.", importance=HIGH),
    Setting("topic", Kind.STRING, "The topic that the files go to.", importance=HIGH),
    Setting(
        "batch.size",
        Kind.INT,
        "How many files are read at a time.",
        default=100,
        check=at_least(1),
        importance=LOW,
    ),
)


class FolderTask(SourceTask):
    settings = SETTINGS

    def start(self) -> None:
        self.folder = Path(self.values["folder"])
        self.partition = {"folder": str(self.folder)}
        kept = self.context.offset(self.partition)
        self.last = "" if kept is None else kept["last"]

    def poll(self) -> Sequence[SourceRecord] | None:
        new = sorted(path for path in self.folder.iterdir() if path.is_file() and path.name > self.last)
        if not new:
            self.context.wait(0.5)
            return None
        records = []
        for path in new[: self.values["batch.size"]]:
            self.last = path.name
            records.append(self.record(path))
        return records

    def record(self, path: Path) -> SourceRecord:
        return SourceRecord(
            self.partition,
            {"last": path.name},
            self.values["topic"],
            path.read_text(errors="replace"),
            key=path.name,
            key_schema=STRING,
            value_schema=STRING,
        )


class FolderSource(SourceConnector):
    version = "0.1.0"
    settings = SETTINGS
    task_class = FolderTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """What the table cannot say. Errors stand at the settings that they are about."""
        if not Path(given["folder"]).is_dir():
            return {"folder": [f"there is no folder {given['folder']}"]}
        return {}

    def start(self) -> None:
        if not Path(self.values["folder"]).is_dir():
            raise ConnectError(f"there is no folder {self.values['folder']} any more")

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.given)]  # one folder is one task's work

    def exactly_once_support(self, given: Mapping[str, str]) -> bool:
        return True  # what is behind an offset is read again exactly
