"""What makes a stack a secured one: its authority, its certificates, its logins, and the files that clients take.

    DIR/security/                as all of DIR, for the owner only
        ca.pem, ca.key           the authority
        passwords.properties     the brokers' own, at one another and at ZooKeeper; the key of delegation tokens
        broker-1.pem             a broker's key and certificate
        broker-1.properties      its options: no password is on a command line
    DIR/client.properties        the admin's login, for Java's clients and for commands
    DIR/client.conf, spark.conf  the same for librdkafka and for Spark

All of it is made when it is missing, and stays as it is otherwise. The admin's password is kept in `client.properties`: after a
change there the next `penstock up` writes it into the other two. Where that file is missing, the admin gets a new password.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from penstock.client.errors import UserError, reason
from penstock.client.property_files import read_properties
from penstock.security.jaas import BadJaas, parse_login
from penstock.stack.secret_file import write_secret
from penstock.stack.stack import ALL_ADDRESSES, LOOPBACK, Member, Stack

ADMIN, BROKER, TOKENS = "admin", "broker", "delegation-tokens"
MECHANISM: Final = "SCRAM-SHA-512"
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LISTENER: Final = "SASL_SSL"
ZOOKEEPER_PATH: Final = "/penstock"
CLIENT_FILES: Final = {
    "Kafka's tools, Java": "client.properties",
    "librdkafka": "client.conf",
    "Spark": "spark.conf",
}
ITS_OWN: Final = frozenset((
    "listeners", "listener.security.protocol.map", "security.inter.broker.protocol", "inter.broker.listener.name",
    "authorizer.class.name", "zookeeper.connect", "zookeeper.set.acl", "penstock.zookeeper.auth",
))  # fmt: skip
"""Options that nobody else may set: the cluster would be an open one, or none."""
PASSWORD_BYTES: Final = 24
RENEW_BEFORE: Final = timedelta(days=30)


def client_file(stack: Stack) -> Path:
    return stack.directory / "client.properties"


def client_properties(stack: Stack) -> dict[str, str] | None:
    """How the stack's own commands come in; None where nobody asks."""
    return read_properties(str(client_file(stack))) if stack.is_secure else None


def check_settings(stack: Stack, names: Iterable[str]) -> None:
    """UserError for an option that would open the cluster."""
    if stack.is_secure and (refused := sorted(ITS_OWN.intersection(names))):
        raise UserError(f"--set: {refused[0]} is not for you to set: it is part of what --secure does")


def protect(stack: Stack) -> None:
    """Nobody else looks into a secured stack's directory: what ZooKeeper and the brokers keep there is as good as a login."""
    if stack.is_secure:
        try:
            stack.directory.chmod(0o700)
        except OSError as error:
            raise UserError(f"cannot protect {stack.directory}: {reason(error)}") from None


def prepare(stack: Stack, *, bootstrap: str, zookeeper: str) -> None:
    """Before brokers start, when ZooKeeper runs: the files, and the first users, without whom nobody could make users."""
    if not stack.is_secure:
        return
    from penstock.admin.users import upsertion
    from penstock.config.loading import load
    from penstock.stack.first_users import write_users

    own, is_new_broker = _passwords(stack)
    (admin, password), is_new_admin = _admin_login(stack)
    users = [upsertion(BROKER, own[BROKER])]
    if admin == ADMIN:
        users.append(upsertion(ADMIN, password))
    kept = {name for name, is_new in ((BROKER, is_new_broker), (ADMIN, is_new_admin)) if not is_new}
    config, _ = load({"zookeeper.connect": zookeeper, "broker.id": "1", **_zookeeper_options(own)})
    write_users(config, users, kept=kept)
    _write_client_files(stack, bootstrap, admin, password)
    write_properties(
        _directory(stack) / "passwords.properties", own
    )  # last: what was not written is made anew


def write_broker_options(stack: Stack, member: Member, settings: Iterable[str]) -> Path:
    """The file with the options of a broker, and its certificate where it has none that is good for a month."""
    own, _ = _passwords(stack)
    directory = _directory(stack)
    host = stack.host_of(member)
    given = dict(setting.partition("=")[::2] for setting in settings)
    given = {name.strip(): value.strip() for name, value in given.items()}
    login = f"listener.name.{LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config"
    options = {
        "listeners": f"{LISTENER}://{f'[{host}]' if ':' in host else host}:{member.port}",
        "security.inter.broker.protocol": LISTENER,
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        login: jaas_line(BROKER, own[BROKER]),
        "ssl.keystore.location": str(_certificate(stack, member, given.get("advertised.listeners", ""))),
        "ssl.truststore.location": str(directory / "ca.pem"),
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{ADMIN};User:{BROKER}",
        "delegation.token.secret.key": own[TOKENS],
        **_zookeeper_options(own),
        **given,
    }
    path = directory / f"{member.name}.properties"
    write_properties(path, options)
    return path


def certificate(stack: Stack, member: Member) -> Path:
    """Of a service beside the brokers: its key and certificate, good for a month at least."""
    return _certificate(stack, member, "")


def authority_file(stack: Stack) -> Path:
    return _directory(stack) / "ca.pem"


def admin_login(stack: Stack) -> tuple[str, str]:
    """Name and password, as `client.properties` has them."""
    return _admin_login(stack)[0]


def jaas_line(user: str, password: str) -> str:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'{MODULE} required username="{user}" password="{quoted}";'


def _zookeeper_options(own: Mapping[str, str]) -> dict[str, str]:
    """ZooKeeper listens on loopback, where every user of the machine reaches it: only brokers may change what they have made
    there, below ZOOKEEPER_PATH."""
    return {"penstock.zookeeper.auth": f"{BROKER}:{own['zookeeper']}", "zookeeper.set.acl": "true"}


def _directory(stack: Stack) -> Path:
    directory = stack.directory / "security"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def _new_password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)


def _passwords(stack: Stack) -> tuple[dict[str, str], bool]:
    """Of brokers among themselves and at ZooKeeper, and the key of tokens; True where they are new."""
    path = _directory(stack) / "passwords.properties"
    if not path.exists():
        made = {name: _new_password() for name in (BROKER, "zookeeper", TOKENS)}
        write_properties(path, made)
        return made, True
    found = read_properties(str(path))
    if missing := {BROKER, "zookeeper"} - set(found):
        raise UserError(f"{path} does not have the password of {sorted(missing)[0]}")
    if TOKENS not in found:
        found[TOKENS] = _new_password()
        write_properties(path, found)
    return found, False


def _admin_login(stack: Stack) -> tuple[tuple[str, str], bool]:
    path = client_file(stack)
    if not path.exists():
        return (ADMIN, _new_password()), True
    try:
        options = parse_login(read_properties(str(path))["sasl.jaas.config"]).options
        return (options["username"], options["password"]), False
    except (KeyError, BadJaas):
        raise UserError(
            f"{path} holds no login: write one into sasl.jaas.config, or remove the file for a new password"
        ) from None


def _write_client_files(stack: Stack, bootstrap: str, user: str, password: str) -> None:
    """What else somebody wrote into client.properties stays there."""
    authority = str(_directory(stack) / "ca.pem")
    path = client_file(stack)
    java = {
        **(read_properties(str(path)) if path.exists() else {}),
        "bootstrap.servers": bootstrap,
        "security.protocol": LISTENER,
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": jaas_line(user, password),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
    }
    write_properties(path, java)
    librdkafka = {
        "bootstrap.servers": bootstrap,
        "security.protocol": LISTENER,
        "sasl.mechanisms": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": authority,
    }
    lines = [f"{name}={value}\n" for name, value in librdkafka.items()]  # which knows no escapes
    write_secret_text(stack.directory / "client.conf", "".join(lines))
    write_properties(stack.directory / "spark.conf", {f"kafka.{name}": value for name, value in java.items()})


def write_properties(path: Path, options: Mapping[str, str]) -> None:
    """For the owner only."""
    lines = [
        f"{name}={value}".replace("\\", "\\\\").replace("\n", "\\n") + "\n" for name, value in options.items()
    ]
    write_secret_text(path, "".join(lines))


def write_secret_text(path: Path, text: str) -> None:
    try:
        write_secret(path, text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {reason(error)}") from None


def _certificate(stack: Stack, member: Member, advertised: str) -> Path:
    from penstock.net.endpoints import parse_endpoints
    from penstock.stack.certificates import Authority

    directory = _directory(stack)
    hosts = [LOOPBACK, "localhost", socket.gethostname(), stack.host_of(member)]
    try:
        hosts += [endpoint.host for endpoint in parse_endpoints(advertised, "advertised.listeners")]
    except ValueError as error:
        raise UserError(f"--set {error}") from None
    hosts = [host for host in dict.fromkeys(hosts) if host not in ("", ALL_ADDRESSES, "::")]
    path = directory / f"{member.name}.pem"
    if path.exists() and _is_good(path, hosts):
        return path
    try:
        return (
            Authority(directory, name=f"penstock {stack.directory.name}")
            .issue(member.name, hosts=hosts)
            .pem()
        )
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {reason(error)}") from None
    except ValueError as error:
        raise UserError(f"the authority in {directory} cannot be used: {error}") from None


def _is_good(path: Path, hosts: list[str]) -> bool:
    """Whether it names the hosts and does not expire soon. One that cannot be read is no good."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return False
    named = {str(each.value) for each in extension.value}
    return named.issuperset(hosts) and certificate.not_valid_after_utc - datetime.now(UTC) > RENEW_BEFORE
