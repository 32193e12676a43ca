"""Which bounds on connections a listener has."""

from penstock.broker.quotas.connection_limits import limits_of
from penstock.config.loading import load
from penstock.net.admission import UNLIMITED

LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}


def test_a_listener_has_its_own_bounds_below_those_of_the_broker() -> None:
    config, _ = load(
        {
            **LISTENERS,
            "max.connections": "9",
            "max.connection.creation.rate": "8",
            "listener.name.outside.max.connections": "5",
            "listener.name.outside.max.connection.creation.rate": "4",
            "max.connections.per.ip": "3",
            "max.connections.per.ip.overrides": "10.0.0.1:7, [::1]:6",
        },
        {},
    )
    outside, inside = limits_of(config, "OUTSIDE", None), limits_of(config, "INSIDE", 100)
    assert (outside.max_connections, outside.creation_rate, outside.is_protected) == (5, 4, False)
    assert (inside.max_connections, inside.creation_rate, inside.is_protected) == (UNLIMITED, UNLIMITED, True)
    for limits in (outside, inside):
        assert (limits.broker_max_connections, limits.broker_creation_rate) == (9, 8)
        assert limits.overrides_per_ip == {"10.0.0.1": 7, "::1": 6}
    assert inside.max_frame_bytes == 100
    assert (outside.login_seconds, inside.login_seconds) == (None, 60.0)
