"""What a reader of topics can meet. Each message is one line."""

from collections.abc import Sequence


class BadOption(ValueError):
    """An argument or option that cannot be used; the message begins with its name."""


class ReadFailed(Exception):
    """The cluster cannot be reached, refuses, or no longer has what was asked for."""


class AccessRefused(ReadFailed):
    """The broker does not let us in, or we do not trust it; another attempt will not go better."""

    def __init__(self, option: str, complaint: str) -> None:
        super().__init__(f"{complaint} (option {option})")
        self.option = option
        self.complaint = complaint


class NoSuchTopic(ReadFailed):
    """`near` are topics with similar names, the most similar first."""

    def __init__(self, topic: str, near: Sequence[str]) -> None:
        hint = f" Did you mean '{near[0]}'?" if near else ""
        super().__init__(f"there is no topic '{topic}'.{hint}")
        self.topic = topic
        self.near = tuple(near)
