"""penstock produce: records from words, from standard input or from a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from penstock.cli.verbs.common_options import complete_topics, connected, output_choice, pairs
from penstock.cli.verbs.output import json_line
from penstock.cli.verbs.value_formats import write_formats
from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused, UserError, reason
from penstock.client.record_sender import send
from penstock.client.value_formats import WriteFormats
from penstock.schemas.model import InvalidValue

if TYPE_CHECKING:
    from penstock.client.json_lines import JsonWriter

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
FLUSH_TIMEOUT_S = 130.0
POLL_EVERY_RECORDS = 500


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="Each line is a key, this text, and a value.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be repeated."
)
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Write to this partition.")
@click.option("--file", "path", type=click.Path(dir_okay=False), help="Write each line of a file.")
@click.option("-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--acks", type=click.Choice(["0", "1", "all"]), default="all", show_default=True)
@click.option(
    "--null", "null_value", is_flag=True, help="Write one record with a key and no value (a tombstone)."
)
@output_choice("quiet", "json", help="json prints partition and offset of each record.")
@write_formats
@connected
def produce(
    connection: Connection,
    topic: str,
    values: tuple[str, ...],
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    path: str | None,
    compression: str,
    acks: str,
    null_value: bool,
    output: str,
    formats: Callable[..., WriteFormats],
) -> None:
    """Write records: the VALUEs, or each line of a file or of standard input.

    \b
    Example:
      penstock produce orders '{"id": 1}' --key 1 -H source=shop
      penstock produce orders --file orders.txt --key-separator :
      penstock produce orders --value-format avro --value-schema order.avsc < orders.json
    """
    if path is not None and values:
        raise click.UsageError("Give values or --file, not both.")
    if null_value and (values or path is not None or key is None):
        raise click.UsageError("--null needs --key, and takes no values.")
    named = [(name, text.encode()) for name, text in pairs(headers, what="the header").items()]
    settings = {
        "linger.ms": "5", "acks": acks, "compression.type": compression, "partitioner": "murmur2_random",
        "message.timeout.ms": "120000", "client.id": "penstock-produce",
    }  # fmt: skip
    if values or null_value:
        # librdkafka takes half a second to become idempotent: too long for a word or two, which go one by one instead.
        settings["max.in.flight.requests.per.connection"] = "1"
    elif acks == "all":
        settings["enable.idempotence"] = "true"
    writer = _Writer(connection, settings, topic, headers=named, partition=partition, tells=output == "json")
    has_keys = key is not None or bool(key_separator)
    source = _Source(key, key_separator, formats(connection, topic, has_keys=has_keys))
    try:
        if null_value:
            writer.write(source.key, None)
        elif values:
            for number, value in enumerate(values, start=1):
                line = value.encode("utf-8", "surrogateescape")
                writer.write(*source.split(line, f"value {number}"))
        elif path is not None:
            _write_file(writer, source, path)
        else:
            _write_stream(writer, source, sys.stdin.buffer)
    except UserError:
        writer.finish()  # what came before the bad line
        raise
    writer.finish()


class _Source:
    """Lines into keys and values. UserError for one that cannot be."""

    def __init__(self, key: str | None, separator: str | None, formats: WriteFormats) -> None:
        self._formats = formats
        self.separator = None if not separator else separator.encode()
        self.key: bytes | None = None
        if key is not None:
            given = key.encode("utf-8", "surrogateescape")
            self.key = _written(formats.key, given, "--key")

    def split(self, line: bytes, place: str) -> tuple[bytes | None, bytes]:
        key, value = self.key, line
        if self.separator is not None and self._formats.key is not None:
            key, value = self._key_in_json(self._formats.key, self.separator, line, place)
        elif self.separator is not None:
            key, found, value = line.partition(self.separator)
            if not found:
                raise _without_separator(line)
        return key, _written(self._formats.value, value, place)

    def _key_in_json(
        self, writer: JsonWriter, separator: bytes, line: bytes, place: str
    ) -> tuple[bytes, bytes]:
        """The separator is the one behind the JSON, which may have others of its kind in it."""
        from penstock.client.json_lines import parsed_start

        text = _text(line, place)
        try:
            key, end = parsed_start(text)
            rest = text[end:].encode()
            if not rest.startswith(separator):
                rest = rest.lstrip()
            if not rest.startswith(separator):
                raise _without_separator(line)
            return writer.write(key), rest.removeprefix(separator)
        except InvalidValue as error:
            raise UserError(f"{place}: the key: {error}") from None


def _written(writer: JsonWriter | None, data: bytes, place: str) -> bytes:
    if writer is None:
        return data
    try:
        return writer.write_text(_text(data, place))
    except InvalidValue as error:
        raise UserError(f"{place}: {error}") from None


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UserError(f"{place}: it is not UTF-8") from None


def _without_separator(line: bytes) -> UserError:
    return UserError(f"no key separator in the line '{line.decode('utf-8', 'replace')}'")


class _Writer:
    def __init__(
        self,
        connection: Connection,
        settings: dict[str, str],
        topic: str,
        *,
        headers: list[tuple[str, bytes]],
        partition: int | None,
        tells: bool,
    ) -> None:
        self.topic = topic
        self.tells = tells
        self.count = 0
        self.failures: list[str] = []
        self.failure_code = 0
        self._extra: dict[str, Any] = {"headers": headers or None}
        if partition is not None:
            self._extra["partition"] = partition
        self.producer = connection.producer(settings)

    def write(self, key: bytes | None, value: bytes | None) -> None:
        from confluent_kafka import KafkaException

        try:
            send(self.producer, self.topic, key=key, value=value, on_delivery=self._delivered, **self._extra)
        except KafkaException as error:
            raise translated(error) from None
        self.count += 1
        if self.count % POLL_EVERY_RECORDS == 0:
            self.producer.poll(0)
        if self.failures:
            self.finish()

    def finish(self) -> None:
        left = self.producer.flush(FLUSH_TIMEOUT_S)
        if self.failures:
            why = f"{len(self.failures)} records were not written: {self.failures[0]}"
            raise Refused(why, code=self.failure_code)
        if left:
            raise Refused(f"{left} records were not acknowledged")

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failure_code = error.code()
            self.failures.append(error.str().removeprefix("Broker: ").removeprefix("Local: "))
        elif self.tells:
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            sys.stdout.write(json_line(place).decode())


def _write_stream(writer: _Writer, source: _Source, stream: BinaryIO) -> None:
    if sys.stdin.isatty():
        click.echo("Each line becomes a record. Ctrl-D ends.", err=True)
    for number, line in enumerate(_lines(stream), start=1):
        writer.write(*source.split(line, f"line {number}"))


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\n").removesuffix(b"\r")


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None


def _write_file(writer: _Writer, source: _Source, path: str) -> None:
    with _opened(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not sys.stderr.isatty():
            for number, line in enumerate(_lines(file), start=1):
                writer.write(*source.split(line, f"line {number}"))
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        from penstock.cli.verbs.output import console

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console(stderr=True)) as progress:
            task = progress.add_task(os.path.basename(path), total=size_bytes)
            for number, line in enumerate(_lines(file), start=1):
                writer.write(*source.split(line, f"line {number}"))
                if number % POLL_EVERY_RECORDS == 0:
                    progress.update(task, completed=file.tell())
            progress.update(task, completed=size_bytes)
