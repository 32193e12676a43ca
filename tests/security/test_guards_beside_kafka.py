"""Every API, asked by every kind of principal, at Apache Kafka and at Penstock: the same is refused, and the same hidden."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import pytest

from penstock.model.acl import (
    CLUSTER_NAME,
    TYPES,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.wire.apis import APIS
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest
from penstock.wire.schema import Struct
from simulation.apache.apache_kafka import ApacheKafka
from tests.security.guard_cases import (
    CASES,
    GROUP,
    HIDDEN,
    OTHER_GROUP,
    SEEN,
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
NOT_WALKED = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS}
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


NOT_OPEN = {case.label for case in CASES if "token" in case.label}
"""Who has not logged in has no delegation tokens."""
SOMETHING = (
    "produce", "produce by id", "fetch", "fetch by id", "list offsets", "delete records", "metadata", "metadata by id",
    "metadata of all", "describe topic partitions", "describe all topic partitions", "create partitions", "offset commit",
    "offset fetch", "offset fetch of all", "describe groups", "list groups", "init producer id", "describe configs",
)  # fmt: skip
"""Cases that are asked by those who have rules of other forms."""
SPECIAL_TOPICS = ("closed", "open")


def on(kind: ResourceType, name: str, *, prefixed: bool = False) -> Pattern:
    return Pattern(kind, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)


def rule(
    user: str, operation: Operation, *, host: str = "*", permission: Permission = Permission.ALLOW
) -> Rule:
    return Rule(f"User:{user}", host, operation, permission)


HERE, ELSEWHERE = "127.0.0.1", "10.9.9.9"
SPECIAL: dict[str, list[tuple[Pattern, Rule]]] = {
    "prefixed": [
        (on(ResourceType.TOPIC, "se", prefixed=True), rule("prefixed", Operation.ALL)),
        (on(ResourceType.GROUP, "read", prefixed=True), rule("prefixed", Operation.READ)),
    ],
    "denied-by-a-prefix": [
        (on(ResourceType.TOPIC, SEEN), rule("denied-by-a-prefix", Operation.ALL)),
        (
            on(ResourceType.TOPIC, "see", prefixed=True),
            rule("denied-by-a-prefix", Operation.WRITE, permission=Permission.DENY),
        ),
    ],
    "here": [
        (on(ResourceType.TOPIC, SEEN), rule("here", Operation.ALL, host=HERE)),
        (on(ResourceType.GROUP, GROUP), rule("here", Operation.ALL, host=HERE)),
    ],
    "elsewhere": [
        (on(ResourceType.TOPIC, SEEN), rule("elsewhere", Operation.ALL, host=ELSEWHERE)),
        (on(ResourceType.GROUP, GROUP), rule("elsewhere", Operation.ALL, host=ELSEWHERE)),
    ],
    "denied-here": [
        (on(ResourceType.TOPIC, SEEN), rule("denied-here", Operation.ALL)),
        (
            on(ResourceType.TOPIC, SEEN),
            rule("denied-here", Operation.READ, host=HERE, permission=Permission.DENY),
        ),
        (
            on(ResourceType.TOPIC, HIDDEN),
            rule("denied-here", Operation.READ, host=ELSEWHERE, permission=Permission.DENY),
        ),
        (on(ResourceType.TOPIC, HIDDEN), rule("denied-here", Operation.ALL)),
    ],
    "with-everybody": [
        (on(ResourceType.TOPIC, "closed"), rule("with-everybody", Operation.ALL)),
        (on(ResourceType.TOPIC, "closed"), rule("*", Operation.READ, permission=Permission.DENY)),
        (on(ResourceType.TOPIC, "open"), rule("*", Operation.READ)),
    ],
}
OPEN_RULES = [
    (on(ResourceType.TOPIC, HIDDEN), rule("somebody", Operation.READ)),
    (on(ResourceType.GROUP, OTHER_GROUP), rule("somebody", Operation.ALL)),
    (on(ResourceType.TRANSACTIONAL_ID, TRANSACTION), rule("ANONYMOUS", Operation.DESCRIBE)),
]
"""Where everybody may use what has no rule."""
ALL_USERS = {user.name: user for number, case in enumerate(CASES) for user in users_of(number, case)} | {
    name: User(name) for name in SPECIAL
}


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

    def create_rules(self, rules: list[AclCreation]) -> None:
        answer = self.ask("admin", 3, lambda _: CreateAclsRequest(creations=rules))
        assert not any(result.error_code for result in answer.results), answer

    def until_listed(self, token_id: str) -> None:
        """Kafka's broker may know of a token some time after it was made."""
        deadline = time.monotonic() + WAIT_S
        every = partial(request_of, "describe_delegation_token", owners=None)
        while token_id not in {token.token_id for token in self.ask("admin", 3, lambda _: every()).tokens}:
            assert time.monotonic() < deadline, token_id
            time.sleep(0.1)

    def prepare(self, *, topics: Sequence[str] = (), has_token: bool = True) -> None:
        """Topics, a group with offsets, a transaction that is open: as both have them."""

        def asked(version: int, api: str, **fields: Any) -> Any:
            return self.ask("admin", version, lambda _: request_of(api, **fields))

        made = [
            {"name": name, "num_partitions": 1, "replication_factor": 1}
            for name in (*TOPICS, *OLD_TOPICS, *topics)
        ]
        if has_token:
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
        rules = kafka_rules(our_rules())
        for start in range(0, len(rules), RULES_AT_ONCE):
            found.kafka.create_rules(rules[start : start + RULES_AT_ONCE])
        for broker in found:
            broker.prepare(topics=SPECIAL_TOPICS)
        yield found


class Anybody(Broker):
    """One that does not ask who somebody is."""

    def ask(self, user: str, version: int, make: Callable[[Side], Any]) -> Any:
        return super().ask("", version, make)


@pytest.fixture(scope="module")
def open_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Without logins; everybody may use what has no rule."""
    directory = tmp_path_factory.mktemp("open")
    shared = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:admin",
    }
    properties = {"authorizer.class.name": AUTHORIZER, **shared}
    with ExitStack() as stack:
        ours = stack.enter_context(
            GuardedBroker(directory / "ours", [], listener="PLAINTEXT", **{**shared, "node.id": "1"})
        )
        kafka = stack.enter_context(ApacheKafka(directory / "kafka", properties=properties, quick=True))
        found = Pair(Anybody(kafka.port), Anybody(ours.port))
        for broker in found:
            broker.prepare(has_token=False)
            broker.create_rules(kafka_rules(by_pattern(OPEN_RULES)))
        yield found


def by_pattern(given: Iterable[tuple[Pattern, Rule]]) -> dict[Pattern, list[Rule]]:
    rules: dict[Pattern, list[Rule]] = {}
    for pattern, one in given:
        rules.setdefault(pattern, []).append(one)
    return rules


def our_rules() -> dict[Pattern, list[Rule]]:
    rules: dict[Pattern, list[Rule]] = {}
    for user in ALL_USERS.values():
        for permission, rights in ((Permission.ALLOW, user.allowed), (Permission.DENY, user.denied)):
            for right in rights:
                one = rule(user.name, right.operation, permission=permission)
                rules.setdefault(Pattern(right.resource_type, right.name), []).append(one)
    for given in SPECIAL.values():
        for pattern, some in by_pattern(given).items():
            rules.setdefault(pattern, []).extend(some)
    return rules


def kafka_rules(of_patterns: dict[Pattern, list[Rule]]) -> list[AclCreation]:
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
        for pattern, rules in of_patterns.items()
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
        compare(pair, user.name, case)


@pytest.mark.parametrize("user", SPECIAL)
def test_rules_of_every_form_count_as_in_kafka(pair: Pair, user: str) -> None:
    """On names that begin so, from an address, and of everybody."""
    for case in CASES:
        if case.label in SOMETHING:
            compare(pair, user, about(case, SPECIAL_TOPICS) if user == "with-everybody" else case)


def about(case: Case, topics: Sequence[str]) -> Case:
    """The same of other topics than those that are seen and hidden."""
    names = dict(zip(TOPICS, topics, strict=True))

    def make(side: Side) -> Any:
        ids = {**side.ids, **{name: side.ids[other] for name, other in names.items() if other in side.ids}}
        return renamed(case.make(side._replace(ids=ids)), names)

    return case._replace(make=make)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Struct):
        for field in value.__slots__:
            setattr(value, field, renamed(getattr(value, field), names))
    elif isinstance(value, list):
        return [renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.label not in NOT_OPEN],
    ids=lambda case: case.label.replace(" ", "-"),
)
def test_who_has_not_logged_in_may_use_what_has_no_rule_as_with_kafka(open_pair: Pair, case: Case) -> None:
    compare(open_pair, "ANONYMOUS", case)


def test_a_rule_on_all_topics_closes_each_of_them_as_with_kafka(open_pair: Pair) -> None:
    everywhere = by_pattern([(on(ResourceType.TOPIC, "*"), rule("somebody", Operation.READ))])
    for broker in open_pair:
        broker.create_rules(kafka_rules(everywhere))
    for case in CASES:
        if case.label in SOMETHING:
            compare(open_pair, "ANONYMOUS", case)


def compare(pair: Pair, user: str, case: Case) -> None:
    kafkas, ours = (lines(gist(broker.ask_about(user, case), broker.ids)) for broker in pair)
    wrong = [f"Kafka: {each}" for each in kafkas if each not in ours]
    wrong += [f"Penstock: {each}" for each in ours if each not in kafkas]
    assert not wrong, f"{user}, {case.label}: " + "; ".join(wrong)


def lines(answer: Any, path: str = "") -> list[str]:
    """One for each field: a difference is easily seen."""
    if isinstance(answer, dict):
        return [line for name, each in answer.items() for line in lines(each, f"{path}.{name}")]
    if isinstance(answer, list):
        return [line for place, each in enumerate(answer) for line in lines(each, f"{path}[{place}]")]
    return [f"{path} = {answer!r}"]
