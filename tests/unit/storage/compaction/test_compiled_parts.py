import hashlib
from pathlib import Path

from penstock.storage.compaction import kernels


def test_compiled_code_is_not_kept_when_a_part_of_it_changes() -> None:
    folder = Path(kernels.__file__).parent
    parts = [(folder / f"{name}.py").read_bytes() for name in ("byte_kernels", "crc_kernel", "key_kernels")]
    assert hashlib.sha256(b"".join(parts)).hexdigest()[:16] == kernels.MADE_FROM
