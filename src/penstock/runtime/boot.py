"""The boot id of this machine: it changes with each boot, which also clears the page cache."""

from typing import Final

BOOT_ID_FILE: Final = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str:
    """Empty where the system does not tell."""
    try:
        with open(BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
