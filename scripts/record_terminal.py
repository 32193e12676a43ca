"""Runs a command in a terminal, and writes what it left on the screen as a picture.

    python scripts/record_terminal.py PICTURE TITLE -- COMMAND …

`docs/pictures/demo.svg` is a real run of the demo:

    python scripts/record_terminal.py docs/pictures/demo.svg 'make demo' -- python -m examples.demo
"""

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

WIDTH = 112
HEIGHT = 60
LAST_LINE = "All of this took"  # commands with addresses of this machine come after it
CONTROL = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)")
# Rich's picture loads a font from the network; ours is drawn with what the reader has.
WITHOUT_FONTS = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code, monospace", "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
)


def output_of(command: list[str]) -> str:
    """What the command writes to a terminal of its own."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", COLUMNS=str(WIDTH), LINES=str(HEIGHT))
        os.execvp(command[0], command)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # Linux' way to say that the other side is closed
            break
        if not part:
            break
        parts.append(part)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return b"".join(parts).decode()


def lines_left(output: str) -> list[str]:
    """The lines on the screen at the end. Bars that move go up (A) and wipe lines (K); colours (m) stay in the text."""
    lines, row = [""], 0
    for part in CONTROL.split(output):
        if part == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        elif part.startswith("\x1b[") and part[-1] == "A":
            row = max(0, row - int(part[2:-1] or 1))
        elif part.startswith("\x1b[") and part[-1] == "K":
            lines[row] = ""
        elif part and part != "\r" and not part.startswith("\x1b[?"):
            lines[row] += part
    return lines


def picture(lines: list[str], title: str) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text.from_ansi(line))
    svg = console.export_svg(title=title, code_format=WITHOUT_FONTS, unique_id="terminal")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> int:
    target, title, _, *command = sys.argv[1:]
    lines = lines_left(output_of(command))
    ends = [number for number, line in enumerate(lines) if LAST_LINE in line]
    lines = lines[: ends[0] + 1] if ends else lines
    Path(target).write_text(picture(lines, title), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
