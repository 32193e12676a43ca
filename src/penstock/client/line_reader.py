"""Lines into records, as Kafka's console producer reads them.

With headers and key a line is `h1:v1,h2:v2⇥key⇥value`; all separators can be changed. A field equal to the null marker is null.
"""

import re
from typing import NamedTuple

from penstock.client.errors import UserError

Headers = list[tuple[str, str | bytes | None]]


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers


class BadLine(Exception):
    """A line that does not have the parts it should have."""

    java_name = "org.apache.kafka.common.KafkaException"


class LineReader:
    def __init__(self, properties: dict[str, str]) -> None:
        self.parse_key = is_true(properties.get("parse.key"))
        self.parse_headers = is_true(properties.get("parse.headers"))
        self.ignore_error = is_true(properties.get("ignore.error"))
        self.key_separator = properties.get("key.separator", "\t")
        self.headers_delimiter = properties.get("headers.delimiter", "\t")
        self.headers_separator = properties.get("headers.separator", ",")
        self.headers_key_separator = properties.get("headers.key.separator", ":")
        self.null_marker = properties.get("null.marker")
        self.line_number = 0
        self._check()

    def _check(self) -> None:
        separators = {
            "headers.delimiter": self.headers_delimiter,
            "headers.separator": self.headers_separator,
            "headers.key.separator": self.headers_key_separator,
        }
        names = list(separators)
        for position, name in enumerate(names):
            for other in names[position + 1 :]:
                if separators[name] == separators[other]:
                    raise UserError(f"{name} and {other} may not be equal")
        for name, separator in {"key.separator": self.key_separator, **separators}.items():
            if separator == self.null_marker:
                raise UserError(f"null.marker and {name} may not be equal")
        try:
            self._headers_pattern = re.compile(self.headers_separator)
        except re.error:
            raise UserError(
                f"headers.separator is not a regular expression: {self.headers_separator}"
            ) from None

    def read(self, line: str) -> Record:
        self.line_number += 1
        start = 0
        headers: Headers = []
        if self.parse_headers:
            text = self._part(line, start, self.headers_delimiter, "headers delimiter")
            if text is not None:
                start += len(text) + len(self.headers_delimiter)
                if text != self.null_marker:
                    headers = self._headers(text)
        key = None
        if self.parse_key:
            key = self._part(line, start, self.key_separator, "key separator")
            if key is not None:
                start += len(key) + len(self.key_separator)
        return Record(self._bytes(key), self._bytes(line[start:]), headers)

    def _part(self, line: str, start: int, separator: str, name: str) -> str | None:
        end = line.find(separator, start)
        if end >= 0:
            return line[start:end]
        if self.ignore_error:
            return None
        raise BadLine(f"No {name} found on line number {self.line_number}: '{line}'")

    def _headers(self, text: str) -> Headers:
        headers: Headers = []
        for pair in self._headers_pattern.split(text):
            key, separator, value = pair.partition(self.headers_key_separator)
            if not separator:
                if not self.ignore_error:
                    raise BadLine(
                        f"No header key separator found in pair '{pair}' on line number {self.line_number}"
                    )
                headers.append((pair, None))
                continue
            if key == self.null_marker:
                raise BadLine(
                    f"Header keys should not be equal to the null marker '{self.null_marker}' as they can't be null"
                )
            headers.append((key, self._bytes(value)))
        return headers

    def _bytes(self, text: str | None) -> bytes | None:
        if text is None or text == self.null_marker:
            return None
        # What was not UTF-8 on the way in goes out as it came.
        return text.encode("utf-8", "surrogateescape")


def is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"
