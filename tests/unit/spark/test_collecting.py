import subprocess
import sys

PROGRAM = """
import gc
import penstock.spark.options
from penstock.spark.workers.collecting import set_aside_what_is_loaded
set_aside_what_is_loaded()
loaded = gc.get_freeze_count()
later = [[] for _ in range(1000)]
set_aside_what_is_loaded()
print(loaded > 10_000, gc.get_freeze_count() - loaded < 1000)
"""


def test_what_a_worker_has_loaded_is_set_aside_once_and_what_comes_later_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["True", "True"]
