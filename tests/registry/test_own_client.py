"""Penstock's own client of schema registries at Penstock's own registry."""

from uuid import UUID

import pytest

from penstock.client.errors import Refused
from penstock.client.schema_registry import SchemaRegistry
from penstock.schemas.model import SchemaReference
from tests.registry.registries import RegistryProcess, record


def test_what_it_registers_it_finds_again(registry: RegistryProcess) -> None:
    client = SchemaRegistry(registry.url)
    part = client.register("own-part", record("Part", "a"))
    whole = '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}'
    reference = SchemaReference("Part", "own-part", 1)
    whole_id = client.register("own/whole", whole, references=[reference])
    found = client.by_id(whole_id)
    assert (found.text, found.references) == (whole, (reference,))
    assert client.texts_of(found.references)["Part"].text == record("Part", "a")
    assert client.lookup("own-part", record("Part", "a")) == part
    assert client.latest("own/whole").id == whole_id
    assert client.version("own-part", 1).version == 1
    headers = {"Confluent-Accept-Unknown-Properties": "true"}
    guid = registry.ask("GET", f"/schemas/ids/{part}", headers=headers).json()["guid"]
    assert client.by_guid(UUID(guid)).text == record("Part", "a")
    assert client.subjects("own") == ["own-part", "own/whole"]
    assert client.versions("own/whole") == [1]
    with pytest.raises(Refused, match="not found"):
        client.by_id(10_000)
