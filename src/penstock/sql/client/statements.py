"""Where a statement ends, in what was typed."""

from __future__ import annotations


def is_complete(text: str) -> bool:
    """Whether it ends with a semicolon, outside quotes and comments."""
    quote, at, last = "", 0, ""
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'`\"":
            quote = char
        elif text.startswith("$$", at):  # a program
            end = text.find("$$", at + 2)
            if end < 0:
                return False
            at, last = end + 2, "$"
            continue
        elif text.startswith("--", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                return False
            at = end + 2
            continue
        if not char.isspace():
            last = char
        at += 1
    return not quote and last == ";"
