"""A description as a `compose.yaml`: the same services in containers, with ports, volumes, health checks and their order.

The files of services are written by their rows, as for `penstock up`, for a stack whose members are found by the names of
containers. What shall be in the stack is made by a container that runs `penstock apply` once and ends.

Not promised: that paths in connectors mean the same in a container. A secured stack is not written: its logins and certificates
are made on the machine that has it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from penstock.client.errors import UserError
from penstock.model.endpoints import Address
from penstock.stack import brokers, connect, registry_address, spark, sql_server, zookeeper
from penstock.stack.composition import compose
from penstock.stack.description.model import Description
from penstock.stack.stack import ALL_ADDRESSES, LOOPBACK, Member, Service, Stack, service_named

MARK: Final = "# Written by penstock compose"
IMAGE, SERVICES_IMAGE = "penstock", "penstock-services"
ZOOKEEPER_IMAGE: Final = "zookeeper:3.9"
INSIDE, OUTSIDE = 9093, 9092
DATA: Final = "/data"
STACK: Final = "/stack"
SETUP: Final = "setup"
GRACE: Final = "2m"
CHECKED: Final = {"interval": "5s", "timeout": "5s", "start_period": "60s", "retries": 12}
SPARK_CLASS: Final = "exec $(python -c 'import pyspark; print(pyspark.__path__[0])')/bin/spark-class"
PAGE: Final = 8080

Document = dict[str, Any]


class ContainerStack(Stack):
    """Members find one another by the names of containers, and each listens on all addresses of its own."""

    def address_of(self, member: Member) -> Address:
        return Address(member.name, member.port)

    def host_of(self, member: Member) -> str:
        return ALL_ADDRESSES


def compose_file(
    description: Description,
    services: tuple[Service, ...],
    *,
    beside: str = ".",
    image: str = IMAGE,
    services_image: str = SERVICES_IMAGE,
) -> str:
    """The text. `beside`: the folder of the description, from that of compose.yaml. UserError for a secured stack."""
    if description.wish.secure:
        raise UserError(
            f"{description.path} has a secured stack, whose logins and certificates are made on the machine that has it: "
            "it cannot be written for containers"
        )
    with tempfile.TemporaryDirectory(prefix="penstock-compose-") as directory:
        writing = Writing(description, services, Path(directory).resolve(), image, services_image)
        document = writing.document(beside)
    head = (
        f"{MARK} from {description.path.name}; write it again after a change there.\n"
        f"#   docker build -f deploy/Dockerfile -t {image} .                     the image of brokers\n"
        f"#   docker build -f deploy/Dockerfile.services -t {services_image} .   that of the services, with Java\n"
        "#   docker compose up -d\n"
    )
    return head + _dumped(document)


class Writing:
    def __init__(
        self,
        description: Description,
        services: tuple[Service, ...],
        directory: Path,
        image: str,
        services_image: str,
    ) -> None:
        self._description = description
        self._image, self._services_image = image, services_image
        outside = compose(directory, None, _with_ports(description, services), services)
        self._published = {member.name: member.port for member in outside.members}
        self._address = LOOPBACK if description.wish.host is None else description.wish.host
        members = tuple(one._replace(port=_inner_port(services, one)) for one in outside.members)
        self._stack = ContainerStack(directory, members, services, outside.settings, outside.host)
        self._configs: dict[str, Document] = {}

    def document(self, beside: str) -> Document:
        made: dict[str, Document] = {}
        for group in self._stack.in_start_order(self._stack.members):
            for member in group:
                made[member.name] = self._service(member)
        if not self._description.contents.is_empty:
            made[SETUP] = self._setup(beside)
        volumes = [
            volume.partition(":")[0]
            for service in made.values()
            for volume in service.get("volumes", ())
            if not volume.startswith((".", "/"))
        ]
        document: Document = {"name": self._description.name, "services": made}
        if self._configs:
            document["configs"] = self._configs
        return {**document, "volumes": dict.fromkeys(volumes)}

    def _service(self, member: Member) -> Document:
        if member.service == zookeeper.NAME:
            return self._zookeeper(member)
        if member.service == brokers.NAME:
            return self._broker(member)
        if member.service in (spark.NAME, spark.WORKER_NAME):
            return self._spark(member)
        return self._http_service(member)

    def _zookeeper(self, member: Member) -> Document:
        servers = self._stack.members_of(zookeeper.NAME)
        environment = {"ZOO_4LW_COMMANDS_WHITELIST": "srvr,ruok"}
        if len(servers) > 1:
            environment["ZOO_MY_ID"] = str(member.number)
            environment["ZOO_SERVERS"] = " ".join(
                f"server.{one.number}={one.name}:2888:3888;{one.port}" for one in servers
            )
        return {
            "image": ZOOKEEPER_IMAGE,
            "restart": "unless-stopped",
            "environment": environment,
            "ports": self._ports(member),
            "volumes": [f"{member.name}-data:/data", f"{member.name}-log:/datalog"],
            "healthcheck": {"test": ["CMD", "zkServer.sh", "status"], **CHECKED},
        }

    def _broker(self, member: Member) -> Document:
        settings = [
            *brokers.default_settings(len(self._stack.members_of(brokers.NAME))),
            *(f"{name}={value}" for name, value in registry_address.broker_settings(self._stack).items()),
            *self._stack.settings_of(brokers.NAME),
        ]
        port = self._published[member.name]
        host = "localhost" if self._address in (LOOPBACK, ALL_ADDRESSES, "::") else self._address
        environment = {
            "KAFKA_BROKER_ID": str(member.number),
            "KAFKA_ZOOKEEPER_CONNECT": self._stack.addresses_of(zookeeper.NAME),
            "KAFKA_LISTENERS": f"INSIDE://:{INSIDE},OUTSIDE://:{OUTSIDE}",
            "KAFKA_ADVERTISED_LISTENERS": f"INSIDE://{member.name}:{INSIDE},OUTSIDE://{host}:{port}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
            "PENSTOCK_BOOTSTRAP": f"localhost:{INSIDE}",
        }
        for setting in settings:
            name, _, value = setting.partition("=")
            environment[variable_of(name.strip())] = _escaped(value.strip())
        return {
            "image": self._image,
            "restart": "unless-stopped",
            "stop_grace_period": GRACE,
            "depends_on": self._needs(member),
            "environment": environment,
            "ports": [f"{self._publishing()}{port}:{OUTSIDE}"],
            "volumes": [f"{member.name}:{DATA}"],
        }

    def _http_service(self, member: Member) -> Document:
        """Its row writes its files, which become configs."""
        folder = self._stack.data_of(member)
        folder.mkdir(parents=True, exist_ok=True)
        command = self._stack.service_of(member).command(self._stack, member)
        configs = []
        for path in sorted(folder.iterdir()):
            name = f"{member.name}-{path.name}".replace(".", "-")
            self._configs[name] = {"content": _escaped(path.read_text().replace(str(folder), DATA))}
            configs.append({"source": name, "target": f"{DATA}/{path.name}"})
        found: Document = {
            "image": self._services_image,
            "hostname": member.name,
            "restart": "unless-stopped",
            "depends_on": self._needs(member),
            "command": [_escaped(word.replace(str(folder), DATA)) for word in _program(command)],
            "ports": self._ports(member),
            "volumes": [f"{member.name}:{DATA}"],
            "healthcheck": _asked(member.port, "/health"),
        }
        return {**found, "configs": configs} if configs else found

    def _spark(self, member: Member) -> Document:
        from penstock.stack.http_settings import settings_of

        if member.service == spark.NAME:
            words, page = f"master.Master --host {member.name} --port {member.port} --webui-port {PAGE}", PAGE
        else:
            has = spark.DEFAULTS | settings_of(self._stack, spark.WORKER_NAME)
            page = member.port
            words = (
                f"worker.Worker --host {member.name} --cores {has[spark.CORES]} --memory {has[spark.MEMORY]} "
                f"--work-dir {DATA}/work --webui-port {page} {spark.master_url(self._stack)}"
            )
        return {
            "image": self._services_image,
            "hostname": member.name,
            "restart": "unless-stopped",
            "depends_on": self._needs(member),
            "command": ["sh", "-c", _escaped(f"{SPARK_CLASS} org.apache.spark.deploy.{words}")],
            "ports": self._ports(member),
            "volumes": [f"{member.name}:{DATA}"],
            "healthcheck": _asked(page, "/json/"),
        }

    def _setup(self, beside: str) -> Document:
        command = ["penstock", "apply", "--file", f"{STACK}/{self._description.path.name}"]
        command += ["--bootstrap-server", self._stack.addresses_of(brokers.NAME)]
        for name, option in (
            (registry_address.NAME, "--schema-registry-url"),
            (connect.NAME, "--connect-url"),
            (sql_server.NAME, "--sql-url"),
        ):
            members = self._stack.members_of(name)
            if members:
                command += [option, f"http://{self._stack.address_of(members[0])}"]
        waited = [one for one in self._stack.members if one.service != zookeeper.NAME]
        return {
            "image": self._services_image,
            "restart": "on-failure",
            "depends_on": {one.name: {"condition": "service_healthy"} for one in waited},
            "command": command,
            "volumes": [f"{beside}:{STACK}:ro"],
            "healthcheck": {"disable": True},
        }

    def _needs(self, member: Member) -> Document:
        service = self._stack.service_of(member)
        waited = [one for name in (*service.needs, *service.uses) for one in self._stack.members_of(name)]
        return {one.name: {"condition": "service_healthy"} for one in waited}

    def _ports(self, member: Member) -> list[str]:
        return [f"{self._publishing(member)}{self._published[member.name]}:{member.port}"]

    def _publishing(self, member: Member | None = None) -> str:
        """Where a port is to be reached from: ZooKeeper's from this machine only."""
        is_internal = member is not None and self._stack.service_of(member).is_internal
        address = LOOPBACK if is_internal else self._address
        return f"[{address}]:" if ":" in address else f"{address}:"


def variable_of(option: str) -> str:
    """`KAFKA_NUM_PARTITIONS` for `num.partitions`, as the image takes it."""
    signs = {".": "_", "_": "__", "-": "___"}
    return "KAFKA_" + "".join(signs.get(letter, letter.upper()) for letter in option)


def _with_ports(description: Description, services: Sequence[Service]) -> Any:
    """Free ports of this machine mean nothing in a file for others: the usual ones."""
    from dataclasses import replace

    asked = {
        name: replace(one, port=None if one.port == 0 else one.port)
        for name, one in description.wish.services.items()
    }
    return description.wish._replace(services=asked)


def _inner_port(services: Sequence[Service], member: Member) -> int:
    return INSIDE if member.service == brokers.NAME else service_named(services, member.service).port


def _program(command: list[str]) -> list[str]:
    return ["penstock", *command[3:]] if command[:3] == [sys.executable, "-m", "penstock"] else command


def _asked(port: int, path: str) -> Document:
    program = f"import urllib.request as web; web.urlopen('http://localhost:{port}{path}', timeout=4)"
    return {"test": ["CMD", "python", "-c", program], **CHECKED}


def _escaped(text: str) -> str:
    """Compose puts variables in the place of `$NAME`."""
    return text.replace("$", "$$")


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _dumped(document: Document) -> str:
    written: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return written
