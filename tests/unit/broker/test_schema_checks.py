"""Schemas that a batch names: found in its records, asked for once, remembered, and what happens while the registry is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from penstock.broker.schemas import checks as module
from penstock.broker.schemas.checks import NamedIds, Registered, RegistryAway, SchemaChecks, schema_ids
from penstock.broker.schemas.registry import Registry
from penstock.config.loading import load
from penstock.config.option import ConfigError
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import HEADER_SIZE
from penstock.records.build import build_batch
from penstock.records.walk import STEP_RECORDS
from penstock.runtime.pools import Pools
from penstock.storage.options import SchemaValidation

VALUES = SchemaValidation(None, "TopicNameStrategy")
BOTH = SchemaValidation("RecordNameStrategy", "TopicRecordNameStrategy")


class ManualClock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def advance(self, seconds: float) -> None:
        self.now_s += seconds

    def monotonic(self) -> float:
        return self.now_s

    def since_boot(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return int(self.now_s * 1000)


def ids_in(
    records: list[tuple[bytes | None, bytes | None]], validation: SchemaValidation = VALUES
) -> NamedIds:
    plain = build_batch([(key, value, (("h", b"x"),), 5) for key, value in records])[HEADER_SIZE:]
    steps = schema_ids(bytes(plain), len(records), validation)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: NamedIds = done.value
            return found


def framed(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"rest"


class FakeRegistry:
    def __init__(self) -> None:
        self.known: dict[int, Registered] = {}
        self.asked: list[int] = []
        self.is_away = False

    def registered(self, schema_id: int, needs_name: bool) -> Registered:
        self.asked.append(schema_id)
        if self.is_away:
            raise RegistryAway("cannot reach it")
        return self.known.get(schema_id, Registered(frozenset()))


def with_checks(
    work: Callable[[SchemaChecks, FakeRegistry, ManualClock], Awaitable[None]], **given: str
) -> None:
    async def run() -> None:
        config, _ = load({f"penstock.schema.validation.{name}": value for name, value in given.items()})
        pools, clock, registry = Pools(asyncio.get_running_loop()), ManualClock(), FakeRegistry()
        checks = SchemaChecks(config, clock, pools.registry)
        checks._registry = registry  # type: ignore[assignment]
        try:
            await work(checks, registry, clock)
        finally:
            pools.close()

    asyncio.run(run())


def test_each_schema_is_found_with_the_first_record_that_names_it() -> None:
    found = ids_in([(None, framed(7)), (b"k", None), (b"k", framed(2**31 - 1)), (b"k", framed(7))])
    assert found == NamedIds({}, {7: 0, 2**31 - 1: 2})
    assert ids_in([(framed(1), framed(2))], BOTH) == NamedIds({1: 0}, {2: 0})


@pytest.mark.parametrize("value", [b"", b"\0\0\0\1", b'{"a": 1}', b"\1" * 16, b"\2" * 20])
def test_a_value_that_names_no_schema_is_refused_with_its_place(value: bytes) -> None:
    with pytest.raises(ApiError, match=r"the value of record 1 does not begin with the id") as caught:
        ids_in([(b"k", framed(1)), (b"k", value)])
    assert (caught.value.code, caught.value.record) == (ErrorCode.INVALID_RECORD, 1)


def test_a_value_may_name_its_schema_by_guid() -> None:
    guid = UUID("00112233-4455-6677-8899-aabbccddeeff")
    assert ids_in([(None, framed(7)), (None, b"\1" + guid.bytes + b"rest")]) == NamedIds({}, {7: 0, guid: 1})


def test_a_long_batch_is_walked_in_steps() -> None:
    plain = build_batch([(None, framed(1), (), 5)] * (STEP_RECORDS * 3))[HEADER_SIZE:]
    assert len(list(schema_ids(bytes(plain), STEP_RECORDS * 3, VALUES))) == 3


def test_what_the_registry_said_is_remembered() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        registry.known[7] = Registered(frozenset({"orders-value"}))
        for _ in range(3):
            await asyncio.gather(*(checks.check("orders", VALUES, NamedIds({}, {7: 0})) for _ in range(5)))
        assert len(registry.asked) == 1
        with pytest.raises(ApiError, match="names schema 7, which is not registered under bills-value"):
            await checks.check("bills", VALUES, NamedIds({}, {7: 3}))

    with_checks(work)


def test_a_schema_that_is_registered_now_is_known_soon() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        for _ in range(2):
            with pytest.raises(ApiError) as caught:
                await checks.check("orders", VALUES, NamedIds({}, {7: 3}))
            assert (caught.value.code, caught.value.record) == (ErrorCode.INVALID_RECORD, 3)
        assert registry.asked == [7]
        registry.known[7] = Registered(frozenset({"orders-value"}))
        clock.advance(module.MISSING_KEPT_S + 0.1)
        await checks.check("orders", VALUES, NamedIds({}, {7: 3}))

    with_checks(work)


def test_what_is_missing_in_one_subject_is_looked_for_in_another() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        registry.known[7] = Registered(frozenset({"orders-value"}))
        await checks.check("orders", VALUES, NamedIds({}, {7: 0}))
        registry.known[7] = Registered(frozenset({"orders-value", "bills-value"}))
        await checks.check("bills", VALUES, NamedIds({}, {7: 0}))

    with_checks(work)


def test_strategies_by_record_ask_for_its_name() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        registry.known[1] = Registered(frozenset({"shop.Key"}), "shop.Key")
        registry.known[2] = Registered(frozenset({"orders-shop.Order"}), "shop.Order")
        await checks.check("orders", BOTH, NamedIds({1: 0}, {2: 0}))
        with pytest.raises(ApiError, match="the subject of TopicRecordNameStrategy"):
            await checks.check("bills", BOTH, NamedIds({1: 0}, {2: 0}))

    with_checks(work)


def test_while_the_registry_is_away_producers_are_to_try_again() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        registry.is_away = True
        for _ in range(3):
            with pytest.raises(ApiError, match="whether schema 7 may be used is not known") as caught:
                await checks.check("orders", VALUES, NamedIds({}, {7: 0}))
            assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert registry.asked == [7], "it is not asked again at once"
        registry.is_away = False
        registry.known[7] = Registered(frozenset({"orders-value"}))
        clock.advance(module.AWAY_KEPT_S + 0.1)
        await checks.check("orders", VALUES, NamedIds({}, {7: 0}))
        registry.is_away = True
        clock.advance(module.KNOWN_KEPT_S + 1)
        await checks.check("orders", VALUES, NamedIds({}, {7: 0}))  # what it said last

    with_checks(work)


def test_unknown_schemas_may_be_let_in_while_the_registry_is_away() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        registry.is_away = True
        await checks.check("orders", VALUES, NamedIds({}, {7: 0}))

    with_checks(work, unavailable="allow")


def test_a_broker_without_a_registry_says_so() -> None:
    async def work(checks: SchemaChecks, registry: FakeRegistry, clock: ManualClock) -> None:
        checks._registry = None
        with pytest.raises(ApiError, match=r"no confluent\.schema\.registry\.url is set") as caught:
            await checks.check("orders", VALUES, NamedIds({}, {7: 0}))
        assert caught.value.code is ErrorCode.INVALID_CONFIG

    with_checks(work)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot read"),
        ("nothing", "holds no certificates"),
        ("-----BEGIN CERTIFICATE-----\n", "certificate"),
    ],
)
def test_a_trust_store_that_cannot_be_used_is_told_at_the_start(
    tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    config, _ = load(
        {
            "confluent.schema.registry.url": "https://127.0.0.1:1",
            "confluent.ssl.truststore.location": str(file),
        }
    )
    with pytest.raises(ConfigError, match=rf"(?i)^confluent\.ssl\.truststore\.location.*{words}"):
        Registry.of(config)
