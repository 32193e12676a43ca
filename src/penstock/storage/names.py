"""The names of files and directories in a log directory."""

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
DELETE_DIRECTORY_SUFFIX = "-delete"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

_UNIQUE_DIGITS = 32


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """`<directory>/00000000000000000042.log`"""
    return f"{directory}/{base_offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in a file's name, when it is one of that suffix."""
    if not name.endswith(suffix):
        return None
    stem = name[: -len(suffix)]
    return int(stem) if stem.isascii() and stem.isdigit() else None


def partition_of(directory_name: str) -> tuple[str, int] | None:
    """`orders-7` → ("orders", 7); None when it is not a partition's directory."""
    topic, dash, partition = directory_name.rpartition("-")
    if not dash or not topic or not (partition.isascii() and partition.isdigit()):
        return None
    return topic, int(partition)


def is_deleted_directory(directory_name: str) -> bool:
    stem, _, unique = directory_name.removesuffix(DELETE_DIRECTORY_SUFFIX).rpartition(".")
    return (
        directory_name.endswith(DELETE_DIRECTORY_SUFFIX)
        and stem != ""
        and len(unique) == _UNIQUE_DIGITS
        and set(unique) <= set("0123456789abcdef")
    )


def deleted_directory_name(directory_name: str, unique: bytes) -> str:
    """`orders-7` → `orders-7.<32 hex digits>-delete`; a long topic is shortened so that the name stays below
    255 bytes.
    """
    suffix = f".{unique.hex()}{DELETE_DIRECTORY_SUFFIX}"
    return directory_name[: 255 - len(suffix)] + suffix
