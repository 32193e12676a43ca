"""meta.properties: which broker and which cluster a log directory belongs to."""

from typing import Final

from penstock.runtime.files import Disk
from penstock.storage import checkpoints

META_PROPERTIES: Final = "meta.properties"


class LogDirectoryError(Exception):
    """The directory cannot be used by this broker; the message is for the operator."""


def claim(disk: Disk, directory: str, *, broker_id: int, cluster_id: str) -> None:
    """Writes who owns the directory, or checks that it is this broker."""
    path = f"{directory}/{META_PROPERTIES}"
    known = read(disk, directory)
    if not known:  # also when a power failure left it empty
        checkpoints.write_properties(
            disk, path, {"version": "0", "broker.id": str(broker_id), "cluster.id": cluster_id}
        )
        return
    id_name = (
        "node.id" if "node.id" in known else "broker.id"
    )  # as KRaft writes it, or as ZooKeeper's brokers did
    for name, ours in ((id_name, str(broker_id)), ("cluster.id", cluster_id)):
        theirs = known.get(name)
        if theirs is not None and theirs != ours:
            hint = f": start it with --set {name}={theirs}" if name == id_name else ""
            raise LogDirectoryError(f"{path} says {name}={theirs}, but this broker has {name}={ours}{hint}")


def read(disk: Disk, directory: str) -> dict[str, str]:
    """Empty when nobody has claimed the directory."""
    try:
        return checkpoints.read_properties(disk, f"{directory}/{META_PROPERTIES}") or {}
    except checkpoints.CorruptCheckpoint as error:
        raise LogDirectoryError(
            f"{error}: put the right file back, or delete it if this directory belongs to this broker"
        ) from None
