import subprocess
import sys

import crc32c as package

from penstock.records.crc import crc32c


def test_the_check_value_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_crc_goes_on_where_the_last_one_ended() -> None:
    assert crc32c(b"6789", crc32c(memoryview(b"12345"))) == package.crc32c(b"123456789")


def test_loading_it_does_not_load_the_package() -> None:
    program = "import sys, penstock.records.crc; print('crc32c' in sys.modules, 'importlib.metadata' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["False", "False"]
