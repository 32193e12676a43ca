"""A screen without what the JVM has to say about itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def stderr_in(log_path: Path) -> Iterator[None]:
    """A process that is started meanwhile writes its errors to the file as long as it lives; we do only meanwhile."""
    sys.stderr.flush()
    screen = os.dup(2)
    try:
        with log_path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(screen, 2)
        os.close(screen)
