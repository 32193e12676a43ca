"""One task as a process of this machine: `launching.ProcessLauncher` starts it and writes what it runs to its input."""

from __future__ import annotations

import pickle
import signal
import sys


def main() -> None:
    task, attempt = (int(word) for word in sys.argv[1:3])
    # Ctrl-C goes to the whole terminal; the driver decides what its tasks do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Only the parent process writes there. The path comes first: what follows names modules of the program.
    sys.path[:] = pickle.load(sys.stdin.buffer)
    program = pickle.load(sys.stdin.buffer)
    program.run(task, attempt=attempt, owns_process=True)


if __name__ == "__main__":
    main()
