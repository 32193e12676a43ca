"""The wheel in an empty environment, with each extra: the README's tour works there, away from the checkout."""

import json
import shlex
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.processes import free_port, start_process
from tests.docs.pages import ROOT
from tests.packaging.installed import Installation, tour

# A new environment has nothing compiled, and Spark has to start: on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(900)

WHERE = "import penstock; print(penstock.__file__)"

SPARK = """
import os
import penstock.spark
spark = penstock.spark.session(master="local[2]")
rows = spark.read.format("penstock").option("kafka.bootstrap.servers", os.environ["PENSTOCK_BOOTSTRAP"])
print("rows", rows.option("subscribe", "orders").load().count())
spark.stop()
"""

STREAMS = """
from penstock.streams import App, col, fn, tumbling
app = App("visits")
clicks = app.stream("clicks", key={"user": str}, value={"page": str, "ms": int})
slow = clicks.filter(col("ms") > 100).with_columns(page=fn("LCASE", col("page")))
slow.group_by("page").window(tumbling(minutes=1)).count(store="visits").to("visits")
with app.test() as test:
    for page, ms in (("Home", 250), ("home", 300), ("home", 3)):
        test.pipe("clicks", {"page": page, "ms": ms}, key="ann", timestamp=1_000)
    print([(record.key, record.value) for record in test.read("visits")], test.troubles)
"""

TOKENS = """
import json, time
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from penstock.credentials.signed_tokens import Rules, check, parse_keys
key = ec.generate_private_key(ec.SECP256R1())
keys = parse_keys(json.dumps({"keys": [jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)]}).encode())
now = int(time.time())
token = jwt.encode({"sub": "ana", "iat": now, "exp": now + 600}, key, "ES256")
print(check(token, keys[None], Rules()).name)
"""


@contextmanager
def service_of(installation: Installation, name: str, *words: str, ready: str) -> Iterator[str]:
    port = free_port()
    process = start_process(
        [str(installation.programs / "penstock"), *name.split(), "--port", str(port), *words],
        name=name,
        log_path=installation.folder / f"{name}.log",
        environment=installation.variables(),
        working_directory=installation.folder,
    )
    try:
        process.wait_for_line(ready, timeout_s=120)
        yield f"localhost:{port}"
    finally:
        assert process.stop() == 0


def broker_of(installation: Installation) -> AbstractContextManager[str]:
    return service_of(installation, "broker", "--data", "data", ready=READY_LINE)


def asked(url: str, body: bytes, media_type: str) -> Any:
    request = urllib.request.Request(url, data=body, headers={"Content-Type": media_type})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def take_the_tour(installation: Installation, bootstrap: str) -> None:
    assert Path(installation.python(WHERE).strip()).is_relative_to(installation.programs.parent)
    for command in tour():
        installation.run(command.replace("localhost:9092", bootstrap), PENSTOCK_BOOTSTRAP=bootstrap)
    listed = installation.run("penstock topics list -o json", PENSTOCK_BOOTSTRAP=bootstrap)
    assert "orders" in json.dumps(json.loads(listed))


def test_the_tour_works_without_an_extra(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, None) as installation, broker_of(installation) as bootstrap:
        take_the_tour(installation, bootstrap)
        for name, extra in (("registry", "registry"), ("rest", "rest"), ("sql-server", "sql")):
            said = installation.run(f"penstock {name} 2>&1 || echo ended with $?")
            wanted = f"penstock: penstock {name} needs more packages: pip install 'penstock[{extra}]'"
            assert said.splitlines() == [wanted, "ended with 1"]
        said = installation.run("penstock connect standalone worker.properties 2>&1 || echo ended with $?")
        assert "pip install 'penstock[connect]'" in said, said


def test_the_tour_and_sql_work_with_the_extra_arrow(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, "arrow") as installation, broker_of(installation) as bootstrap:
        take_the_tour(installation, bootstrap)
        counted = installation.run(
            "penstock sql 'SELECT count(*) AS records FROM orders' -o json", PENSTOCK_BOOTSTRAP=bootstrap
        )
        assert json.loads(counted) == [{"records": 2}]


def test_the_tour_and_a_spark_session_work_with_the_extra_spark(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, "spark") as installation, broker_of(installation) as bootstrap:
        take_the_tour(installation, bootstrap)
        assert "rows 2" in installation.python(SPARK, PENSTOCK_BOOTSTRAP=bootstrap)


def test_the_registry_and_the_proxy_work_with_the_extra_rest(tmp_path: Path, wheel: Path) -> None:
    """`registry` has the same packages, see below."""
    with Installation(tmp_path, wheel, "rest") as installation, broker_of(installation) as bootstrap:
        at = ("--bootstrap-server", bootstrap)
        with service_of(installation, "registry", *at, ready="listening on") as registry:
            kind = "application/vnd.schemaregistry.v1+json"
            body = b'{"schema": "{\\"type\\": \\"string\\"}"}'
            assert asked(f"http://{registry}/subjects/orders-value/versions", body, kind)["id"] == 1
        with service_of(installation, "rest", *at, ready="listening on") as proxy:
            body, kind = b'{"records": [{"value": 1}]}', "application/vnd.kafka.json.v2+json"
            assert asked(f"http://{proxy}/topics/orders", body, kind)["offsets"][0]["offset"] == 0


STATEMENTS = """
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM PARCELS (ID STRING KEY, WEIGHT INT) WITH (KAFKA_TOPIC = 'parcels', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO PARCELS VALUES ('a', 3);
CREATE STREAM HEAVY AS SELECT ID, WEIGHT * 10 AS TENFOLD FROM PARCELS WHERE WEIGHT > 2;
SELECT * FROM HEAVY EMIT CHANGES LIMIT 1;
"""


def test_the_sql_server_and_its_prompt_work_with_the_extra_sql(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, "sql") as installation, broker_of(installation) as bootstrap:
        at = ("--bootstrap-server", bootstrap)
        with service_of(installation, "sql-server", *at, ready="listening on") as server:
            shown = installation.run(
                f"ksql http://{server} --execute {shlex.quote(STATEMENTS)} --output JSON"
            )
            assert json.loads(shown.splitlines()[-2])["row"]["columns"] == ["a", 30], shown


def test_a_program_over_streams_works_with_the_extras_streams_and_spark(tmp_path: Path, wheel: Path) -> None:
    """As docs/how-to/streams.md has it installed; in the process of a test, so without Java."""
    with Installation(tmp_path, wheel, "streams,spark") as installation:
        counts = [("home", {"count": number}) for number in (1, 2)]
        assert installation.python(STREAMS) == f"{counts} []\n"


WORKER = """
offset.storage.file.filename=offsets
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
"""
LINES = """
name=lines
connector.class=FileStreamSource
file=lines.txt
topic=lines
"""


def test_a_worker_of_connect_works_with_the_extra_connect(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, "connect") as installation, broker_of(installation) as bootstrap:
        files = {"worker.properties": WORKER, "lines.properties": LINES, "lines.txt": "one\ntwo\n"}
        for name, text in files.items():
            (installation.folder / name).write_text(text)
        words = ("worker.properties", "lines.properties", "--bootstrap-server", bootstrap)
        with service_of(installation, "connect standalone", *words, ready="listening on"):
            read = f"penstock consume lines --from-beginning -n 2 -o json -b {bootstrap}"
            assert [json.loads(line)["value"] for line in installation.run(read).splitlines()] == [
                "one",
                "two",
            ]


def test_the_console_shows_a_page_with_the_extra_console(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, "console") as installation, broker_of(installation) as bootstrap:
        words = ("--no-login", "--bootstrap-server", bootstrap)
        with (
            service_of(installation, "console", *words, ready="listening on") as console,
            urllib.request.urlopen(f"http://{console}/local/messages", timeout=60) as answer,
        ):
            assert "Messages · local" in answer.read().decode()


def test_tokens_are_checked_with_the_extra_oauth(tmp_path: Path, wheel: Path) -> None:
    with Installation(tmp_path, wheel, "oauth") as installation:
        assert installation.python(TOKENS) == "ana\n"


def test_every_extra_of_the_product_is_tried() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["rest"] == ["penstock[registry]"]
    tried = {"arrow", "spark", "rest", "registry", "oauth", "sql", "streams", "connect", "console"}
    large = {"debezium"}  # tests/connect/test_change_capture.py tries it, in the tests' own environment
    assert extras.keys() - {"dev", "docs"} == tried | large
