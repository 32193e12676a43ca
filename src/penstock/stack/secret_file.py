"""A file with a key, a password or a setting that may be one."""

import os
from pathlib import Path


def write_secret(path: Path, content: str | bytes) -> None:
    """A file that nobody but its owner reads, from its first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)  # it may have been there before
        file.write(content.encode() if isinstance(content, str) else content)
