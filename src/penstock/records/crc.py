"""CRC-32C (Castagnoli), from the crc32c package's compiled module alone.

The package itself imports importlib.metadata to tell its own version: 30 ms and 4 MB that a starting broker
can do without.
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Protocol


class Crc32c(Protocol):
    def __call__(self, data: bytes | bytearray | memoryview, value: int = 0, /) -> int: ...


def _load() -> Crc32c:
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations:
        compiled = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if compiled is not None and compiled.loader is not None:
            module = module_from_spec(compiled)
            compiled.loader.exec_module(module)
            function: Crc32c = module.crc32c
            return function
    # The package is laid out in another way than the one we know: take it whole.
    from crc32c import crc32c as whole

    return whole


crc32c: Crc32c = _load()
