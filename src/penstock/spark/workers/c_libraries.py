"""Which C library the compiled parts of installed distributions need, by the tags of the wheels that they came in.

Tag: cp311-cp311-manylinux_2_17_x86_64
Tag: cp311-cp311-manylinux_2_28_x86_64      one of these is enough: glibc 2.17 or later
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import Distribution

from penstock.spark.workers.shipped import CLibrary, c_library

_TAG = re.compile(r"^Tag: \S+-(any|\S+)$", re.MULTILINE)
_VERSIONED = re.compile(r"(many|musl)linux_(\d+)_(\d+)_")
# Names of before versions were part of them.
_GLIBC_BY_NAME = {"manylinux1_": (2, 5), "manylinux2010_": (2, 12), "manylinux2014_": (2, 17)}


def needed_c_library(distributions: Iterable[Distribution]) -> CLibrary:
    """What is enough for all. One that was compiled here needs what is here; of pure ones nothing is needed."""
    here = c_library()
    needed = [
        need for each in distributions if (need := _need(each.read_text("WHEEL") or "", here)) is not None
    ]
    return max(needed, key=lambda each: each.version, default=CLibrary("", (0, 0)))


def _need(wheel: str, here: CLibrary) -> CLibrary | None:
    platforms = _TAG.findall(wheel)
    if not platforms or "any" in platforms:
        return None
    return min((_named(platform, here) for platform in platforms), key=lambda each: each.version)


def _named(platform: str, here: CLibrary) -> CLibrary:
    if found := _VERSIONED.match(platform):
        name = "glibc" if found[1] == "many" else "musl"
        return CLibrary(name, (int(found[2]), int(found[3])))
    for prefix, version in _GLIBC_BY_NAME.items():
        if platform.startswith(prefix):
            return CLibrary("glibc", version)
    return here
