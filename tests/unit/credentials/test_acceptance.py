"""A login by Kerberos that is given up."""

import gc
import weakref
from typing import Any

from penstock.credentials.gssapi import Acceptance


def test_it_leaves_nothing_for_the_collector() -> None:
    """The library's memory goes with it, and collections are rare."""
    acceptor: Any = None
    gc.disable()
    try:
        acceptance = Acceptance(acceptor)
        is_there = weakref.ref(acceptance)
        del acceptance
        assert is_there() is None
    finally:
        gc.enable()
