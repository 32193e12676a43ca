"""The driver's end: one listening socket for all jobs of the process, and what is known of their tasks."""

from __future__ import annotations

import itertools
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from penstock.spark.tasks.failures import NotAnswered
from penstock.spark.tasks.frames import Line, Message, is_proof
from penstock.spark.tasks.states import Phase, TaskView

log = logging.getLogger("penstock.spark.tasks")

BACKLOG: Final = 512
HELLO_TIMEOUT_S: Final = 10.0
HELLO_MAX_BYTES: Final = 4096  # of somebody who has not proved anything yet
ANSWER_MAX_BYTES: Final = 64 * 1024 * 1024
STRANGERS_MAX: Final = 256
LOOK_S: Final = 0.5
LAST_WORDS_S: Final = 1.0
LAST_WORDS_POLL_S: Final = 0.01


class TaskEntry:
    """What is known of one task of a job."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.line: Line | None = None
        self.forget()

    def forget(self) -> None:
        """Before the task is started anew."""
        self.phase: str = Phase.WAITING
        self.attempt = -1
        self.process_id = 0
        self.host = ""
        self.counters: dict[str, Any] = {}
        self.heard_s = time.monotonic()
        self.still_s = 0.0

    def view(self) -> TaskView:
        silent_s = time.monotonic() - self.heard_s
        return TaskView(
            self.index,
            self.phase,
            self.attempt,
            self.process_id,
            self.host,
            self.counters,
            round(silent_s, 3),
            self.still_s + silent_s,
        )


class Entry:
    """A job on the board. `on_change` is called, on the board's thread, when a task's phase has changed or it told an error."""

    def __init__(
        self,
        name: str,
        secret: str,
        tasks: int,
        on_change: Callable[[], None],
        on_message: Callable[[int, Message], None],
    ) -> None:
        self.name, self.secret = name, secret
        self.tasks = [TaskEntry(index) for index in range(tasks)]
        self.on_change, self.on_message = on_change, on_message
        self.is_paused = self.is_stopping = False


class _Stranger:
    def __init__(self, line: Line) -> None:
        self.line = line
        self.nonce = secrets.token_hex(16)
        self.since_s = time.monotonic()


class Board:
    def __init__(self, host: str = "127.0.0.1") -> None:
        """`host`: the address at which tasks find this process; only loopback is listened on where that is loopback."""
        self._listening = socket.create_server((host, 0), backlog=BACKLOG)
        self.address: tuple[str, int] = (host, self._listening.getsockname()[1])
        self._jobs: dict[str, Entry] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ, None)
        self._lock = threading.RLock()
        self._questions: dict[int, _Question] = {}
        self._numbers = itertools.count(1)
        self._strangers = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="penstock-board", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> None:
        self._jobs[entry.name] = entry

    def take(self, entry: Entry) -> None:
        """The job is over. Its tasks have said their last word, as far as they get to; those that are still there are to stop."""
        deadline_s = time.monotonic() + LAST_WORDS_S
        while any(task.line is not None for task in entry.tasks) and time.monotonic() < deadline_s:
            time.sleep(LAST_WORDS_POLL_S)
        self.send_all(entry, {"kind": "stop"})
        self._jobs.pop(entry.name, None)
        for task in entry.tasks:
            line = task.line
            if line is not None:
                line.hang_up()  # the board's thread closes it, and nobody else: numbers of sockets are used again

    def send_all(self, entry: Entry, message: Message) -> None:
        for task in entry.tasks:
            self._send(task.line, message)

    def ask(self, entry: Entry, task: int, name: str, data: Any, timeout_s: float) -> Any:
        question = _Question()
        number = next(self._numbers)
        self._questions[number] = question
        try:
            line = entry.tasks[task].line
            if line is None or not self._send(
                line, {"kind": "ask", "id": number, "name": name, "data": data}
            ):
                raise NotAnswered(f"task {task} is not there just now")
            if not question.is_answered.wait(timeout_s):
                raise NotAnswered(f"task {task} has not answered within {timeout_s:g} s")
            if question.error is not None:
                raise NotAnswered(question.error)
            return question.data
        finally:
            del self._questions[number]

    def close(self) -> None:
        self._is_closed = True
        self._thread.join(2 * LOOK_S + HELLO_TIMEOUT_S)
        with self._lock:
            for key in list(self._selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
            self._selector.close()

    def _send(self, line: Line | None, message: Message) -> bool:
        if line is None:
            return False
        try:
            line.send(message)
        except OSError:
            return False
        return True

    def _serve(self) -> None:
        while not self._is_closed:
            for key, _ in self._selector.select(LOOK_S):
                try:
                    if key.data is None:
                        self._accept()
                    else:
                        self._read(key.data, key.fileobj)
                except Exception:
                    log.exception("the control of tasks has a bug")
            self._drop_silent_strangers()

    def _accept(self) -> None:
        try:
            connected, _ = self._listening.accept()
        except OSError:
            return
        if self._strangers >= STRANGERS_MAX:
            connected.close()
            return
        stranger = _Stranger(Line(connected, HELLO_MAX_BYTES))
        if self._send(stranger.line, {"nonce": stranger.nonce}):
            self._strangers += 1
            self._selector.register(connected, selectors.EVENT_READ, stranger)
        else:
            stranger.line.close()

    def _read(self, who: _Stranger | tuple[Entry, TaskEntry, Line], where: Any) -> None:
        line = who.line if isinstance(who, _Stranger) else who[2]
        try:
            messages = line.receive()
        except TimeoutError:
            return
        except (EOFError, OSError, ValueError) as error:
            self._selector.unregister(where)
            line.close()
            if isinstance(who, _Stranger):
                self._strangers -= 1
            else:
                self._lose(*who, error)
            return
        for message in messages:
            if isinstance(who, _Stranger):
                known = self._greet(who, message)
                self._strangers -= 1
                if known is None:
                    self._selector.unregister(where)
                    line.close()
                    return
                who = known
                self._selector.modify(where, selectors.EVENT_READ, who)
            else:
                self._hear(who[0], who[1], message)

    def _greet(self, stranger: _Stranger, hello: Message) -> tuple[Entry, TaskEntry, Line] | None:
        entry = self._jobs.get(str(hello.get("job")))
        index, attempt = hello.get("task"), hello.get("attempt")
        if entry is None or not isinstance(index, int) or not isinstance(attempt, int):
            return None
        if not 0 <= index < len(entry.tasks) or not is_proof(
            hello.get("proof"), entry.secret, stranger.nonce, job=entry.name, task=index
        ):
            log.warning("somebody without the secret of %s wants to be one of its tasks", entry.name)
            return None
        task = entry.tasks[index]
        if attempt < task.attempt:
            return None  # a later one is there
        if task.line is not None:
            self._send(task.line, {"kind": "stop"})
        stranger.line.allow(ANSWER_MAX_BYTES)
        task.line, task.attempt = stranger.line, attempt
        task.process_id, task.host = int(hello.get("process_id", 0)), str(hello.get("host", ""))
        task.phase, task.heard_s, task.still_s = (
            str(hello.get("phase", Phase.STARTING)),
            time.monotonic(),
            0.0,
        )
        self._send(stranger.line, {"is_paused": entry.is_paused, "is_stopping": entry.is_stopping})
        entry.on_change()
        return entry, task, stranger.line

    def _hear(self, entry: Entry, task: TaskEntry, message: Message) -> None:
        kind = message.get("kind")
        if kind == "answer":
            question = self._questions.get(message.get("id", 0))
            if question is not None:
                question.settle(message.get("data"), message.get("error"))
            return
        if kind == "beat":
            task.heard_s = time.monotonic()
            task.still_s = float(message.get("still_s", 0.0))
            task.counters = message.get("counters") or task.counters
            phase = str(message.get("phase"))
            if phase != task.phase:
                task.phase = phase
                entry.on_change()
            return
        entry.on_message(task.index, message)

    def _lose(self, entry: Entry, task: TaskEntry, line: Line, error: Exception) -> None:
        if task.line is not line:
            return  # another attempt has its place
        task.line = None
        if task.phase != Phase.ENDED:
            if not isinstance(error, EOFError):
                log.info("task %d of %s is out of reach: %s", task.index, entry.name, error)
            task.phase = Phase.LOST
            entry.on_change()

    def _drop_silent_strangers(self) -> None:
        if not self._strangers:
            return
        for key in list(self._selector.get_map().values()):
            who = key.data
            if isinstance(who, _Stranger) and time.monotonic() - who.since_s > HELLO_TIMEOUT_S:
                self._selector.unregister(key.fileobj)
                self._strangers -= 1
                who.line.close()


class _Question:
    def __init__(self) -> None:
        self.is_answered = threading.Event()
        self.data: Any = None
        self.error: str | None = None

    def settle(self, data: Any, error: object) -> None:
        self.data, self.error = data, None if error is None else str(error)
        self.is_answered.set()


_boards: dict[str, Board] = {}
_boards_lock = threading.Lock()


def board_at(host: str) -> Board:
    """The one of this process for that address."""
    with _boards_lock:
        if host not in _boards:
            _boards[host] = Board(host)
        return _boards[host]
