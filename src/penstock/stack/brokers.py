"""The row of the brokers: all in one cluster, on the ZooKeeper of the stack."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.wire_client import WireClient
from penstock.config.broker_options import BROKER_OPTIONS, listener_option_base
from penstock.config.loading import load, report_names
from penstock.config.option import ConfigError
from penstock.config.secrecy import is_secret
from penstock.stack import processes, registry_address, replicas, secured, zookeeper
from penstock.stack.health import ASK_TIMEOUT_S, NO_ANSWER
from penstock.stack.stack import Member, Rolling, Service, Stack
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

NAME = "broker"
MAX_BROKERS = 100
REPLICATION = 3
SESSION_TIMEOUT_MS = 6000
OWN_FILES = (
    r"meta\.properties|penstock-(session|registration|metadata\.db(-wal|-shm|-journal)?)|\.lock|\.kafka_cleanshutdown|[a-z-]*checkpoint[a-z-]*(\.tmp)?"
    r"|[^/]+-\d+(\.[0-9a-f]+-(delete|future|stray))?/(\d{20}[^/]*|leader-epoch-checkpoint|partition\.metadata|[^/]+\.tmp)"
)
"""Of a log directory: Kafka's files, and ours."""


def bootstrap_of(stack: Stack) -> str:
    return stack.addresses_of(NAME)


def connection_to(stack: Stack) -> Connection:
    """To the brokers, as the admin where they ask who comes."""
    return Connection(bootstrap_of(stack), secured.client_properties(stack))


def _prepare(stack: Stack) -> None:
    secured.prepare(stack, bootstrap=bootstrap_of(stack), zookeeper=_zookeeper_of(stack))


def _zookeeper_of(stack: Stack) -> str:
    """ZooKeeper's root is open to everybody who reaches it, so a secured stack has a path of its own below it."""
    address = stack.addresses_of(zookeeper.NAME)
    return f"{address}{secured.ZOOKEEPER_PATH}" if stack.is_secure else address


def _command(stack: Stack, member: Member) -> list[str]:
    command = [sys.executable, "-m", "penstock", "broker", "--zookeeper", _zookeeper_of(stack)]
    command += ["--broker-id", str(member.number)]
    settings = [
        *default_settings(len(stack.members_of(NAME))),
        *(f"{name}={value}" for name, value in registry_address.broker_settings(stack).items()),
        *stack.settings_of(NAME),
    ]
    if stack.is_secure:
        options = secured.write_broker_options(stack, member, settings)
        return [*command, "--data", str(stack.data_of(member)), "--config", str(options)]
    command += ["--port", str(member.port)]
    command += ["--data", str(stack.data_of(member)), "--host", stack.host_of(member)]
    secrets = [setting for setting in settings if is_secret(setting.partition("=")[0].strip())]
    if secrets:
        command += ["--config", str(_write_secrets(stack, member, secrets))]
    else:
        _secrets_file(stack, member).unlink(missing_ok=True)
    for setting in settings:
        if setting not in secrets:
            command += ["--set", setting]
    return command


def _secrets_file(stack: Stack, member: Member) -> Path:
    return stack.directory / f"{member.name}.secrets.properties"


def _write_secrets(stack: Stack, member: Member, settings: list[str]) -> Path:
    """A command line is for everybody on the machine to read, for as long as the broker runs."""
    path = _secrets_file(stack, member)
    given = (setting.partition("=") for setting in settings)
    secured.write_properties(path, {name.strip(): value.strip() for name, _, value in given})
    return path


def default_settings(brokers: int) -> list[str]:
    """Internal topics as safe as so many brokers allow: Kafka would not make them at all on fewer than three. And a
    dead broker is noticed sooner than over a network."""
    copies = min(REPLICATION, brokers)
    return [
        f"offsets.topic.replication.factor={copies}",
        f"transaction.state.log.replication.factor={copies}",
        f"transaction.state.log.min.isr={min(2, copies)}",
        f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}",
    ]


def _check_settings(stack: Stack) -> None:
    """A name that nobody has, or a value that does not parse, would be noticed only when a broker starts with it."""
    given: dict[str, str] = {}
    for setting in stack.settings_of(NAME):
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set takes NAME=VALUE, not '{setting}'; for example --set num.partitions=6")
        given[name.strip()] = value.strip()
    secured.check_settings(stack, given)
    try:
        _, reports = load({}, given)
    except ConfigError as error:
        raise UserError(f"--set: {error}") from None
    unknown = [report.text.replace(" is ignored", "") for report in reports if report.level == "warning"]
    if unknown:
        raise UserError(f"--set: {unknown[0]}")


def _setting_problem(name: str, value: str) -> str | None:
    """Of one option by itself: what goes together is looked at when all are known."""
    base = listener_option_base(name) or name
    option = BROKER_OPTIONS.get(base)
    if option is not None:
        try:
            option.parse(value)
        except ConfigError as error:
            return str(error).replace(option.name, name, 1)
        return None
    unknown = [report.text for report in report_names({name: value}) if report.level == "warning"]
    return unknown[0].replace(" is ignored", "") if unknown else None


def _setting_docs() -> dict[str, str]:
    return {name: option.doc for name, option in BROKER_OPTIONS.items() if option.honoured}


def _health(stack: Stack, member: Member) -> str | None:
    """Whether the broker answers, knows every broker of the stack that runs, and has a controller."""
    brokers = stack.members_of(NAME)
    running = {one.number for one in brokers if processes.running_pid(stack, one) is not None}
    from penstock.client.security import security_of

    try:
        properties = secured.client_properties(stack)
        security = security_of(properties) if properties is not None else None
        with WireClient(stack.address_of(member), security=security, timeout_s=ASK_TIMEOUT_S) as client:
            answer = client.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse)
    except (Unreachable, Refused, UserError) as error:
        return str(error).rstrip(".") if stack.is_secure else NO_ANSWER
    known = {one.node_id for one in answer.brokers}
    if unseen := sorted(running - known):
        return f"does not see broker {', '.join(map(str, unseen))}"
    return None if answer.controller_id in known else "knows no controller"


SERVICE = Service(
    name=NAME,
    title="the brokers",
    plural="brokers",
    command=_command,
    health_check=_health,
    port=9092,
    port_option="--port",
    needs=(zookeeper.NAME,),
    counts=range(1, MAX_BROKERS + 1),
    count_option="--brokers",
    is_numbered=True,
    can_grow=True,
    how_to_shrink="take one out with penstock cluster remove, which moves its partitions first",
    prepare=_prepare,
    check_settings=_check_settings,
    setting_problem=_setting_problem,
    setting_docs=_setting_docs,
    own_files=OWN_FILES,
    rolling=Rolling(
        behind=lambda stack, away: replicas.behind(connection_to(stack), away),
        last=lambda stack: replicas.controller(connection_to(stack)),
        done=lambda stack, away: replicas.restore_leaders(connection_to(stack), away),
    ),
)
