"""Runs one program: started by its path, with a pipe in and a pipe out. Each message is a length of four bytes and a pickle.

    first   (kind, name, parameters, source)   →  ("ok", None) | ("failed", why)
    then    (function, arguments)              →  ("ok", value) | ("failed", why)     "": only whether it is there

What the program prints goes nowhere. It ends when the pipe does.
"""

import os
import pickle
import struct
import sys
import textwrap
import threading
import time
from typing import Any

LENGTH = struct.Struct(">I")
MAX_WHY = 1000
PARENT_CHECK_S = 1.0


def loaded(kind: str, name: str, parameters: tuple[str, ...], source: str) -> dict[str, Any]:
    """The functions of a program by what they are called here: a function of one value is `call`."""
    source = textwrap.dedent(source).strip("\n")
    names: dict[str, Any] = {"__name__": name.lower()}
    if kind != "AGGREGATE":
        try:
            code = compile(f"lambda {', '.join(parameters)}: (\n{source}\n)", f"<{name}>", "eval")
        except SyntaxError:
            pass
        else:
            return {"call": eval(code, names)}
    exec(compile(source, f"<{name}>", "exec"), names)
    if kind != "AGGREGATE":
        return {"call": names.get(name.lower()) or names[name]}
    return {each: names[each] for each in ("initial", "add", "remove", "merge", "result") if each in names}


def told(error: BaseException) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<"):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" (line {line})" if line is not None else ""
    return f"{type(error).__name__}: {error}{where}"[:MAX_WHY]


def plain(value: Any) -> Any:
    """Of a function that yields its rows, the list of them."""
    return value if value is None or isinstance(value, (list, tuple)) else list(value)


def end_with(parent: int) -> None:
    """Also while the program is in a loop: who has lost its parent is nobody's any more."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os._exit(0)


def main() -> None:
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    given, answered = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    with open(given, "rb") as requests, open(answered, "wb") as answers:

        def send(answer: tuple[str, Any]) -> None:
            try:
                data = pickle.dumps(answer)
            except Exception as error:
                data = pickle.dumps(("failed", told(error)))
            answers.write(LENGTH.pack(len(data)) + data)
            answers.flush()

        def receive() -> Any:
            head = requests.read(LENGTH.size)
            return pickle.loads(requests.read(LENGTH.unpack(head)[0])) if len(head) == LENGTH.size else None

        try:
            kind, *about = receive()
            functions = loaded(kind, *about)
        except BaseException as error:
            send(("failed", told(error)))
            return
        send(("ok", None))
        while (request := receive()) is not None:
            function, arguments = request
            try:
                value = functions[function](*arguments) if function else None
                answer = "ok", plain(value) if kind == "TABLE" else value
            except BaseException as error:
                answer = "failed", told(error)
            send(answer)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
