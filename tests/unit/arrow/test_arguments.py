"""What cannot be used is refused at once, in one line that begins with the name of the argument."""

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import penstock.arrow
from penstock.arrow import BadOption, ReadFailed
from penstock.arrow.positions import check_places
from penstock.client.options import client_options
from penstock.model.endpoints import Address
from penstock.testing.processes import free_port
from tests.web_server import a_web_server


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"topic": ""}, "topic: '' is not a topic's name"),
        ({"bootstrap": "localhost"}, "bootstrap: 'localhost' is not an address"),
        ({"bootstrap": "localhost:0"}, "bootstrap: 'localhost:0' is not an address"),
        ({"bootstrap": ""}, "bootstrap: '' is not an address"),
        ({"isolation": "committed"}, "isolation: 'committed' is not 'read_uncommitted' or 'read_committed'"),
        ({"columns": ["key", "valeu"]}, "columns: there is no column 'valeu'"),
        ({"columns": "key"}, "columns: write a list of names, such as \\['key'\\]"),
        ({"columns": []}, "columns: name one or more"),
        ({"value_schema": "id long"}, "value_schema: write a pyarrow.Schema"),
        ({"value_schema": pa.schema([("n", pa.uint8())])}, "value_schema: JSON is not read into uint8"),
        (
            {"value_schema": pa.schema([("n", pa.int8())]), "columns": ["key"]},
            "value_schema: the column value is not",
        ),
        ({"start": "begin"}, "start: 'begin' is not 'earliest' or 'latest'"),
        ({"start": -5}, "start: an offset is 0 or more"),
        ({"end": True}, "end: True is not an offset"),
        ({"end": {0: "last"}}, "end\\[0\\]: 'last' is not 'earliest' or 'latest'"),
        ({"start": {"0": 1}}, "start: '0' is not a partition"),
        ({"options": {"fetch.max.byte": "1"}}, "fetch.max.byte: there is no such option"),
        ({"options": {"fetch.max.bytes": "1k"}}, "fetch.max.bytes: '1k' is not a number"),
        ({"options": {"fetch.max.bytes": 0}}, "fetch.max.bytes: must be 1 or more"),
        ({"options": {"security.protocol": "TLS"}}, "security.protocol: 'TLS' is not PLAINTEXT, SSL, "),
        (
            {"options": {"ssl.truststore.path": "x"}},
            "ssl.truststore.path: there is no such option; did you mean",
        ),
        ({"batch_rows": 0}, "batch_rows: must be 1 or more"),
        ({"batch_bytes": "1"}, "batch_bytes: must be 1 or more"),
    ],
)
def test_a_wrong_argument_is_named_before_any_broker_is_asked(
    arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadOption, match=f"^{complaint}"):
        penstock.arrow.batches(**{"topic": "orders", "bootstrap": "localhost:1", **arguments})


def test_options_have_kafkas_names() -> None:
    options = client_options(
        "a:1, [::1]:2", {"client.id": "me", "request.timeout.ms": "5", "fetch.max.bytes": 6}
    )
    assert options.addresses == (Address("a", 1), Address("::1", 2))
    assert (options.client_id, options.request_timeout_ms, options.fetch_max_bytes) == ("me", 5, 6)


def test_places_of_every_form_are_taken() -> None:
    for place in ("earliest", "latest", 0, 7, datetime.now(UTC), {0: "latest", 5: 3}):
        check_places("start", place)  # type: ignore[arg-type]


def test_a_broker_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(
        ReadFailed, match=r"^bootstrap: cannot reach a broker at 127\.0\.0\.1:\d+: connection refused"
    ):
        penstock.arrow.read("orders", bootstrap=f"127.0.0.1:{free_port()}")


def test_what_does_not_speak_the_protocol_is_told() -> None:
    with (
        a_web_server() as address,
        pytest.raises(ReadFailed, match="does not speak the Kafka protocol"),
    ):
        penstock.arrow.read("orders", bootstrap=address)


def test_the_package_imports_pyarrow_and_numba_when_they_are_needed() -> None:
    code = "import sys, penstock.arrow; print([m for m in ('pyarrow', 'numba', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_pyarrow_one_is_told_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import penstock.arrow\n"
        "try: penstock.arrow.read\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "topics as tables need pyarrow: pip install 'penstock[arrow]'"
