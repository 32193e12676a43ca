"""Which topics a pattern means: a regular expression that must match the whole name, in which commas mean "or"."""

import re

from penstock.client.errors import UserError
from penstock.model.internal_topics import is_internal


class BadPattern(UserError):
    """Not a regular expression."""


class TopicFilter:
    def __init__(self, pattern: str) -> None:
        text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._pattern = re.compile(text)
        except re.error:
            raise BadPattern(f"{text} is an invalid regex.") from None

    def allows(self, topic: str, *, exclude_internal: bool = False) -> bool:
        if exclude_internal and is_internal(topic):
            return False
        return self._pattern.fullmatch(topic) is not None


def chosen_topics(names: list[str], pattern: str | None, *, exclude_internal: bool) -> list[str]:
    """Sorted; all of them where no pattern is given."""
    topic_filter = TopicFilter(".*" if pattern is None else pattern)
    return sorted(name for name in names if topic_filter.allows(name, exclude_internal=exclude_internal))
