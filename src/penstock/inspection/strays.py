"""The strays of one log directory."""

import os
from collections.abc import Iterable

from penstock.client.errors import UserError
from penstock.model.strays import FoundStray
from penstock.runtime.files import OsDisk
from penstock.storage.strays import list_strays, measure


def read_strays(path: str) -> list[FoundStray]:
    """Of one log directory, whether a broker uses it or not."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        raise UserError(f"{path} is not a directory")
    disk = OsDisk()
    found = []
    try:
        for stray in list_strays(disk, path):
            extent = measure(disk, stray)
            found.append(
                FoundStray(
                    None, path, stray.name, *stray.topic_partition, stray.topic_id, extent.size_bytes,
                    extent.start_offset, extent.end_offset, extent.leader_epoch, stray.set_aside_ms,
                )
            )  # fmt: skip
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    return sorted(found, key=lambda one: (one.topic, one.partition, one.directory))


def remove_strays(strays: Iterable[FoundStray]) -> None:
    """With all their records. The broker may run: it does not use them."""
    disk = OsDisk()
    for stray in strays:
        try:
            disk.delete_tree(os.path.join(stray.log_directory, stray.directory))
        except OSError as error:
            raise UserError(f"cannot remove {error.filename}: {error.strerror}") from None
