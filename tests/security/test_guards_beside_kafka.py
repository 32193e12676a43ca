"""Every API, asked by every kind of principal, at Apache Kafka and at Penstock: the same is refused, and the same hidden."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import pytest

from penstock.model.acl import CLUSTER_NAME, TYPES, Operation, Pattern, Permission, ResourceType, Rule
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.wire.apis import APIS
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest
from simulation.apache.apache_kafka import ApacheKafka
from tests.security.guard_cases import (
    CASES,
    GROUP,
    OTHER_GROUP,
    TOPICS,
    TRANSACTION,
    Case,
    Right,
    Side,
    gist,
    request_of,
)
from tests.security.guarded_broker import AUTHORIZER, LISTENER, PLAIN, GuardedBroker, ask

WAIT_S = 60.0
UNKNOWN_TOPIC, NO_LEADER_YET = 3, 5
OLD_TOPICS = tuple(f"old-{number}" for number in range(7))
# Not walked: they are logins or between brokers; tests/security/test_guarded_cluster.py has those between brokers.
NOT_WALKED = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS, ApiKey.PUSH_TELEMETRY}
RULES_AT_ONCE = 1000
EVERYTHING = (
    *(Right(Operation.ALL, kind, "*") for kind in TYPES if kind is not ResourceType.CLUSTER),
    Right(Operation.ALL, ResourceType.CLUSTER, CLUSTER_NAME),
)
ALL_DESCRIBED = tuple(right._replace(operation=Operation.DESCRIBE) for right in EVERYTHING)


class User(NamedTuple):
    name: str
    allowed: tuple[Right, ...] = ()
    denied: tuple[Right, ...] = ()


def users_of(number: int, case: Case) -> list[User]:
    """Who asks, in this order: who may do it comes last."""
    users = [User("nobody"), User("describer", ALL_DESCRIBED)]
    users += [
        User(f"denied-{number}-{place}", EVERYTHING, (right,)) for place, right in enumerate(case.rights)
    ]
    if len(case.rights) > 1:
        users += [
            User(f"less-{number}-{place}", tuple(each for each in case.rights if each is not right))
            for place, right in enumerate(case.rights)
        ]
    return [*users, User(f"right-{number}", case.rights), User("admin")]


ALL_USERS = {user.name: user for number, case in enumerate(CASES) for user in users_of(number, case)}


class Broker:
    """One of the two."""

    def __init__(self, port: int) -> None:
        self.address = Address("127.0.0.1", port)
        self.ids: dict[str, bytes] = {}
        self.token = b""

    def ask(self, user: str, version: int, make: Callable[[Side], Any]) -> Any:
        """The answer, or 'closed'."""
        try:
            return ask(self.address, user, make(Side(self.ids, self.token)), version)
        except ConnectionError:
            return "closed"

    def ask_about(self, user: str, case: Case) -> Any:
        """The answer when what it creates is there: Kafka answers before."""
        deadline = time.monotonic() + WAIT_S
        answer = self.ask(user, case.version, case.make)
        while "that creates" in case.label and any(
            topic.error_code in (UNKNOWN_TOPIC, NO_LEADER_YET) for topic in answer.topics
        ):
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
            answer = self.ask(user, case.version, case.make)
        if getattr(answer, "token_id", ""):
            self.until_listed(answer.token_id)
        return answer

    def until_listed(self, token_id: str) -> None:
        """Kafka's broker may know of a token some time after it was made."""
        deadline = time.monotonic() + WAIT_S
        every = partial(request_of, "describe_delegation_token", owners=None)
        while token_id not in {token.token_id for token in self.ask("admin", 3, lambda _: every()).tokens}:
            assert time.monotonic() < deadline, token_id
            time.sleep(0.1)

    def prepare(self) -> None:
        """Topics, a group with offsets, a transaction that is open: as both have them."""

        def asked(version: int, api: str, **fields: Any) -> Any:
            return self.ask("admin", version, lambda _: request_of(api, **fields))

        made = [
            {"name": name, "num_partitions": 1, "replication_factor": 1} for name in (*TOPICS, *OLD_TOPICS)
        ]
        token = asked(3, "create_delegation_token", max_lifetime_ms=-1)
        assert not token.error_code
        self.token = token.hmac
        self.until_listed(token.token_id)
        created = asked(7, "create_topics", topics=made)
        assert not any(topic.error_code for topic in created.topics), created
        self.ids = {topic.name: topic.topic_id for topic in created.topics}
        for key_type, keys in ((0, [GROUP, OTHER_GROUP]), (1, [TRANSACTION])):
            self.until_good(
                lambda kind=key_type, keys=keys: (
                    asked(4, "find_coordinator", key_type=kind, coordinator_keys=keys).coordinators
                )
            )
        for group in (GROUP, OTHER_GROUP):
            offsets = [
                {"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
                for name in TOPICS
            ]
            self.until_good(
                lambda group=group, offsets=offsets: [
                    part
                    for topic in asked(9, "offset_commit", group_id=group, topics=offsets).topics
                    for part in topic.partitions
                ]
            )
        begun: list[Any] = []

        def begin() -> list[Any]:
            begun[:] = [
                asked(4, "init_producer_id", transactional_id=TRANSACTION, transaction_timeout_ms=600_000)
            ]
            return begun

        self.until_good(begin)
        added = asked(
            3,
            "add_partitions_to_txn",
            v3_and_below_transactional_id=TRANSACTION,
            v3_and_below_producer_id=begun[0].producer_id,
            v3_and_below_producer_epoch=begun[0].producer_epoch,
            v3_and_below_topics=[{"name": name, "partitions": [0]} for name in TOPICS],
        )
        errors = [
            part.partition_error_code
            for topic in added.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        ]
        assert errors == [0, 0]

    @staticmethod
    def until_good(ask: Callable[[], list[Any]]) -> None:
        deadline = time.monotonic() + WAIT_S
        answers = ask()
        while any(each.error_code for each in answers):
            assert time.monotonic() < deadline, answers
            time.sleep(0.1)
            answers = ask()


class Pair(NamedTuple):
    kafka: Broker
    ours: Broker


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("guards")
    shared = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "delegation.token.secret.key": "of-both",
    }
    names = " ".join(f'user_{name}="{name}"' for name in ALL_USERS)
    login = {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": f"{PLAIN} {names};"}
    properties = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
        **shared,
    }
    with ExitStack() as stack:
        ours = stack.enter_context(
            GuardedBroker(directory / "ours", list(ALL_USERS), **{**shared, "node.id": "1"})
        )
        kafka = stack.enter_context(
            ApacheKafka(directory / "kafka", listeners={LISTENER: login}, properties=properties, quick=True)
        )
        ours.set_rules(our_rules())
        found = Pair(Broker(int(kafka.address(LISTENER).rpartition(":")[2])), Broker(ours.port))
        rules = kafka_rules()
        for start in range(0, len(rules), RULES_AT_ONCE):
            some = CreateAclsRequest(creations=rules[start : start + RULES_AT_ONCE])
            answer = found.kafka.ask("admin", 3, lambda _, some=some: some)
            assert not any(result.error_code for result in answer.results)
        for broker in found:
            broker.prepare()
        yield found


def our_rules() -> dict[Pattern, list[Rule]]:
    rules: dict[Pattern, list[Rule]] = {}
    for user in ALL_USERS.values():
        for permission, rights in ((Permission.ALLOW, user.allowed), (Permission.DENY, user.denied)):
            for right in rights:
                rule = Rule(f"User:{user.name}", "*", right.operation, permission)
                rules.setdefault(Pattern(right.resource_type, right.name), []).append(rule)
    return rules


def kafka_rules() -> list[AclCreation]:
    return [
        AclCreation(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal=rule.principal,
            host=rule.host,
            operation=rule.operation,
            permission_type=rule.permission,
        )
        for pattern, rules in our_rules().items()
        for rule in rules
    ]


def test_every_api_is_walked() -> None:
    walked = {case.make(Side({})).API_KEY for case in CASES}
    clients = {key for key, api in APIS.items() if not api.between_brokers}
    assert clients - walked - NOT_WALKED == set()


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.label.replace(" ", "-") for case in CASES])
def test_each_principal_gets_what_kafka_gives_it(pair: Pair, number: int) -> None:
    case = CASES[number]
    for user in users_of(number, case):
        kafkas, ours = (lines(gist(broker.ask_about(user.name, case), broker.ids)) for broker in pair)
        wrong = [f"Kafka: {each}" for each in kafkas if each not in ours]
        wrong += [f"Penstock: {each}" for each in ours if each not in kafkas]
        assert not wrong, f"{user.name}: " + "; ".join(wrong)


def lines(answer: Any, path: str = "") -> list[str]:
    """One for each field: a difference is easily seen."""
    if isinstance(answer, dict):
        return [line for name, each in answer.items() for line in lines(each, f"{path}.{name}")]
    if isinstance(answer, list):
        return [line for place, each in enumerate(answer) for line in lines(each, f"{path}[{place}]")]
    return [f"{path} = {answer!r}"]
