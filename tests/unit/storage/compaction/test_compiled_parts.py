import hashlib
from pathlib import Path

from penstock.records.columnar import byte_kernels, crc_kernel
from penstock.storage.compaction import kernels


def test_compiled_code_is_not_kept_when_a_part_of_it_changes() -> None:
    folder = Path(kernels.__file__).parent
    files = [
        folder / "byte_kernels.py",
        folder / "key_kernels.py",
        byte_kernels.__file__,
        crc_kernel.__file__,
    ]
    parts = [Path(file).read_bytes() for file in files]
    assert hashlib.sha256(b"".join(parts)).hexdigest()[:16] == kernels.MADE_FROM
