r"""Java's .properties format, as server.properties and --command-config files are written.

    # a comment, as is a line that starts with !
    log.dirs = /data/a,\
               /data/b
    key: value        key value        empty.value

A backslash at a line's end joins the next line, whose leading blanks are dropped. Elsewhere it escapes: \t \n
\r \f, \uXXXX, and any other character for itself (so `\=` puts an equals sign into a name).
"""

from collections.abc import Iterator

from penstock.config.option import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Names and values in order of first appearance; a repeated name keeps its last value, as in Java.

    ConfigError with the line's number for what Java refuses (a bad \\u escape) and for a line without a name.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line)
        if not name:
            raise ConfigError(f"line {number}: a value without a name: {line}")
        found[_unescape(name, number)] = _unescape(value, number)
    return found


def repeated_names(text: str) -> list[str]:
    """Those that a text of properties sets to different values: only the last counts."""
    values: dict[str, set[str]] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line)
        values.setdefault(_unescape(name, number), set()).add(_unescape(value, number))
    return [name for name, found in values.items() if len(found) > 1]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line that says something, its continuations joined, with the number of its first line."""
    first_number, joined = 0, ""
    continuing = False
    # Not splitlines(): that also breaks at form feeds and at Unicode's separators.
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANKS)
        if not continuing or not joined:
            # A comment cannot be continued, and cannot interrupt a line that has begun.
            if not line or line[0] in "#!":
                continue
            first_number, joined = number, ""
        continuing = _ends_in_open_backslash(line)
        joined += line[:-1] if continuing else line
        if not continuing:
            yield first_number, joined
    if continuing and joined:
        yield first_number, joined


def _ends_in_open_backslash(line: str) -> bool:
    """An even number of backslashes at the end are escapes of one another."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """The name ends at the first blank, `=` or `:` not escaped; one `=` or `:` with its blanks is dropped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str, line_number: int) -> str:
    if "\\" not in text:
        return text
    parts = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            parts.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            position += 4
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ConfigError(f"line {line_number}: malformed \\uxxxx encoding: \\u{digits}")
            parts.append(chr(int(digits, 16)))
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    # \ud83d\ude00: Java's strings are UTF-16, so a pair of escapes may make one character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
