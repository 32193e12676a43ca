"""AlterClientQuotas and DescribeClientQuotas, decided from an image and written to a tree."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.controller.client_quotas import (
    ANY,
    EXACT,
    IS_DEFAULT,
    alter_client_quotas,
    describe_client_quotas,
)
from penstock.controller.decision import Decision
from penstock.controller.scram_credentials import alter_scram_credentials
from penstock.metadata import znodes
from penstock.metadata.image import USER_CLIENTS, ClusterImage
from penstock.metadata.load import load_image, prepare_tree
from penstock.metadata.quotas import quotas_of
from penstock.metadata.tree import Create, MetadataTree
from penstock.model.errors import ApiError
from penstock.model.quotas import Entity, entity
from penstock.stores.embedded import open_store
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
    ResponseEntryData,
)
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.wire.messages.describe_client_quotas import ComponentData

ANA = entity(user="ana")
ANA_APP = entity(user="ana", client_id="app")


def entry(of: Entity | list[tuple[str, str | None]], **values: float | None) -> RequestEntryData:
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in of],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )


def alter(
    image: ClusterImage, *entries: RequestEntryData, notify: bool = False
) -> Decision[ResponseEntryData]:
    decision = alter_client_quotas(image, AlterClientQuotasRequest(entries=entries), notify=notify)
    image.apply_all(decision.changes)
    return decision


def image_with(quotas: dict[Entity, dict[str, float]]) -> ClusterImage:
    image = ClusterImage()
    for of, values in quotas.items():
        assert not alter(image, entry(of, **values)).results[0].error_code
    return image


def test_what_is_set_is_found_and_what_is_removed_is_not() -> None:
    image = image_with({ANA: {"producer_byte_rate": 1024.0, "request_percentage": 12.5}})
    assert quotas_of(image) == {ANA: {"producer_byte_rate": 1024.0, "request_percentage": 12.5}}
    alter(image, entry(ANA, request_percentage=None))
    assert quotas_of(image) == {ANA: {"producer_byte_rate": 1024.0}}
    alter(image, entry(ANA, producer_byte_rate=None))
    assert quotas_of(image) == {}


def test_the_nodes_are_those_of_kafka() -> None:
    decision = alter(ClusterImage(), entry(ANA_APP, producer_byte_rate=1024.0), notify=True)
    assert decision.ops == [
        Create("/config/users/ana", b""),
        Create("/config/users/ana/clients", b""),
        Create("/config/users/ana/clients/app", b'{"version":1,"config":{"producer_byte_rate":"1024"}}'),
        Create(
            "/config/changes/config_change_",
            b'{"version":2,"entity_path":"users/ana/clients/app"}',
            sequence=True,
        ),
    ]


def test_names_are_escaped_in_paths_and_defaults_are_not() -> None:
    image = ClusterImage()
    decision = alter(
        image,
        entry(entity(user="CN=a/b", client_id=None), request_percentage=50.0),
        entry(entity(client_id="läufer*"), consumer_byte_rate=1.0),
        entry(entity(ip=None), connection_creation_rate=5.0),
    )
    assert [op.path for op in decision.ops] == [
        "/config/users/CN%3Da%2Fb",
        "/config/users/CN%3Da%2Fb/clients",
        "/config/users/CN%3Da%2Fb/clients/<default>",
        "/config/clients/l%C3%A4ufer%2A",
        "/config/ips/<default>",
    ]
    assert set(quotas_of(image)) == {
        entity(user="CN=a/b", client_id=None),
        entity(client_id="läufer*"),
        entity(ip=None),
    }


CASES: list[tuple[RequestEntryData, str]] = [
    (entry([]), "Invalid empty client quota entity"),
    (entry([("group", "g")]), "Unhandled client quota entity type: group"),
    (entry([("user", "")]), "Empty user not supported"),
    (entry([("user", "a"), ("user", "b")]), "Invalid client quota entity, duplicate entity entry user"),
    (
        entry([("ip", "10.0.0.1"), ("user", "b")]),
        "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
    ),
    (entry([("ip", "nowhere")]), "nowhere is not a valid IP or resolvable host."),
    (entry(ANA, bad=1.0), "Invalid configuration key bad"),
    (entry(ANA, connection_creation_rate=1.0), "Invalid configuration key connection_creation_rate"),
    (entry(entity(ip=None), producer_byte_rate=1.0), "Invalid configuration key producer_byte_rate"),
    (entry(ANA, producer_byte_rate=0.0), "Quota producer_byte_rate must be greater than 0"),
    (entry(ANA, request_percentage=float("nan")), "Quota request_percentage must be greater than 0"),
    (entry(ANA, producer_byte_rate=1.5), "producer_byte_rate cannot be a fractional value."),
    (entry(ANA, producer_byte_rate=1e30), "Proposed value for producer_byte_rate is too large for a LONG."),
    (
        entry(entity(ip=None), connection_creation_rate=1e10),
        "Proposed value for connection_creation_rate is too large for an INT.",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), CASES, ids=[message for _, message in CASES])
def test_a_wrong_entry_is_refused_and_the_others_are_not(wrong: RequestEntryData, message: str) -> None:
    image = ClusterImage()
    results = alter(image, wrong, entry(ANA, producer_byte_rate=5.0)).results
    assert (results[0].error_code, results[0].error_message) == (42, message)
    assert not results[1].error_code
    assert quotas_of(image) == {ANA: {"producer_byte_rate": 5.0}}


def test_validation_changes_nothing() -> None:
    request = AlterClientQuotasRequest(entries=[entry(ANA, producer_byte_rate=5.0)], validate_only=True)
    decision = alter_client_quotas(ClusterImage(), request, notify=True)
    assert (decision.ops, decision.changes, decision.results[0].error_code) == ([], [], 0)


def test_entries_for_one_entity_add_up() -> None:
    image = ClusterImage()
    alter(image, entry(ANA, producer_byte_rate=5.0), entry(ANA, consumer_byte_rate=6.0))
    assert quotas_of(image) == {ANA: {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0}}


EVERYTHING = [
    ANA,
    ANA_APP,
    entity(user="ana", client_id=None),
    entity(user=None),
    entity(user=None, client_id="app"),
    entity(user=None, client_id=None),
    entity(client_id="app"),
    entity(client_id=None),
    entity(ip="10.0.0.1"),
    entity(ip=None),
]
# What Apache Kafka 4.3.1 answers: see tests/tools/test_quotas_beside_kafka.py.
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool, list[int]]] = [
    ([], False, list(range(10))),
    ([], True, []),
    ([("user", EXACT, "ana")], False, [0, 1, 2]),
    ([("user", EXACT, "ana")], True, [0]),
    ([("user", IS_DEFAULT, None)], False, [3, 4, 5]),
    ([("user", ANY, None)], False, [0, 1, 2, 3, 4, 5]),
    ([("user", ANY, None)], True, [0, 3]),
    ([("client-id", ANY, None)], True, [6, 7]),
    ([("user", EXACT, "ana"), ("client-id", IS_DEFAULT, None)], True, [2]),
    ([("user", ANY, None), ("client-id", EXACT, "app")], True, [1, 4]),
    ([("ip", ANY, None)], False, [8, 9]),
    ([("ip", EXACT, "10.0.0.9")], False, []),
]


@pytest.mark.parametrize(("components", "strict", "expected"), FILTERS)
def test_filters_find_what_matches(
    components: list[tuple[str, int, str | None]], strict: bool, expected: list[int]
) -> None:
    image = image_with(
        {
            of: {"connection_creation_rate" if of in EVERYTHING[8:] else "producer_byte_rate": 1.0}
            for of in EVERYTHING
        }
    )
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    found = {of for of, _ in describe_client_quotas(image, asked, strict=strict)}
    assert found == {EVERYTHING[place] for place in expected}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "a")], 42),
        ([("group", EXACT, "a")], 35),
        ([("user", EXACT, None)], 42),
        ([("user", IS_DEFAULT, "a")], 42),
        ([("user", 7, "a")], 42),
        ([("user", EXACT, "a"), ("user", ANY, None)], 42),
        ([("user", EXACT, "a"), ("ip", ANY, None)], 42),
    ],
)
def test_a_filter_that_cannot_be_is_refused(components: list[tuple[str, int, str | None]], code: int) -> None:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    with pytest.raises(ApiError) as refused:
        describe_client_quotas(ClusterImage(), asked, strict=False)
    assert refused.value.code == code


def credential(name: str) -> AlterUserScramCredentialsRequest:
    upsertion = ScramCredentialUpsertion(
        name=name, mechanism=2, iterations=4096, salt=b"salt", salted_password=b"x" * 64
    )
    return AlterUserScramCredentialsRequest(upsertions=[upsertion])


def test_quotas_and_passwords_of_a_user_keep_out_of_each_others_way(tmp_path: Path) -> None:
    async def make(tree: MetadataTree, image: ClusterImage, decision: Decision[object]) -> None:
        await tree.multi(decision.ops)
        image.apply_all(decision.changes)
        loaded = await load_image(tree)
        assert loaded.configs.get("users") == image.configs.get("users")
        assert quotas_of(loaded) == quotas_of(image)

    async def story() -> None:
        tree = open_store(str(tmp_path))
        await prepare_tree(tree, new_cluster_id="cluster")
        image = ClusterImage()

        def quota(of: Entity, **values: float | None) -> Decision[ResponseEntryData]:
            return alter_client_quotas(
                image, AlterClientQuotasRequest(entries=[entry(of, **values)]), notify=True
            )

        await make(tree, image, quota(ANA_APP, producer_byte_rate=1.0))
        await make(tree, image, alter_scram_credentials(image, credential("ana"), notify=True))
        await make(tree, image, quota(ANA, consumer_byte_rate=2.0))
        await make(tree, image, quota(entity(user="ana", client_id="b"), consumer_byte_rate=2.0))
        assert set(image.overrides("users", "ana")) == {"SCRAM-SHA-512", "consumer_byte_rate"}
        await make(tree, image, quota(ANA, consumer_byte_rate=None))
        assert set(image.overrides("users", "ana")) == {"SCRAM-SHA-512"}
        await make(tree, image, quota(ANA, consumer_byte_rate=3.0))
        removal = AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="ana", mechanism=2)]
        )
        await make(tree, image, alter_scram_credentials(image, removal, notify=True))
        assert dict(image.overrides("users", "ana")) == {"consumer_byte_rate": "3"}
        assert quotas_of(image)[ANA_APP] == {"producer_byte_rate": 1.0}
        await tree.close()

    asyncio.run(story())


def test_paths_below_a_user_that_hold_no_configs_are_left_out() -> None:
    assert znodes.config_entity("/config/users/ana") == ("users", "ana")
    assert znodes.config_entity("/config/users/ana/clients") is None
    assert znodes.config_entity("/config/users/ana/clients/app") == ("users/clients", "ana/clients/app")
    assert znodes.config_entity("/config/users/ana/clients/app/more") is None
    assert znodes.config_entity("/config/users") is None


def test_who_has_clients_is_looked_up_once_for_a_request() -> None:
    """Once for each new user takes seconds of the loop where ten thousands have some."""
    looks = []

    class Names(dict[str, dict[str, str]]):
        def __iter__(self) -> Iterator[str]:
            looks.append(1)
            return super().__iter__()

    image = image_with({ANA_APP: {"producer_byte_rate": 1.0}})
    image.configs[USER_CLIENTS] = Names(image.configs[USER_CLIENTS])
    entries = [entry(entity(user=f"user-{n}", client_id="app"), producer_byte_rate=1.0) for n in range(20)]
    made = alter_client_quotas(image, AlterClientQuotasRequest(entries=entries), notify=False).ops
    assert len(looks) == 1
    assert len({op.path for op in made}) == len(made) == 3 * 20
