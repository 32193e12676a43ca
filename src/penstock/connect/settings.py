"""What a connector, transform, predicate or converter can be configured with: one table of settings.

    SETTINGS = Settings(
        Setting("file", Kind.STRING, "The file to read.", default=None, importance=HIGH),
        Setting("batch.size", Kind.INT, "How many lines are read at a time.", default=2000, check=at_least(1), importance=LOW),
    )

From the table come the parsed values, the refusals of a wrong configuration (in Kafka's words), the answer of
`/connector-plugins/{class}/config`, the form in the console and the reference page. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.config.option import (
    Check,
    ConfigError,
    Kind,
    at_least,
    between,
    format_value,
    invalid_value,
    one_of,
    parse_value,
)
from penstock.connect.errors import InvalidConfig

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
SHORT_WIDTH, MEDIUM_WIDTH, LONG_WIDTH, NO_WIDTH = "SHORT", "MEDIUM", "LONG", "NONE"
HIDDEN: Final = "[hidden]"


def _name_refusal(name: str, value: Any) -> ConfigError | None:
    control = [ord(char) for char in value if ord(char) < 32 or ord(char) == 127]
    if value.strip() and not control:
        return None
    codes = ", ".join(map(str, control))
    why = (
        f"String may not contain control sequences but had the following ASCII chars: {codes}"
        if control
        else "String may not be empty"
    )
    return invalid_value(name, value=value, why=why)


A_NAME: Final = Check("not empty, without control characters", _name_refusal)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""The default of a setting that must be given."""

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Setting:
    name: str = field(kw_only=False)
    kind: Kind = field(kw_only=False)
    doc: str = field(kw_only=False)
    default: Any = REQUIRED
    importance: str = MEDIUM
    check: Check | None = None
    """Of the value when it is given. `penstock.connect.settings` has at_least, between, one_of."""
    group: str | None = None
    width: str = NO_WIDTH
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    recommended: Callable[[Values], Iterable[Any]] | None = None
    """What to offer, by the other values."""
    is_visible: Callable[[Values], bool] = lambda values: True

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, text: str | None) -> Any:
        """InvalidConfig, in Kafka's words."""
        if text is None:
            if self.is_required:
                raise InvalidConfig(
                    f'Missing required configuration "{self.name}" which has no default value.'
                )
            return self.default
        try:
            value = parse_value(self.name, self.kind, text)
            refusal = self.check.refusal(self.name, value) if self.check is not None else None
        except ConfigError as error:
            raise InvalidConfig(str(error)) from None
        if refusal is not None:
            raise InvalidConfig(str(refusal))
        return value

    def shown(self, value: Any) -> str | None:
        """As text; a secret is not told."""
        if self.kind is Kind.PASSWORD and value is not None:
            return HIDDEN
        return format_value(self.kind, value)


@dataclass
class SettingValue:
    """What a configuration says for a setting, and what is wrong with it."""

    name: str
    value: Any
    recommended: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    is_visible: bool = True


class Settings:
    """The table, in its order."""

    def __init__(self, *settings: Setting) -> None:
        self._by_name = {setting.name: setting for setting in settings}

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Setting:
        return self._by_name[name]

    def __or__(self, other: Settings) -> Settings:
        return Settings(*self, *other)

    def parse(self, given: Mapping[str, str]) -> dict[str, Any]:
        """All settings with their values; others that are given are left out. InvalidConfig for the first that is wrong."""
        return {setting.name: setting.parse(given.get(setting.name)) for setting in self}

    def validate(self, given: Mapping[str, str | None]) -> list[SettingValue]:
        """Every setting, with what is wrong with it."""
        found = []
        values: dict[str, Any] = {}
        for setting in self:
            one = SettingValue(setting.name, given.get(setting.name))
            try:
                one.value = setting.parse(given.get(setting.name))
            except InvalidConfig as error:
                one.errors.append(str(error))
            values[setting.name] = one.value
            found.append(one)
        for one, setting in zip(found, self, strict=True):
            one.is_visible = setting.is_visible(values)
            if setting.recommended is not None:
                one.recommended = list(setting.recommended(values))
        return found


NO_SETTINGS: Final = Settings()

__all__ = [
    "A_NAME",
    "Setting", "Settings", "SettingValue", "Kind", "REQUIRED", "NO_SETTINGS", "HIDDEN", "HIGH", "MEDIUM", "LOW", "SHORT_WIDTH",
    "MEDIUM_WIDTH", "LONG_WIDTH", "NO_WIDTH", "Check", "at_least", "between", "one_of",
]  # fmt: skip
