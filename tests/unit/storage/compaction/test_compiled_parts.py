import hashlib
from pathlib import Path
from types import ModuleType

import pytest

from penstock.records.columnar import byte_kernels as columnar_byte_kernels
from penstock.records.columnar import crc_kernel
from penstock.storage.compaction import byte_kernels, filter_kernels, key_kernels, layout, map_kernels

PARTS = [layout, byte_kernels, key_kernels, columnar_byte_kernels, crc_kernel]


@pytest.mark.parametrize(
    ("module", "parts"),
    [(map_kernels, PARTS), (filter_kernels, [*PARTS, map_kernels])],
    ids=["map_kernels", "filter_kernels"],
)
def test_compiled_code_is_not_kept_when_a_part_of_it_changes(
    module: ModuleType, parts: list[ModuleType]
) -> None:
    sources = b"".join(Path(str(part.__file__)).read_bytes() for part in parts)
    assert hashlib.sha256(sources).hexdigest()[:16] == module.MADE_FROM
