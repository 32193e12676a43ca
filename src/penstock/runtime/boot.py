"""Which run of this machine it is: with its end the page cache is gone."""

from typing import Final

BOOT_ID_FILE: Final = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str:
    """Empty where the system does not tell."""
    try:
        with open(BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
