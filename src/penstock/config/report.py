"""A log line about a configuration."""


class Report:
    """`level` is "info" or "warning"; `name` the option it is about."""

    __slots__ = ("level", "name", "text")

    def __init__(self, level: str, name: str, text: str) -> None:
        self.level = level
        self.name = name
        self.text = text

    def __repr__(self) -> str:
        return f"Report({self.level}: {self.text})"
