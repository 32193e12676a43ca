"""The process that compacts: `python -m penstock.storage.compaction.worker`, a task per line until its stdin ends.

It is started by the broker and ends with it. `--warm-up` only compiles the walks and keeps the result on disk, which
takes some seconds once per installation.
"""

import os
import sys
import tempfile
import time

from penstock.runtime.files import OsDisk
from penstock.storage import names
from penstock.storage.compaction.task import (
    CleanedSegment,
    CleaningTask,
    Failed,
    Message,
    decode_task,
    encode_message,
)

_PROGRESS_SECONDS = 0.2
_NICENESS = (
    19  # with 5, a reader of old data got half as much while compaction ran, and p99 was twice as high
)
_LONGEST_NAP_SECONDS = 0.5


class BrokerGone(Exception):
    """Nobody waits for the work any more, and another broker may have the directory already."""


class Conversation:
    """With the broker, about one task."""

    def __init__(self, task: CleaningTask, parent: int) -> None:
        self._task = task
        self._parent = parent
        self._last_report = 0.0
        self._allowance_at = (
            time.monotonic()
        )  # when the bytes so far would have been done at the permitted rate

    def run(self) -> None:
        from penstock.storage.compaction.clean import Cleaning
        from penstock.storage.compaction.source import CorruptSegment

        try:
            cleaning = Cleaning(OsDisk(), self._task, report=self._report, throttle=self._throttle)
            send(cleaning.run())
        except CorruptSegment as error:
            self._fail(str(error), corrupt=True)
        except (OSError, MemoryError) as error:
            self._fail(str(error) or type(error).__name__, corrupt=False)

    def _report(self, message: float | CleanedSegment) -> None:
        if os.getppid() != self._parent:
            raise BrokerGone
        if isinstance(message, CleanedSegment):
            self._keep_modification_time(message)
            send(message)
        elif time.monotonic() - self._last_report >= _PROGRESS_SECONDS:
            self._last_report = time.monotonic()
            send(message)

    def _keep_modification_time(self, cleaned: CleanedSegment) -> None:
        """Tools and operators tell the age of a segment by it."""
        path = names.segment_path(self._task.directory, cleaned.replaced[-1], names.LOG_SUFFIX)
        modified = os.stat(path).st_mtime_ns
        path = names.segment_path(
            self._task.directory, cleaned.base_offset, names.LOG_SUFFIX + names.CLEANED_SUFFIX
        )
        os.utime(path, ns=(modified, modified))

    def _throttle(self, size: int) -> None:
        now = time.monotonic()
        self._allowance_at = max(self._allowance_at, now - 1.0) + size / self._task.max_bytes_per_second
        while self._allowance_at > now:
            time.sleep(min(self._allowance_at - now, _LONGEST_NAP_SECONDS))
            if os.getppid() != self._parent:
                raise BrokerGone
            now = time.monotonic()

    def _fail(self, reason: str, *, corrupt: bool) -> None:
        for name, _ in (
            OsDisk().list_files(self._task.directory) if os.path.isdir(self._task.directory) else ()
        ):
            if name.endswith(names.CLEANED_SUFFIX):
                OsDisk().delete(f"{self._task.directory}/{name}")
        send(Failed(reason, corrupt))


def send(message: Message) -> None:
    sys.stdout.buffer.write(encode_message(message))
    sys.stdout.buffer.flush()


def choose_cache() -> None:
    """Compiled walks are kept beside this package, or in the user's cache where that is read-only."""
    if "NUMBA_CACHE_DIR" in os.environ or os.access(os.path.dirname(__file__), os.W_OK):
        return
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    directory = os.path.join(cache, "penstock")
    try:
        os.makedirs(directory, exist_ok=True)
        writable = os.access(directory, os.W_OK)
    except OSError:
        writable = False
    # Without a place of our own every worker compiles again: a shared one could hand us somebody else's code.
    os.environ["NUMBA_CACHE_DIR"] = directory if writable else tempfile.mkdtemp(prefix="penstock-compaction-")


def main(arguments: list[str]) -> int:
    parent = os.getppid()
    choose_cache()
    if arguments == ["--warm-up"]:
        from penstock.storage.compaction import filter_kernels, map_kernels  # noqa: F401

        return 0
    os.nice(_NICENESS)
    # Whoever else wants the core has it at once, not when a slice of ours has ended.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        for line in sys.stdin.buffer:
            Conversation(decode_task(line), parent).run()
    except (BrokerGone, BrokenPipeError, KeyboardInterrupt):
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
