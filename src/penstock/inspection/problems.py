"""What is wrong with a file, in words and as data."""

from typing import Any, NamedTuple

CUT_TAIL = "cut the tail"
REBUILD_INDEXES = "rebuild the indexes"
REBUILD_EPOCHS = "rebuild the leader epochs"
REMOVE = "remove it"
SET_ASIDE = "set it aside"
CORRECT_OFFSETS = "correct its offsets"


class Problem(NamedTuple):
    """What is wrong with one file, or worth a note, and where."""

    path: str
    cause: str
    position: int | None = None
    offset: int | None = None
    repair: str | None = None
    """What would mend it; None when nothing does without losing what is still good."""
    is_note: bool = False
    """Something to know, or a leftover; nothing is wrong."""

    def line(self, *, root: str) -> str:
        where = [self.path.removeprefix(root.rstrip("/") + "/")]
        if self.position is not None:
            where.append(f"byte {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        return f"{', '.join(where)}: {self.cause}"

    def as_json(self, *, root: str) -> dict[str, Any]:
        return {
            "file": self.path.removeprefix(root.rstrip("/") + "/"),
            "position": self.position,
            "offset": self.offset,
            "cause": self.cause,
            "repair": self.repair,
        }
