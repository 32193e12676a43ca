"""penstock up --secure: a cluster that asks for a login, and the commands that find theirs."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NotEmptyError

from penstock.client.property_files import read_properties
from tests.cli.boxes import TestBox
from tests.cli.conftest import run_command
from tests.clients.driver import WAIT_S, wait_until

ROOT = Path(__file__).parents[2]
CLIENT_FILES = ("client.properties", "client.conf", "spark.conf")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    made = TestBox(tmp_path_factory.mktemp("secured") / "box")
    started = made.up_anew("--brokers", "2", "--secure")
    assert started.code == 0, started.err
    for name in CLIENT_FILES:
        assert str(made.directory / name) in started.out
    yield made
    made.close()


def secrets_of(box: TestBox) -> list[str]:
    passwords = read_properties(str(box.directory / "security" / "passwords.properties"))
    return [*passwords.values(), read_properties(str(box.directory / "client.conf"))["sasl.password"]]


def config(box: TestBox) -> tuple[str, str]:
    return "--command-config", str(box.directory / "client.properties")


def test_files_with_secrets_are_for_their_owner(box: TestBox) -> None:
    assert stat.S_IMODE(box.directory.stat().st_mode) == 0o700
    files = [box.directory / name for name in CLIENT_FILES]
    files += [path for path in (box.directory / "security").iterdir() if path.name != "ca.pem"]
    assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in files} == {
        path.name: "0o600" for path in files
    }


def test_no_secret_is_on_a_command_line_or_in_a_log(box: TestBox) -> None:
    shown = [path.read_text() for path in box.directory.glob("*.log")]
    shown += [Path(f"/proc/{pid}/cmdline").read_text() for pid in box.pids().values()]
    shown += [Path(f"/proc/{pid}/environ").read_text() for pid in box.pids().values()]
    shown.append((box.directory / "box.json").read_text())
    for secret in secrets_of(box):
        assert len(secret) >= 32
        assert not [text for text in shown if secret in text]


def test_others_at_zookeeper_change_nothing_and_see_no_secret(box: TestBox) -> None:
    """Every user of the machine reaches it."""
    stranger = KazooClient(box.zookeeper)
    stranger.start(WAIT_S)
    try:
        assert set(stranger.get_children("/")) == {"penstock", "zookeeper"}
        top = [f"/penstock/{name}" for name in stranger.get_children("/penstock")]
        assert {"/penstock/controller", "/penstock/controller_epoch", "/penstock/brokers"} <= set(top)
        for path in [*top, "/penstock/brokers/ids/1", "/penstock/config/users/admin"]:
            with pytest.raises((NoAuthError, NotEmptyError)):
                stranger.delete(path)
        for path in ("/penstock", "/penstock/config/users/admin", "/penstock/controller_epoch"):
            with pytest.raises(NoAuthError):
                stranger.set(path, b"{}")
        for path in ("/penstock/mine", "/penstock/config/users/mallory", "/penstock/brokers/ids/9"):
            with pytest.raises(NoAuthError):
                stranger.create(path, b"{}")
        for path in ("/penstock/config/users/admin", "/penstock/brokers/shared_key"):
            with pytest.raises(NoAuthError):
                stranger.get(path)
        with pytest.raises(NotEmptyError):
            stranger.delete("/penstock")
    finally:
        stranger.stop()
        stranger.close()


def test_nobody_comes_in_without_a_login(box: TestBox, tmp_path: Path) -> None:
    done = run_command("penstock", "topics", "list", "-b", box.bootstrap)
    assert done.code == 1
    assert "Does it ask for TLS or a login? Those are named in a file: --command-config\n" in done.err
    told = (box.directory / "client.properties").read_text().replace('password="', 'password="x')
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(told)
    done = run_command("penstock", "topics", "list", "--command-config", str(wrong))
    assert done.code == 1
    assert "refused the login of 'admin'" in done.err


def test_the_verbs_find_their_login(box: TestBox, tmp_path: Path) -> None:
    create = ("topics", "create", "orders", "--partitions", "4", "--replication-factor", "2")
    done = run_command("penstock", *create, *config(box))
    assert done.code == 0, done.err
    wait_until(lambda: box.run("status").code == 0, "a healthy cluster")
    assert len(box.status()["brokers"]) == 2
    again = box.up()
    assert again.code == 0, again.err
    assert "broker-2 runs already" in again.err
    restarted = box.run("cluster", "restart", "--rolling")
    assert restarted.code == 0, restarted.err
    assert "all replicas are in sync" in restarted.err
    assert "listening on" in box.run("logs", "broker-1", "-n", "2000").out
    alter = ("topics", "alter", "orders", "--replication-factor", "1")
    assert run_command("penstock", *alter, *config(box)).code == 0
    drained = run_command("penstock", "cluster", "drain", "2", *config(box))
    assert drained.code == 0, drained.err
    # in the directory that has ./penstock-data nothing is to be named
    (tmp_path / "penstock-data").symlink_to(box.directory)
    assert "orders" in run_command("penstock", "topics", "list", cwd=tmp_path).out
    assert run_command("penstock", "status", cwd=tmp_path).code == 0
    elsewhere = run_command("penstock", "topics", "list", "-b", "127.0.0.1:1", cwd=tmp_path)
    assert elsewhere.code == 1


def user(box: TestBox, name: str, path: Path) -> tuple[str, str]:
    """A user whom no rule names, and the file to log in with."""
    made = run_command(
        "penstock", "users", "set", name, "--password-file", "-", *config(box), stdin=f"{name}-secret\n"
    )
    assert made.code == 0, made.err
    admin = read_properties(str(box.directory / "client.conf"))["sasl.password"]
    told = (box.directory / "client.properties").read_text()
    path.write_text(told.replace(admin, f"{name}-secret").replace('"admin"', f'"{name}"'))
    return "--command-config", str(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("produce", "orders", "hello"), "1 records were not written: Topic authorization failed"),
        (("consume", "orders", "--from-beginning", "-n", "1"), "Topic authorization failed"),
        (("consume", "orders", "--group", "g", "-n", "1"), "Group authorization failed"),
        (("topics", "describe", "orders"), "Topic authorization failed"),
        (("topics", "create", "letters"), "Authorization failed"),
        (("users", "list"), "Cluster authorization failed"),
        (("status",), "Cluster authorization failed"),
    ],
    ids=lambda words: "-".join(words[:2]) if isinstance(words, tuple) else "",
)
def test_who_may_not_hears_what_to_do_in_one_line(
    box: TestBox, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = run_command("penstock", *words, *user(box, "ana", tmp_path / "ana.properties"))
    assert (done.out, done.code) == ("", 1)
    assert done.err == (
        f"penstock: {said}. The brokers' logs name the operation that User:ana lacks; "
        "who administers the cluster allows it with: penstock acls add\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--topic", "orders", "--group", "g"), "Not authorized to access group: g"),
        (("--topic", "orders", "--partition", "0"), "Not authorized to access topics: [orders]"),
    ],
    ids=["group", "partition"],
)
def test_the_console_consumer_ends_where_it_may_not_read(
    box: TestBox, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    login = user(box, "ana", tmp_path / "ana.properties")
    done = run_command("kafka-console-consumer", "--bootstrap-server", box.bootstrap, *words, *login)
    error = f"ERROR Error processing message, terminating consumer process: {said}\n"
    assert done == ("", f"{error}Processed a total of 0 messages\n", 0)


def test_a_topic_is_read_without_a_right_on_a_group(box: TestBox, tmp_path: Path) -> None:
    login = user(box, "bea", tmp_path / "bea.properties")
    rule = ("--principal", "User:bea", "--allow", "Read", "--topic", "notes")
    create = ("topics", "create", "notes", "--partitions", "1", "--replication-factor", "1")
    for words in (create, ("acls", "add", *rule), ("produce", "notes", "hello")):
        done = run_command("penstock", *words, *config(box))
        assert done.code == 0, done.err
    done = run_command("penstock", "consume", "notes", "--from-beginning", "-n", "1", *login)
    assert done == ("hello\n", "", 0)
    at = ("--bootstrap-server", box.bootstrap, "--topic", "notes", *login)
    by_partition = ("--partition", "0", "--offset", "earliest", "--max-messages", "1")
    done = run_command("kafka-console-consumer", *at, *by_partition)
    assert done == ("hello\n", "Processed a total of 1 messages\n", 0)


def test_delegation_tokens_are_on(box: TestBox) -> None:
    words = ("kafka-delegation-tokens", "--bootstrap-server", box.bootstrap, *config(box))
    made = run_command(*words, "--create", "--max-life-time-period", "-1")
    assert made.code == 0, made.err
    assert "User:admin" in made.out
    assert "User:admin" in run_command(*words, "--describe").out


def test_each_file_lets_its_client_in(box: TestBox) -> None:
    listed = run_command("kafka-topics", "--bootstrap-server", box.bootstrap, *config(box), "--list")
    assert (listed.code, listed.err) == (0, "")
    librdkafka = read_properties(str(box.directory / "client.conf"))
    producer = Producer(librdkafka)
    failures: list[object] = []
    producer.produce("letters", "a", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(WAIT_S) == 0
    assert failures == [None]
    consumer = Consumer({**librdkafka, "group.id": "readers"})
    consumer.assign([TopicPartition("letters", 0, 0)])
    wait_until(lambda: (found := consumer.poll(0.2)) is not None and found.value() == b"a", "the letter")
    consumer.close()
    spark = read_properties(str(box.directory / "spark.conf"))
    java = read_properties(str(box.directory / "client.properties"))
    assert spark == {f"kafka.{name}": value for name, value in java.items()}


def test_it_comes_up_again_as_it_was(box: TestBox) -> None:
    def kept() -> dict[str, bytes]:
        files = [*(box.directory / name for name in CLIENT_FILES), *(box.directory / "security").iterdir()]
        return {path.name: path.read_bytes() for path in files}

    java = box.directory / "client.properties"
    java.write_text(java.read_text() + "client.id=mine\n")
    before = kept()
    assert box.run("down").code == 0
    started = box.up()
    assert started.code == 0, started.err
    after = kept()
    assert {name for name in after if after[name] != before[name]} == {"spark.conf"}
    assert b"kafka.client.id=mine" in after["spark.conf"]
    assert run_command("penstock", "users", "list", *config(box)).code == 0
    # a lost login is replaced by a new one
    (box.directory / "client.properties").unlink()
    assert box.run("down").code == 0
    assert box.up().code == 0
    assert run_command("penstock", "users", "list", *config(box)).code == 0
    assert (box.directory / "client.properties").read_bytes() != before["client.properties"]


def test_options_that_would_open_it_are_refused(box: TestBox) -> None:
    refused = box.up("--set", "listeners=PLAINTEXT://:9092")
    assert refused.code == 1
    assert (
        refused.err == "penstock: --set: listeners is not for you to set: it is part of what --secure does\n"
    )


def test_a_plain_cluster_is_not_made_a_secured_one(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text('{"members": [], "settings": {}, "host": "127.0.0.1"}')
    done = run_command("penstock", "up", "--secure", "--data", str(tmp_path))
    assert done.code == 1
    assert done.err.startswith(
        f"penstock: {tmp_path} was made without --secure: docs/how-to/secure-a-cluster.md"
    )
    assert done.err.count("\n") == 1
    assert (ROOT / "docs" / "how-to" / "secure-a-cluster.md").exists()
