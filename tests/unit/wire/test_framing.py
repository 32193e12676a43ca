import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.api_keys import ApiKey
from penstock.wire.apis import APIS
from penstock.wire.errors import Malformed
from penstock.wire.framing import UnsupportedApi, read_header, response_prefix


def header(api_key: int, version: int, client_id: bytes | None = b"me", tags: bytes = b"") -> memoryview:
    length = -1 if client_id is None else len(client_id)
    return memoryview(struct.pack(">hhih", api_key, version, 99, length) + (client_id or b"") + tags)


def test_a_classic_header_ends_behind_the_client_id() -> None:
    read = read_header(header(ApiKey.METADATA, 5))
    assert (read.correlation_id, read.client_id, read.body_offset, read.is_flexible) == (99, "me", 12, False)


def test_a_flexible_header_has_tagged_fields_which_are_stepped_over() -> None:
    read = read_header(header(ApiKey.METADATA, 12, tags=b"\x01\x05\x02ab"))
    assert (read.is_flexible, read.body_offset) == (True, 17)


def test_a_header_full_of_tagged_fields_is_refused_before_they_are_stepped_over() -> None:
    tags = b"".join(bytes([number, 0]) for number in range(17))
    assert read_header(header(ApiKey.METADATA, 12, tags=b"\x10" + tags[:32])).body_offset == 45
    with pytest.raises(Malformed, match="17 tagged fields"):
        read_header(header(ApiKey.METADATA, 12, tags=b"\x11" + tags))


def test_version_0_of_controlled_shutdown_has_no_client_id() -> None:
    read = read_header(memoryview(struct.pack(">hhii", ApiKey.CONTROLLED_SHUTDOWN, 0, 99, 3)))
    assert (read.correlation_id, read.client_id, read.body_offset, read.is_flexible) == (99, None, 8, False)
    assert read_header(header(ApiKey.CONTROLLED_SHUTDOWN, 1)).client_id == "me"


def test_a_client_may_have_no_name() -> None:
    assert read_header(header(ApiKey.METADATA, 5, None)).client_id is None


def test_an_unknown_api_or_version_is_told_apart_from_a_broken_frame() -> None:
    with pytest.raises(UnsupportedApi, match="unknown API key 999"):
        read_header(header(999, 0))
    with pytest.raises(UnsupportedApi, match="metadata version 99"):
        read_header(header(ApiKey.METADATA, 99))


def test_api_versions_may_be_asked_in_any_version() -> None:
    assert read_header(header(ApiKey.API_VERSIONS, 77, tags=b"\x00")).api_version == 77


@pytest.mark.parametrize("length", [-2, -32768, 500])
def test_a_client_id_of_impossible_length_is_malformed(length: int) -> None:
    with pytest.raises(Malformed):
        read_header(memoryview(struct.pack(">hhih", 3, 1, 1, length) + b"abc"))


@given(st.binary(max_size=64))
def test_any_bytes_are_a_header_or_malformed(data: bytes) -> None:
    try:
        read_header(memoryview(data))
    except Malformed:
        pass


def test_responses_of_flexible_versions_have_tagged_fields_except_api_versions() -> None:
    assert response_prefix(read_header(header(ApiKey.METADATA, 5)), 10) == struct.pack(">ii", 14, 99)
    assert response_prefix(read_header(header(ApiKey.METADATA, 12, tags=b"\x00")), 10) == struct.pack(
        ">iib", 15, 99, 0
    )
    assert response_prefix(read_header(header(ApiKey.API_VERSIONS, 3, tags=b"\x00")), 10) == struct.pack(
        ">ii", 14, 99
    )


def test_every_api_of_the_table_has_messages_for_its_versions() -> None:
    from importlib import import_module

    for api in APIS.values():
        module = import_module(f"penstock.wire.messages.{api.name}")
        name = "".join(word.capitalize() for word in api.name.split("_"))
        low, high = getattr(module, f"{name}Request").VERSIONS
        assert low <= api.min_version <= api.max_version <= high, api.name
        assert api.flexible_from == getattr(module, f"{name}Request").FLEXIBLE_FROM, api.name
