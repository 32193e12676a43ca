import subprocess
import sys

import pytest

from penstock.consumer import Processor


def test_the_library_loads_nothing_of_the_broker() -> None:
    code = (
        "import sys, penstock.consumer\n"
        "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('penstock.')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['client', 'consumer', 'model']\n"


def test_crcs_are_checked_unless_the_settings_say_otherwise() -> None:
    given = {"topics": "orders", "group": "billing", "handler": print}
    assert Processor(**given)._member_settings()["check.crcs"] is True  # type: ignore[arg-type]
    unchecked = Processor(**given, consumer_settings={"check.crcs": False})  # type: ignore[arg-type]
    assert unchecked._member_settings()["check.crcs"] == "false"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"guarantee": "mostly"}, "the guarantee is"),
        ({"topics": []}, "at least one topic"),
        ({"group": ""}, "name the group"),
        ({"batch_size": 0}, "batch_size"),
        ({"retries": -1}, "negative"),
        ({"guarantee": "at-most-once", "retries": 2}, "retries must be 0"),
        (
            {"guarantee": "exactly-once", "consumer_settings": {"isolation.level": "read_uncommitted"}},
            "exactly-once needs isolation.level=read_committed, not 'read_uncommitted'",
        ),
    ],
)
def test_options_that_contradict_are_refused(options: dict[str, object], complaint: str) -> None:
    given = {"topics": "orders", "group": "billing", "handler": print, **options}
    with pytest.raises(ValueError, match=complaint):
        Processor(**given)  # type: ignore[arg-type]
