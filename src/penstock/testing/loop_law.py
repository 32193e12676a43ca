"""The law "nothing blocks the event loop", as the test disks hold it.

Whoever syncs, reads what is not in memory, asks a database on the disk, or takes a lock that is held during a sync says so to
`waits`. On the thread of a running event loop that breaks the law, and raises LoopBlocked; it is also kept, since who catches
every exception would hide it. In a thread of a pool, and where no loop runs, everybody may wait.
"""

import sys
from asyncio import events
from types import FrameType
from typing import Final

EXCEPTIONS: Final = {
    "BrokerServer._open_data": "start: nobody is served yet",
    "open_store": "start: nobody is served yet",
    "BrokerServer.open": "start: nobody is served yet",
    "BrokerServer._be_alone": "start: nobody is served yet",
    "BrokerServer._join_others": "start: the logs are opened before the broker is registered",
    "HeldPartitions.close": "clean stop: nobody is served any more",
    "LogDirectory._forget": "a topic is deleted, or made under the name of a deleted one: until its old offsets are off the "
    "device a crash would give them to the new log. A few syncs for all partitions of a topic in a directory",
    "CleanerOffsets.lower": "a log is opened shorter than its checkpoint says; at a start, or when a replica comes",
    "OffsetCheckpoints.forget_recovery_point": "as for CleanerOffsets.lower",
    "HeldPartitions.replace_log": "a move between log directories ends: the copy must last before the original goes",
    "FutureLog.finish": "a move between log directories ends: the last bytes, while nothing may be appended",
    "Run._judge": "the simulation itself looks at the logs",
}
"""By the name of the function: why it may wait on the loop all the same."""

broken: Final[list[str]] = []
"""What broke the law since somebody last looked."""


class LoopBlocked(AssertionError):
    """Something on the event loop's thread would have waited for a device."""


def waits(kind: str, path: str) -> None:
    loop = events._get_running_loop()
    if loop is None or getattr(loop, "is_in_thread", False):
        return
    names = _names_of_callers(sys._getframe(1))
    if EXCEPTIONS.keys().isdisjoint(names):
        text = f"{kind} of {path} on the event loop: {' < '.join(names[:12])}"
        broken.append(text)
        raise LoopBlocked(text)


def _names_of_callers(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names
