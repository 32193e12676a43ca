"""Penstock's brokers on a ZooKeeper, each a process of its own, as a user starts them."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from penstock.testing.clusters import HOST, READY_TIMEOUT_S, BrokerCluster, BrokerLaunch
from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.processes import free_ports
from penstock.testing.zookeeper import ZooKeeperEnsemble, ZooKeeperServer

SESSION_TIMEOUT_MS = 6_000


class PenstockCluster(BrokerCluster):
    """Brokers 1, 2, 3 … Without `zookeeper` it has a server of its own.

    `options` are for all brokers, `options_of` for one of them by its id; where they name `listeners`, `ports`, which
    are those of the clients, must be given too. `environment_of` may make one of them a broker of other code.
    """

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 3,
        options: Mapping[str, str] | None = None,
        options_of: Mapping[int, Mapping[str, str]] | None = None,
        environment_of: Mapping[int, Mapping[str, str]] | None = None,
        zookeeper: ZooKeeperServer | ZooKeeperEnsemble | None = None,
        zookeeper_connect_of: Mapping[int, str] | None = None,
        ports: Sequence[int] | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        with ExitStack() as resources:
            if zookeeper is None:
                zookeeper = resources.enter_context(ZooKeeperServer(directory / "zookeeper"))
            self.zookeeper = zookeeper
            launches: dict[int, BrokerLaunch] = {}
            for number, port in enumerate(ports or free_ports(brokers), start=1):
                home = directory / f"broker-{number}"
                named = {
                    "zookeeper.session.timeout.ms": str(session_timeout_ms),
                    **(options or {}),
                    **(options_of or {}).get(number, {}),
                }
                connect = (zookeeper_connect_of or {}).get(number, zookeeper.address)
                launches[number] = BrokerLaunch(
                    command=broker_command(
                        number, port=port, data_dir=home / "data", connect=connect, options=named
                    ),
                    port=port,
                    data_dir=home / "data",
                    log_path=home / "penstock.log",
                    ready_line=READY_LINE,
                    environment=(environment_of or {}).get(number, {}),
                )
            super().__init__(
                "Penstock", launches, resources=resources.pop_all(), ready_timeout_s=ready_timeout_s
            )


def broker_command(
    broker_id: int, *, port: int, data_dir: Path, connect: str, options: Mapping[str, str]
) -> list[str]:
    command = [sys.executable, "-m", "penstock", "broker", "--zookeeper", connect]
    command += ["--broker-id", str(broker_id)]
    if "log.dirs" not in options:
        command += ["--data", str(data_dir)]
    if "listeners" not in options:
        command += ["--host", HOST, "--port", str(port)]
    for name, value in options.items():
        command += ["--set", f"{name}={value}"]
    return command
