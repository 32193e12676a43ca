"""What DescribeConfigs says of one option."""

from penstock.config.option import Kind

# DescribeConfigs' source codes.
TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
DYNAMIC_BROKER_LOGGER_CONFIG = 6
CLIENT_METRICS_CONFIG = 7
GROUP_CONFIG = 8

# (name, value text or None where it is secret, source)
Synonym = tuple[str, str | None, int]


class ConfigEntry:
    """`synonyms` come in order of precedence; the source is the first one's."""

    __slots__ = ("documentation", "kind", "name", "read_only", "sensitive", "synonyms", "value")

    def __init__(
        self,
        name: str,
        value: str | None,
        *,
        kind: Kind,
        read_only: bool,
        sensitive: bool,
        synonyms: list[Synonym],
        documentation: str | None,
    ) -> None:
        self.name = name
        self.value = None if sensitive else value
        self.kind = kind
        self.read_only = read_only
        self.sensitive = sensitive
        self.synonyms: list[Synonym] = (
            [(name, None, source) for name, _, source in synonyms] if sensitive else synonyms
        )
        self.documentation = documentation

    @property
    def source(self) -> int:
        return self.synonyms[0][2] if self.synonyms else DEFAULT_CONFIG

    @property
    def config_type(self) -> int:
        """The type code on the wire."""
        return int(self.kind)

    @property
    def is_default(self) -> bool:
        return self.source == DEFAULT_CONFIG

    def __repr__(self) -> str:
        return f"ConfigEntry({self.name}={self.value}, synonyms={self.synonyms})"
