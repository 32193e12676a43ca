"""`penstock broker`: one broker in this process. It imports neither click nor rich: it must be up in a fraction of a second."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping

from penstock.model.endpoints import bracketed

log = logging.getLogger("penstock")

EXAMPLES = """examples:
  penstock broker --port 9092 --data ./data
  penstock broker --config server.properties --set num.partitions=6
  penstock broker --zookeeper zk1:2181,zk2:2181/kafka --broker-id 2 --data ./data
"""


def parser() -> argparse.ArgumentParser:
    parse = argparse.ArgumentParser(
        prog="penstock broker",
        description="Run one broker. It stops cleanly on SIGTERM and SIGINT.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument(
        "--port", type=int, metavar="N", help="listen on this port (default 9092; 0 picks a free one)"
    )
    parse.add_argument("--host", metavar="HOST", help="listen on this address only (default: all)")
    parse.add_argument(
        "--metrics-port", type=int, metavar="N",
        help="serve metrics for Prometheus on this port (default: not at all; 0 picks a free one)",
    )  # fmt: skip
    parse.add_argument("--data", metavar="DIR", help="keep the logs here (log.dirs; default ./penstock-data)")
    parse.add_argument(
        "--zookeeper", metavar="HOST:PORT[,…][/CHROOT]",
        help="be a broker of the cluster on this ZooKeeper (zookeeper.connect; default: a cluster of one)",
    )  # fmt: skip
    parse.add_argument(
        "--broker-id",
        type=int,
        metavar="N",
        help="this broker's number in its cluster (broker.id; default 1)",
    )
    parse.add_argument("--config", metavar="FILE", help="a server.properties of Kafka's kind")
    parse.add_argument(
        "--env-prefix", metavar="PREFIX",
        help="take options from environment variables too; with KAFKA_, KAFKA_NUM_PARTITIONS is num.partitions",
    )  # fmt: skip
    parse.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one option; may be repeated"
    )
    parse.add_argument(
        "--log-format", choices=("text", "json"),
        help="how log lines look (stderr; default text, or what PENSTOCK_LOG_FORMAT says)",
    )  # fmt: skip
    parse.add_argument("--log-level", choices=("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO")
    return parse


def main(argv: list[str]) -> int:
    args = parser().parse_args(argv)
    try:
        return start(args)
    except KeyboardInterrupt:  # before the broker listens for signals itself
        return 130


def start(args: argparse.Namespace) -> int:
    from penstock.broker.process import run
    from penstock.broker.serving import StartError
    from penstock.runtime import logs

    logs.configure(args.log_format or logs.format_of(os.environ), args.log_level)
    try:
        properties = {**read_properties(args.config), **read_environment(args.env_prefix)}
        sets = read_sets(args, properties)
        _check_not_a_box({**properties, **sets}.get("log.dirs", "./penstock-data"))
        return run(properties, sets)
    except StartError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1


def _check_not_a_box(log_dirs: str) -> None:
    """`penstock up` keeps whole clusters in directories; its folder broker-1 would be taken for a partition here."""
    from penstock.broker.serving import StartError

    for directory in log_dirs.split(","):
        if os.path.exists(os.path.join(directory.strip(), "box.json")):
            raise StartError(
                f"{directory} holds a cluster: penstock up --data {directory} starts it, --data names another directory"
            )


def read_properties(path: str | None) -> dict[str, str]:
    from penstock.broker.serving import StartError
    from penstock.config.option import ConfigError
    from penstock.config.properties import parse_properties, repeated_names

    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found = parse_properties(text)
        for name in repeated_names(text):
            log.warning("%s says %s more than once: the last one counts", path, name)
        return found
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ConfigError as error:
        raise StartError(f"{path}: {error}") from None


def read_environment(prefix: str | None) -> dict[str, str]:
    from penstock.broker.serving import StartError
    from penstock.config.environment import options_in

    if prefix == "":
        raise StartError("--env-prefix takes the beginning of names, for example KAFKA_; it is empty")
    return {} if prefix is None else options_in(os.environ, prefix)


def read_sets(args: argparse.Namespace, properties: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the command line says; `properties` are those of the file."""
    from penstock.broker.serving import StartError
    from penstock.config.secrecy import is_secret

    sets: dict[str, str] = {}
    secrets = []
    for text in args.set:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise StartError(f"--set takes NAME=VALUE, not {text!r}; for example --set num.partitions=6")
        sets[name.strip()] = value.strip()
        if is_secret(name.strip()):
            secrets.append(name.strip())
    if secrets:
        log.warning(
            "--set %s: everybody on this machine can read the command line; put it into a file of your own, and name "
            "that with --config",
            ", ".join(secrets),
        )
    host = bracketed((args.host or "").strip("[]"))
    if args.port is not None or args.host is not None:
        _check_open({**(properties or {}), **sets})
        port = 9092 if args.port is None else args.port
        sets["listeners"] = f"PLAINTEXT://{host}:{port}"
    if args.metrics_port is not None:
        sets["penstock.metrics.listener"] = f"{host}:{args.metrics_port}"
    if args.data is not None:
        sets["log.dirs"] = args.data
    if args.zookeeper is not None:
        sets["zookeeper.connect"] = args.zookeeper
    if args.broker_id is not None:
        sets["broker.id"] = str(args.broker_id)
    return sets


def _check_open(given: Mapping[str, str]) -> None:
    """--port and --host make an open listener of all that `listeners` says."""
    from penstock.broker.serving import StartError
    from penstock.config.layers import BrokerConfig
    from penstock.net.endpoints import parse_endpoints, security_protocol

    names = ("listeners", "controller.listener.names", "listener.security.protocol.map")
    try:
        config = BrokerConfig({name: given[name] for name in names if name in given})
        for endpoint in parse_endpoints(",".join(config.listeners), "listeners"):
            protocol = security_protocol(endpoint.listener, config.get("listener.security.protocol.map"))
            if protocol != "PLAINTEXT":
                raise StartError(
                    f"--port and --host would open a PLAINTEXT listener in place of listeners={given['listeners']}, which "
                    f"asks for {protocol}: leave out --port and --host"
                )
    except ValueError:
        pass  # what is replaced need not be right
