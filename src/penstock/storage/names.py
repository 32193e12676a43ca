"""The names of files and directories in a log directory."""

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
DELETE_DIRECTORY_SUFFIX = "-delete"
FUTURE_DIRECTORY_SUFFIX = "-future"
STRAY_DIRECTORY_SUFFIX = "-stray"

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
    return _stem_of(directory_name, DELETE_DIRECTORY_SUFFIX) is not None


def future_directory_name(directory_name: str, unique: bytes) -> str:
    """`orders-7` → `orders-7.<32 hex digits>-future`: a replica on its way to another log directory."""
    return f"{directory_name}.{unique.hex()}{FUTURE_DIRECTORY_SUFFIX}"


def future_partition_of(directory_name: str) -> tuple[str, int] | None:
    """The partition that a `-future` directory is a copy of; None when it is not one."""
    stem = _stem_of(directory_name, FUTURE_DIRECTORY_SUFFIX)
    return None if stem is None else partition_of(stem)


def _stem_of(directory_name: str, suffix: str) -> str | None:
    stem, _, unique = directory_name.removesuffix(suffix).rpartition(".")
    is_one = (
        directory_name.endswith(suffix)
        and stem != ""
        and len(unique) == _UNIQUE_DIGITS
        and set(unique) <= set("0123456789abcdef")
    )
    return stem if is_one else None


def deleted_directory_name(directory_name: str, unique: bytes) -> str:
    """`orders-7` → `orders-7.<32 hex digits>-delete`"""
    return _aside(directory_name, unique, DELETE_DIRECTORY_SUFFIX)


def stray_directory_name(directory_name: str, unique: bytes) -> str:
    """`orders-7` → `orders-7.<32 hex digits>-stray`"""
    return _aside(directory_name, unique, STRAY_DIRECTORY_SUFFIX)


def stray_of(directory_name: str) -> tuple[str, int, bytes] | None:
    """Topic (its beginning, when it is long), partition and digits of a `-stray` directory; None when it is not one."""
    stem = _stem_of(directory_name, STRAY_DIRECTORY_SUFFIX)
    found = None if stem is None else partition_of(stem)
    if found is None:
        return None
    digits = directory_name.removesuffix(STRAY_DIRECTORY_SUFFIX)[-_UNIQUE_DIGITS:]
    return *found, bytes.fromhex(digits)


def _aside(directory_name: str, unique: bytes, suffix: str) -> str:
    """A long topic, not the partition, is shortened so that the name has 255 bytes at most."""
    topic, _, partition = directory_name.rpartition("-")
    suffix = f"-{partition}.{unique.hex()}{suffix}"
    return topic[: 255 - len(suffix)] + suffix
