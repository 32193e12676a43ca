"""Which installed distributions `penstock` needs on an executor, and their files.

Found in the metadata that pip leaves, so that a dependency that is added travels without being named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePath

# Spark has its own pyspark and py4j where its executors are. The others are the command line's, the broker's and the driver's.
NOT_ON_EXECUTORS = frozenset({"pyspark", "py4j", "click", "prometheus-client", "rich", "uvloop", "xxhash"})
EXTRAS = frozenset({"spark", "streams"})
# Of other extras, where they are installed: for values in Protobuf, and for plans of streams.
ALSO = ("protobuf", "googleapis-common-protos", "fastavro", "orjson", "google-re2")
# What a library brings for those who test it or compile against it: a third of all files.
NOT_TO_RUN = frozenset({"tests", "include"})
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?")


def needed_distributions(name: str = "penstock") -> list[Distribution]:
    """The closure over what is installed, without `name` itself; ordered by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(_requirements(distribution(name), EXTRAS))
    waiting += [(each, frozenset()) for each in ALSO]
    while waiting:
        wanted = waiting.pop()
        if wanted in seen or wanted[0] in NOT_ON_EXECUTORS:
            continue
        seen.add(wanted)
        try:
            found[wanted[0]] = distribution(wanted[0])
        except PackageNotFoundError:
            continue  # for another platform or Python, or of an extra that is not installed
        waiting += _requirements(found[wanted[0]], wanted[1])
    return [found[each] for each in sorted(found)]


def _requirements(owner: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Names and extras. Markers other than `extra` are not looked at: what they rule out is not installed."""
    for line in owner.requires or ():
        requirement, _, marker = line.partition(";")
        wanted_by = _EXTRA.findall(marker)
        if wanted_by and not extras.intersection(wanted_by):
            continue
        match = _REQUIREMENT.match(requirement)
        if match is not None:
            name = re.sub(r"[-_.]+", "-", match[1]).lower()
            yield name, frozenset(each.strip() for each in (match[2] or "").split(",") if each.strip())


def distribution_files(owner: Distribution) -> Iterator[tuple[PurePath, Path]]:
    """(path inside the archive, path here) of what one needs to run it; scripts of `bin` are left out."""
    for file in owner.files or ():
        if ".." in file.parts or not NOT_TO_RUN.isdisjoint(file.parts[:-1]):
            continue
        path = Path(str(file.locate()))
        if path.is_file():
            yield PurePath(*file.parts), path
