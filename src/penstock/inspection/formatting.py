"""To whom log directories belong: what `meta.properties` says in each, and how they are given to a broker before its first start.

A broker formats its directories itself when it starts; who wants to choose the cluster's id does it before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.client.errors import UserError
from penstock.runtime.files import OsDisk
from penstock.storage import meta_properties
from penstock.storage.meta_properties import META_PROPERTIES, LogDirectoryError

_OF_ONE_DIRECTORY = "directory.id"


class Formatted(NamedTuple):
    """What is known of the directories of one broker."""

    found: list[str]
    metadata: dict[str, str]
    """Of the first directory that has some."""
    problems: list[str]
    """In Kafka's words."""


def look_at_directories(directories: Iterable[str]) -> Formatted:
    found: list[str] = []
    metadata: dict[str, str] = {}
    problems: list[str] = []
    for directory in sorted(directories):
        if not os.path.exists(directory):
            problems.append(f"{directory} does not exist")
            continue
        if not os.path.isdir(directory):
            problems.append(f"{directory} is not a directory")
            continue
        found.append(directory)
        try:
            known = meta_properties.read(OsDisk(), directory)
        except LogDirectoryError as error:
            problems.append(str(error))
            continue
        if not known:
            problems.append(f"{directory} is not formatted.")
        elif not metadata:
            metadata = known
        elif _shared(known) != _shared(metadata):
            problems.append(
                f"Metadata for {directory} was {as_java(known)}, but other directories featured {as_java(metadata)}"
            )
    return Formatted(found, metadata, problems)


def _shared(known: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in known.items() if name != _OF_ONE_DIRECTORY}


def as_java(properties: dict[str, str]) -> str:
    """As Java prints a map of properties: `{broker.id=1, cluster.id=…}`."""
    return "{" + ", ".join(f"{name}={properties[name]}" for name in sorted(properties)) + "}"


def format_directories(
    directories: Iterable[str], *, broker_id: int, cluster_id: str, ignore_formatted: bool = False
) -> Iterator[str]:
    """Writes meta.properties into each directory, which is made where it is missing; yields each that was formatted.

    UserError, before anything is written, where a directory is another broker's or another cluster's, or, unless
    `ignore_formatted`, where it is formatted already.
    """
    disk = OsDisk()
    wanted = sorted(set(directories))
    new = []
    try:
        for directory in wanted:
            known = meta_properties.read(disk, directory) if os.path.isdir(directory) else {}
            if not known:
                new.append(directory)
                continue
            found = known.get("cluster.id")
            if found != cluster_id:
                raise UserError(
                    f"Invalid cluster.id in: {directory}/{META_PROPERTIES}. Expected {cluster_id}, but read {found}"
                )
            meta_properties.claim(disk, directory, broker_id=broker_id, cluster_id=cluster_id)
            if not ignore_formatted:
                raise UserError(
                    f"Log directory {directory} is already formatted. Use --ignore-formatted to ignore this directory "
                    "and format the others."
                )
        for directory in new:
            os.makedirs(directory, exist_ok=True)
            meta_properties.claim(disk, directory, broker_id=broker_id, cluster_id=cluster_id)
            yield directory
    except LogDirectoryError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"cannot format {error.filename}: {error.strerror}") from None
