"""The schema registry and the REST proxy beside Karapace's. Without --karapace only bounds on our own figures are measured."""

import json
import time
from tempfile import NamedTemporaryFile
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.context import Context
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.servers import KARAPACE, SERVICES
from bench.services import JSON_RECORDS_TYPE, REGISTRY_TYPE, Service, registry, rest_proxy
from bench.topics import temporary_topic
from penstock.testing.processes import ProcessFailed

SIDES = (KARAPACE, SERVICES)
CONNECTIONS = 16
SUBJECTS = 200
STORED_SCHEMAS = 10_000
RECORDS_PER_REQUEST = 100
TIMEOUT_S = 60.0
WARM_UP_S = 1


def schema(number: int, *, more: bool = False) -> str:
    """An Avro record of ten fields; with `more`, one that reads it too."""
    fields: list[dict[str, Any]] = [{"name": f"field_{n}", "type": "string"} for n in range(9)]
    fields.append({"name": f"of_{number}", "type": ["null", "long"], "default": None})
    if more:
        fields.append({"name": "later", "type": "string", "default": ""})
    return json.dumps({"type": "record", "name": f"Order{number}", "fields": fields}, separators=(",", ":"))


def ask_all_the_time(context: Context, service: Service, requests: list[dict[str, Any]]) -> dict[str, float]:
    """Its result, and `cpu_seconds` of the service for each 1,000 requests."""
    before = service.usage().cpu_seconds
    seconds = context.scale.pick(full=8, quick=2)
    with NamedTemporaryFile("w") as file:  # too long for a command line
        json.dump(requests, file)
        file.flush()
        done: dict[str, float] = context.client(
            "ask_http",
            port=service.port,
            connections=CONNECTIONS,
            requests=file.name,
            warm_up_s=WARM_UP_S,
            seconds=seconds,
        )
    done["cpu_seconds"] = (service.usage().cpu_seconds - before) / done["answered"] * 1000
    return done


class RegistryRequests:
    name = "registry-requests"
    server_names = SIDES
    about = f"{CONNECTIONS} clients: schemas by id, known schemas registered again, compatibility checks"
    rows = (
        Row("get", "GET of a schema by id", "requests/s", "higher", 2, "1,000 requests", sides=SIDES),
        Row("get_p99_ms", "… p99", "ms", "lower", None, sides=SIDES),
        Row("post", "POST of a known schema", "requests/s", "higher", 2, "1,000 requests", sides=SIDES),
        Row("post_p99_ms", "… p99", "ms", "lower", None, sides=SIDES),
        Row("check", "compatibility check", "requests/s", "higher", 1, "1,000 requests", sides=SIDES),
        Row("check_p99_ms", "… p99", "ms", "lower", None, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1) if scale.karapace else 0

    def run(self, context: Context) -> Sample:
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        with registry(context, topic=f"_schemas-{context.kind.name}") as service:
            service.wait_for("POST", "/subjects/subject-0/versions", {"schema": schema(0)})
            ids = [self._register(service, number) for number in range(SUBJECTS)]
            kinds = {
                "get": [{"method": "GET", "path": f"/schemas/ids/{each}"} for each in ids],
                "post": [self._post(number, "/subjects/subject-{}/versions") for number in range(SUBJECTS)],
                "check": [
                    self._post(number, "/compatibility/subjects/subject-{}/versions/latest", more=True)
                    for number in range(SUBJECTS)
                ],
            }
            self._check_answers(service, ids)
            for kind, requests in kinds.items():
                done = ask_all_the_time(context, service, requests)
                values[kind], values[f"{kind}_p99_ms"] = done["per_second"], done["p99_ms"]
                cpu[kind] = done["cpu_seconds"]
        return Sample(values, cpu)

    @staticmethod
    def _register(service: Service, number: int) -> int:
        said = service.ask("POST", f"/subjects/subject-{number}/versions", {"schema": schema(number)})
        return int(said["id"])

    @staticmethod
    def _post(number: int, path: str, *, more: bool = False) -> dict[str, str]:
        return {
            "method": "POST",
            "path": path.format(number),
            "content_type": REGISTRY_TYPE,
            "body": json.dumps({"schema": schema(number, more=more)}),
        }

    def _check_answers(self, service: Service, ids: list[int]) -> None:
        """Fast and wrong is not fast."""
        last = SUBJECTS - 1
        found = service.ask("GET", f"/schemas/ids/{ids[last]}")["schema"]
        checked = service.ask(
            "POST",
            f"/compatibility/subjects/subject-{last}/versions/latest",
            {"schema": schema(last, more=True)},
        )
        known = self._register(service, last)
        right = json.loads(found) == json.loads(schema(last)) and checked["is_compatible"] is True
        if len(set(ids)) != SUBJECTS or known != ids[last] or not right:
            raise ProcessFailed(f"the registry answers wrongly: {found} {checked} {known}")


class RegistryStart:
    name = "registry-start"
    server_names = SIDES
    about = f"a registry starts on a topic with {STORED_SCHEMAS:,} schemas, until it gives the last of them"
    rows = (
        Row(
            "seconds",
            f"start to the first answer with {STORED_SCHEMAS:,} schemas",
            "s",
            "lower",
            3,
            "start",
            "value",
            SIDES,
        ),
        Row(
            "resident_mb",
            f"resident memory with {STORED_SCHEMAS:,} schemas",
            "MB",
            "lower",
            200,
            bounds="value",
            sides=SIDES,
        ),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        server, name = context.server(), f"_stored-{context.kind.name}-r{context.round_number}"
        with temporary_topic(server, name, partition_count=1, config={"cleanup.policy": "compact"}) as topic:
            fill(server.bootstrap, topic)
            with registry(context, topic=topic) as service:
                found = service.wait_for("GET", f"/schemas/ids/{STORED_SCHEMAS}")
                seconds = time.monotonic() - service.process.started_at
                if json.loads(found["schema"]) != json.loads(schema(STORED_SCHEMAS)):
                    raise ProcessFailed(f"schema {STORED_SCHEMAS} is another: {found}")
                usage = service.usage()
        return Sample(
            {"seconds": seconds, "resident_mb": usage.resident_bytes / MEGABYTE},
            {"seconds": usage.cpu_seconds},
        )


def fill(bootstrap: str, topic: str) -> None:
    """With schemas as registries of Confluent's kind write them, in ten versions of a subject each."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 4})
    for number in range(1, STORED_SCHEMAS + 1):
        subject, version = f"subject-{(number - 1) // 10}", (number - 1) % 10 + 1
        key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        value = {
            "subject": subject,
            "version": version,
            "id": number,
            "schema": schema(number),
            "deleted": False,
        }
        producer.produce(
            topic,
            key=json.dumps(key, separators=(",", ":")),
            value=json.dumps(value, separators=(",", ":")),
            partition=0,
        )
        producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise ProcessFailed("the schemas could not be written")


class RestProduce:
    name = "rest-produce"
    server_names = SIDES
    about = f"{CONNECTIONS} clients produce JSON of 100 B through a proxy, {RECORDS_PER_REQUEST} records a request"
    rows = (
        Row(
            "records",
            f"REST produce of JSON, 100 B, {RECORDS_PER_REQUEST} records a request",
            "records/s",
            "higher",
            2,
            "million records",
            sides=SIDES,
        ),
        Row("p99_ms", "… a request, p99", "ms", "lower", None, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1) if scale.karapace else 0

    def run(self, context: Context) -> Sample:
        server = context.server()
        with (
            temporary_topic(
                server, f"rest-{context.kind.name}-r{context.round_number}-6p", partition_count=6
            ) as topic,
            rest_proxy(context) as service,
        ):
            requests = [produce_request(topic, number) for number in range(CONNECTIONS)]
            done = ask_all_the_time(context, service, requests)
            sent, found = int(done["answered"]) * RECORDS_PER_REQUEST, records_in(server.bootstrap, topic, 6)
            if sent != found:
                raise ProcessFailed(f"{sent} records were acknowledged, {found} are in the topic")
        return Sample(
            {"records": done["per_second"] * RECORDS_PER_REQUEST, "p99_ms": done["p99_ms"]},
            {"records": done["cpu_seconds"] * 1000 / RECORDS_PER_REQUEST},
        )


def produce_request(topic: str, number: int) -> dict[str, str]:
    records = [
        {
            "value": {
                "id": number * RECORDS_PER_REQUEST + each,
                "item": f"bio-impedance meter {each:08}",
                "price": 12.25,
                "paid": each % 2 == 0,
                "shop": f"shop {number:03}",
            }
        }
        for each in range(RECORDS_PER_REQUEST)
    ]
    body = json.dumps({"records": records})
    return {"method": "POST", "path": f"/topics/{topic}", "content_type": JSON_RECORDS_TYPE, "body": body}


def records_in(bootstrap: str, topic: str, partition_count: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count", "log_level": 4})
    try:
        marks = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)
            for number in range(partition_count)
        ]
    finally:
        consumer.close()
    return sum(high - low for low, high in marks)
