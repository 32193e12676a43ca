"""penstock produce: records from words, from standard input or from a file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from penstock.cli.clients import Connection, translated
from penstock.cli.failures import Refused, UserError
from penstock.cli.record_sender import send
from penstock.cli.verbs.common_options import complete_topics, connected, pairs

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
@click.option(
    "-o",
    "--output",
    type=click.Choice(["quiet", "json"]),
    default="quiet",
    show_default=True,
    help="json prints partition and offset of each record.",
)
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
) -> None:
    """Write records: the VALUEs, or each line of a file or of standard input.

    \b
    Example:
      penstock produce orders '{"id": 1}' --key 1 -H source=shop
      penstock produce orders --file orders.txt --key-separator :
    """
    if path is not None and values:
        raise click.UsageError("Give values or --file, not both.")
    if null_value and (values or path is not None or key is None):
        raise click.UsageError("--null needs --key, and takes no values.")
    named = [(name, text.encode()) for name, text in pairs(headers, what="the header").items()]
    settings = {
        "linger.ms": "5", "acks": acks, "compression.type": compression, "partitioner": "murmur2_random",
        "delivery.timeout.ms": "120000", "client.id": "penstock-produce",
    }  # fmt: skip
    if values or null_value:
        # librdkafka takes half a second to become idempotent: too long for a word or two, which go one by one instead.
        settings["max.in.flight.requests.per.connection"] = "1"
    elif acks == "all":
        settings["enable.idempotence"] = "true"
    writer = _Writer(connection, settings, topic, headers=named, partition=partition, tells=output == "json")
    source = _Source(key, key_separator)
    if null_value:
        writer.write(source.key, None)
    elif values:
        for value in values:
            writer.write(*source.split(value.encode("utf-8", "surrogateescape")))
    elif path is not None:
        _write_file(writer, source, path)
    else:
        _write_stream(writer, source, sys.stdin.buffer)
    writer.finish()


class _Source:
    def __init__(self, key: str | None, separator: str | None) -> None:
        self.key = None if key is None else key.encode("utf-8", "surrogateescape")
        self.separator = None if not separator else separator.encode()

    def split(self, line: bytes) -> tuple[bytes | None, bytes]:
        if self.separator is None:
            return self.key, line
        key, found, value = line.partition(self.separator)
        if not found:
            shown = line.decode("utf-8", "replace")
            raise UserError(f"no key separator in the line '{shown}'")
        return key, value


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
            raise Refused(f"{len(self.failures)} records were not written: {self.failures[0]}")
        if left:
            raise Refused(f"{left} records were not acknowledged")

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(error.str().removeprefix("Broker: ").removeprefix("Local: "))
        elif self.tells:
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            print(json.dumps(place))


def _write_stream(writer: _Writer, source: _Source, stream: BinaryIO) -> None:
    if sys.stdin.isatty():
        click.echo("Each line becomes a record. Ctrl-D ends.", err=True)
    for line in _lines(stream):
        writer.write(*source.split(line))


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\n").removesuffix(b"\r")


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None


def _write_file(writer: _Writer, source: _Source, path: str) -> None:
    with _opened(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not sys.stderr.isatty():
            for line in _lines(file):
                writer.write(*source.split(line))
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
                writer.write(*source.split(line))
                if number % POLL_EVERY_RECORDS == 0:
                    progress.update(task, completed=file.tell())
            progress.update(task, completed=size_bytes)
