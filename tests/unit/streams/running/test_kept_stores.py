"""A task's store in memory and that on disk are one and the same to the kernel."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.errors import BadOption
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.running import disk_stores
from penstock.streams.running.changelogs import LoggedStore
from penstock.streams.running.disk_stores import DiskStore
from penstock.streams.running.memory_bound import MemoryBound, StateTooLarge, used_bytes
from penstock.streams.running.options import run_options

keys = st.binary(max_size=2)
values = st.one_of(st.none(), st.integers(), st.lists(st.integers(0, 3), max_size=2))
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "restore"]), keys, values),
        st.tuples(st.sampled_from(["get", "range", "flush", "look_through"]), keys, keys),
    ),
    max_size=60,
)


@pytest.mark.parametrize("make", [LoggedStore, DiskStore])
@settings(max_examples=80, deadline=None)
@given(made=steps, recent_max=st.integers(0, 5))
def test_a_store_is_a_sorted_dict_that_tells_its_changes(make: Any, made: list[Any], recent_max: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk_stores, "RECENT_MAX", recent_max)
        store, model, told = make("s", is_logged=True), {}, {}
        for what, key, other in sorted(made, key=lambda step: step[0] != "restore"):  # that comes first
            if what in ("put", "restore"):
                if what == "put":
                    store.put(key, other)
                else:
                    store.restore(key, None if other is None else pack(other))
                model.pop(key, None)
                if other is not None:
                    model[key] = other
            elif what == "get":
                assert store.get(key) == model.get(key)
                assert store.look_up(key) == (None if key not in model else pack(model[key]))
            elif what == "flush":
                store.flush(told.__setitem__)
            else:
                wanted = [(each, model[each]) for each in sorted(model) if key <= each < other]
                if what == "range":
                    assert list(store.range(key, other)) == wanted
                else:
                    found = store.look_through(key, other, 3)
                    assert [(each, unpack(data)) for each, data in found] == wanted[:3]
            assert len(store) == len(model)
        assert list(store.all()) == sorted(model.items())
        store.flush(told.__setitem__)
        assert all(data == (None if key not in model else pack(model[key])) for key, data in told.items())
        store.close()


def test_a_process_beyond_its_bound_fails_with_what_to_do() -> None:
    MemoryBound(3, None).check(lambda: 7)
    if used_bytes() is None:
        pytest.skip("this system does not say how much memory a process takes")
    MemoryBound(3, 10**15).check(lambda: 7)
    with pytest.raises(
        StateTooLarge, match=r"task 3 takes .* bytes of memory, .* with 7 entries .* state\.store=disk"
    ):
        MemoryBound(3, 1).check(lambda: 7)


def test_options_of_state_are_checked() -> None:
    found = run_options("a", "b:1", {"state.store": "disk", "state.memory.max.bytes": "5", "state.dir": "/x"})
    assert (found.is_state_on_disk, found.memory_max_bytes, found.state_dir) == (True, 5, "/x")
    with pytest.raises(BadOption, match=r"state\.store: must be memory or disk, not 'rocksdb'"):
        run_options("a", "b:1", {"state.store": "rocksdb"})
