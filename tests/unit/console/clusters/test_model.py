"""What groups are, for people."""

import pytest

from penstock.console.clusters.model import GroupKind, kind_of


@pytest.mark.parametrize(
    ("name", "type_name", "protocol", "state", "kind"),
    [
        ("billing", "classic", "consumer", "Stable", GroupKind.CLASSIC),
        ("billing", "consumer", "consumer", "Stable", GroupKind.CONSUMER),
        ("billing", "share", "share", "Stable", GroupKind.SHARE),
        ("totals", "streams", "streams", "Stable", GroupKind.STREAMS),
        ("penstock-spark-totals", "classic", "", "Empty", GroupKind.SPARK),
        ("spark-kafka-source-1b2c-driver-0", "classic", "consumer", "Stable", GroupKind.SPARK),
        ("connect-jdbc", "classic", "consumer", "Stable", GroupKind.CONNECT_SINK),
        ("connect-cluster", "classic", "connect", "Stable", GroupKind.CONNECT_WORKERS),
        ("importer", "classic", "", "Empty", GroupKind.OFFSETS_ONLY),
        ("schema-registry", "classic", "sr", "Stable", GroupKind.OTHER),
        ("old", "", "consumer", "", GroupKind.CLASSIC),
    ],
)
def test_groups_are_shown_as_what_they_are(
    name: str, type_name: str, protocol: str, state: str, kind: GroupKind
) -> None:
    assert kind_of(name, type_name=type_name, protocol=protocol, state=state) is kind
