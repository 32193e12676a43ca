"""Names that nobody has look like those of users."""

from collections import Counter

import pytest

from penstock.security.decoys import DEFAULT_SHAPE, Shape, decoy, shape_of
from penstock.security.scram import MECHANISMS, credential_of, salted
from penstock.security.tokens import salt_of, token_decoy

KEY = b"of this cluster alone"
NAMES = [f"nobody-{number}" for number in range(1000)]


def shapes_of(shapes: dict[Shape, int]) -> dict[str, Shape]:
    found = {}
    for name in NAMES:
        made = decoy(KEY, "SCRAM-SHA-256", name, shapes)
        found[name] = Shape(made.iterations, len(made.salt))
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("salt_bytes", [1, 16, 24, 25, 64, 200])
def test_the_shape_of_a_credential_is_what_a_client_sees_of_it(mechanism: str, salt_bytes: int) -> None:
    salt = bytes(salt_bytes)
    hashed = salted(mechanism, "pencil", salt=salt, iterations=4096)
    shape = shape_of(str(credential_of(mechanism, hashed, salt=salt, iterations=4096)))
    assert shape == Shape(4096, salt_bytes)
    made = decoy(KEY, mechanism, "nobody", {shape: 1})
    assert (made.iterations, len(made.salt)) == (4096, salt_bytes)


@pytest.mark.parametrize("text", ["", "salt=,iterations=", "salt=?,iterations=4096", "iterations=4096"])
def test_what_cannot_be_read_has_no_shape(text: str) -> None:
    assert shape_of(text) is None


def test_without_users_a_decoy_looks_like_a_user_that_we_would_make() -> None:
    assert set(shapes_of({}).values()) == {DEFAULT_SHAPE}


def test_decoys_have_the_shapes_of_users_as_often_as_users_have_them() -> None:
    common, rare = Shape(4096, 24), Shape(8192, 64)
    counts = Counter(shapes_of({common: 30, rare: 10}).values())
    assert set(counts) == {common, rare}
    assert 200 < counts[rare] < 300


def test_another_user_changes_few_decoys() -> None:
    common, rare = Shape(4096, 24), Shape(8192, 64)
    before, after = shapes_of({common: 30, rare: 10}), shapes_of({common: 31, rare: 10})
    assert sum(before[name] != after[name] for name in NAMES) < 20


def test_the_same_key_gives_the_same_decoys_and_another_gives_others() -> None:
    again, other = (decoy(key, "SCRAM-SHA-256", "nobody", {}) for key in (KEY, b"another"))
    assert decoy(KEY, "SCRAM-SHA-256", "nobody", {}) == again
    assert again.salt != other.salt
    assert decoy(KEY, "SCRAM-SHA-256", "somebody", {}).salt != again.salt


def test_a_token_that_is_not_there_has_the_salt_that_it_would_have() -> None:
    assert token_decoy("SCRAM-SHA-256", "id", KEY).salt == salt_of("SCRAM-SHA-256", "id", KEY)
