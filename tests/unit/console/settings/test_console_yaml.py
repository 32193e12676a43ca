"""console.yaml: what it says, and mistakes with their lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.settings import ConsoleSettings
from penstock.console.settings.reading import read_settings, settings_of
from penstock.web.users_file import hashed, is_let_in

HASH = hashed("pw", salt=b"0" * 16, iterations=10)
CLUSTERS = """\
clusters:
  - name: local
    bootstrap: localhost:9092
"""


def settings(text: str, environment: Mapping[str, str] | None = None) -> ConsoleSettings:
    return settings_of(text, file="console.yaml", environment=environment or {}).settings


def complaint(text: str) -> str:
    with pytest.raises(UserError) as caught:
        settings(text)
    return str(caught.value)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SASL_SSL\nbootstrap.servers=prod:9092\n")
    (tmp_path / "more-users").write_text(f"bob: {HASH},viewer\n")
    file = tmp_path / "console.yaml"
    file.write_text(
        f"""\
clusters:
  - name: local
    bootstrap: localhost:9092
    registry: http://localhost:8081
    connect: [http://localhost:8083, http://localhost:8084]
    sql: http://localhost:8088
  - name: prod
    properties_file: client.properties
    properties:
      sasl.mechanism: SCRAM-SHA-512
login:
  method: users
  users:
    - name: ana
      password: {HASH}
      roles: [admin, orders-team]
  users_file: more-users
  idle_minutes: 30
  max_hours: 8
roles:
  - name: orders-team
    grants:
      - actions: [view, read-messages]
        names: ["orders-*"]
        clusters: [prod]
      - actions: ["*"]
        names: [orders-test]
masking:
  - topics: ["orders-*"]
    fields: [card.number]
    how: last-4
    except_roles: [admin]
audit:
  topic: _console_audit
  cluster: prod
history:
  file: history.db
  keep_hours: 48
public_url: https://console.example.com/
web:
  listeners: http://127.0.0.1:9000
  ssl.keystore.location: key.pem
"""
    )
    read = read_settings(str(file))
    found = read.settings
    local, prod = found.clusters
    assert (local.registry_url, local.sql_url) == ("http://localhost:8081", "http://localhost:8088")
    assert local.connect_urls == ("http://localhost:8083", "http://localhost:8084")
    assert prod.bootstrap == "prod:9092"
    assert dict(prod.properties) == {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    assert set(found.login.users) == {"ana", "bob"}
    assert is_let_in(dict(found.login.users), "ana", "pw", ("*",))
    assert (found.login.idle_minutes, found.login.max_hours) == (30, 8)
    team = found.roles["orders-team"]
    assert team.grants[0].actions == {Action.VIEW, Action.READ_MESSAGES}
    assert team.grants[1].actions == set(Action)
    assert found.masking[0].how == "last-4"
    assert (found.audit.topic, found.audit.cluster) == ("_console_audit", "prod")
    assert found.history.file == tmp_path / "history.db"
    assert found.public_url == "https://console.example.com"
    assert dict(read.web) == {"listeners": "http://127.0.0.1:9000", "ssl.keystore.location": "key.pem"}


def test_little_is_needed() -> None:
    found = settings(CLUSTERS)
    assert found.login.method == "start", "without a word about it there is a login"
    assert found.audit.topic == ""
    assert found.history.file is None


def test_secrets_may_come_from_the_environment() -> None:
    text = CLUSTERS + "    properties:\n      sasl.password: ${env:PW}\n"
    assert settings(text, {"PW": "a: b # c"}).clusters[0].properties["sasl.password"] == "a: b # c"
    assert complaint(text) == (
        "console.yaml, line 5: clusters[0].properties.sasl.password: the environment has no variable PW"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "console.yaml: is empty"),
        ("- a\n", "console.yaml, line 1: must be a mapping: lines of `name: value`"),
        ("login: {}\n", "console.yaml, line 1: clusters: at least one must be given"),
        ("clusters:\n  - name: [\n", "console.yaml, line 3: "),
        ("clusters:\n  - {name: a, bootstrap: x:1}\nclusters: []\n", "line 3: clusters is given twice"),
        ("clusters:\n  - name: a\n", "line 2: clusters[0]: bootstrap must be given"),
        ("clusters:\n  - bootstrap: a:1\n", "line 2: clusters[0]: name must be given"),
        ("clusters:\n  - name: login\n    bootstrap: a:1\n", "line 2: clusters[0].name: 'login' cannot be the name"),
        ("clusters:\n  - name: a/b\n    bootstrap: a:1\n", "line 2: clusters[0].name: 'a/b' cannot be the name"),
        (CLUSTERS + "  - name: local\n    bootstrap: b:1\n", "two clusters have the name local"),
        (CLUSTERS + "    registery: http://x\n", "line 4: clusters[0].registery: there is no such setting; did you"),
        (CLUSTERS + "    registry: localhost:8081\n", "line 4: clusters[0].registry: 'localhost:8081' is not an address"),
        (CLUSTERS + "masks: []\n", "line 4: masks: there is no such setting; did you mean masking?"),
        (CLUSTERS + "login:\n  method: usrs\n", "'usrs' is none of start, users, scram, oidc; did you mean users?"),
        (CLUSTERS + "login:\n  method: none\n", "line 5: login.method: 'none' is none of"),
        (CLUSTERS + "login:\n  method: users\n", "users or users_file must be given"),
        (
            CLUSTERS + "login:\n  method: users\n  users:\n    - name: ana\n      password: secret\n",
            "line 8: login.users[0].password: must be a hash: penstock console --hash-password makes one",
        ),
        (
            CLUSTERS + f"login:\n  method: users\n  users:\n    - {{name: ana, password: '{HASH}', roles: [boss]}}\n",
            "the user ana has the role boss, and there is no such role",
        ),
        (CLUSTERS + "login:\n  method: scram\n", "roles_of must be given"),
        (
            CLUSTERS + "login:\n  method: scram\n  roles_of:\n    ana: [boss]\n",
            "line 7: login.roles_of.ana: there is no role boss; there are viewer, operator, admin",
        ),
        (CLUSTERS + "login:\n  method: oidc\n", "oidc must be given"),
        (CLUSTERS + "login:\n  idle_minutes: soon\n", "line 5: login.idle_minutes: must be a number from 1 to 10080"),
        (CLUSTERS + "roles:\n  - name: admin\n    grants: []\n", "'admin' cannot be the name of a role"),
        (CLUSTERS + "roles:\n  - name: a\n", "line 5: roles[0]: grants must be given"),
        (
            CLUSTERS + "roles:\n  - name: a\n    grants:\n      - actions: [fly]\n",
            "line 7: roles[0].grants[0].actions: there is no action fly",
        ),
        (CLUSTERS + "masking:\n  - fields: [a]\n", "line 5: masking[0]: topics must be given"),
        (CLUSTERS + "masking:\n  - topics: [a]\n    fields: ['a[']\n", "line 6: masking[0].fields: 'a[' is not a path"),
        (CLUSTERS + "masking:\n  - topics: [a]\n    how: blur\n", "line 6: masking[0].how: 'blur' is none of"),
        (CLUSTERS + "masking:\n  - topics: a\n    except_roles: boss\n", "there is no role boss"),
        (CLUSTERS + "audit:\n  topic: a\n  cluster: prod\n", "line 6: audit.cluster: 'prod' is none of local"),
        (CLUSTERS + "history: 5\n", "line 4: history: must be a mapping"),
        (CLUSTERS + "public_url: ftp://x\n", "line 4: public_url: 'ftp://x' is not an address"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(text: str, said: str) -> None:
    assert said in complaint(text)


def test_a_complaint_never_has_the_password_in_it() -> None:
    text = CLUSTERS + "login:\n  method: users\n  users:\n    - name: ana\n      password: s3cret\n"
    assert "s3cret" not in complaint(text)


@given(st.text(max_size=200))
def test_whatever_is_in_the_file_it_is_read_or_refused_in_one_line(text: str) -> None:
    said = "console.yaml"
    try:
        settings(CLUSTERS + text)
    except UserError as error:
        said = str(error)
    assert said.startswith("console.yaml")
    assert len(said.splitlines()) == 1


def test_an_alias_that_grows_is_no_way_to_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert "there is no such setting" in complaint(CLUSTERS + "\n".join(lines) + "\n")
