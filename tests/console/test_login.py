"""Who is let in, how, and until when: against real brokers, a real provider, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from penstock.admin import Cluster
from penstock.stack.certificates import Authority
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessFailed
from penstock.web.users_file import hashed
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.console.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider
from tests.security.secured_broker import SecuredBroker
from tests.web.services import Reply

PASSWORD = "pass word ä"


def hash_of(password: str) -> str:
    return hashed(password, salt=b"0" * 16, iterations=1000)


@pytest.fixture(scope="module")
def guarded(
    start_console: StartConsole, broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> ConsoleProcess:
    """A console with users of its own, and an audit log in a topic."""
    file = tmp_path_factory.mktemp("settings") / "console.yaml"
    file.write_text(
        f"""\
clusters:
  - name: local
    bootstrap: {broker.bootstrap}
login:
  method: users
  users:
    - name: ana
      password: "{hash_of(PASSWORD)}"
      roles: [admin]
    - name: vera
      password: "{hash_of("v")}"
      roles: [viewer]
    - name: nobody
      password: "{hash_of("n")}"
"""
    )
    return start_console("--config", str(file), login=True)


def log_in(page: Page, console: ConsoleProcess, name: str, password: str) -> None:
    page.goto(f"{console.url}/login")
    page.get_by_test_id("login-name").fill(name)
    page.get_by_test_id("login-password").fill(password)
    page.get_by_test_id("login-button").click()


def posted(
    console: ConsoleProcess, name: str, password: str, *, cookie: str = "", origin: str | None = None
) -> Reply:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": console.url if origin is None else origin,
        "Cookie": cookie,
    }
    body = urlencode({"name": name, "password": password}).encode()
    return console.ask("POST", "/login", body, headers)


def session_of(console: ConsoleProcess, name: str, password: str, *, cookie: str = "") -> str:
    """NAME=WORD, as a browser sends it."""
    reply = posted(console, name, password, cookie=cookie)
    assert reply.status == 303
    found = SimpleCookie(reply.headers["set-cookie"])
    [(key, morsel)] = found.items()
    return f"{key}={morsel.value}"


def is_in(console: ConsoleProcess, cookie: str) -> bool:
    return console.ask("GET", "/local", headers={"Cookie": cookie}).status == 200


def test_without_settings_the_password_of_the_start_lets_an_admin_in(
    start_console: StartConsole, broker: PenstockBroker, pages: Pages
) -> None:
    console = start_console(bootstrap=broker.bootstrap, login=True)
    page = pages.open(f"{console.url}/local")
    expect(page).to_have_url(f"{console.url}/login?next=%2Flocal")
    expect(page.get_by_test_id("login-name")).to_have_value("admin")
    page.get_by_test_id("login-password").fill("guessed")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("login-message")).to_have_text("The name or the password is wrong.")
    page.get_by_test_id("login-password").fill(console.password)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{console.url}/local")
    expect(page.get_by_test_id("visitor")).to_contain_text("admin")

    other = pages.open(f"{console.url}/login#{console.password}")
    expect(other).to_have_url(f"{console.url}/local")
    assert "/login#" not in [line for line in console.log.splitlines() if "GET /login" in line]
    pages.forget_errors("401")


def test_no_login_is_for_addresses_of_this_machine_only(
    start_console: StartConsole, broker: PenstockBroker
) -> None:
    with pytest.raises(ProcessFailed, match="--no-login: is for addresses of this machine only"):
        start_console("--host", "0.0.0.0", bootstrap=broker.bootstrap)


def test_without_a_login_no_other_name_leads_here(console: ConsoleProcess) -> None:
    """A page of another site whose name was made to lead to 127.0.0.1 would have the same origin as its own."""
    assert console.ask("GET", "/local", headers={"Host": f"localhost:{console.port}"}).status == 200
    for host in ("evil.example", f"evil.example:{console.port}", "127.0.0.1.evil.example", "", "[::1"):
        assert console.ask("GET", "/local", headers={"Host": host}).status in (400, 403), host


def test_users_come_in_by_their_passwords_and_go_where_they_wanted(
    guarded: ConsoleProcess, pages: Pages
) -> None:
    page = pages.open(f"{guarded.url}/local/topics?q=a")
    expect(page.get_by_test_id("login-name")).to_be_focused()
    page.keyboard.type("ana")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{guarded.url}/local/topics?q=a")
    page.get_by_test_id("visitor").click()
    expect(page.get_by_text("Roles: admin")).to_be_visible()


def test_a_logout_ends_the_session_in_all_its_pages(guarded: ConsoleProcess, pages: Pages) -> None:
    page = pages.open()
    log_in(page, guarded, "ana", PASSWORD)
    expect(page.get_by_test_id("page")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{guarded.url}/local")
    expect(other.get_by_test_id("page")).to_be_visible()
    page.get_by_test_id("visitor").click()
    page.get_by_test_id("logout").click()
    expect(page).to_have_url(f"{guarded.url}/login?why=out")
    expect(page.get_by_test_id("login-message")).to_have_text("You are logged out.")
    expect(other).to_have_url(f"{guarded.url}/login?why=expired")
    page.goto(f"{guarded.url}/local")
    expect(page.get_by_test_id("login-name")).to_be_visible()
    pages.forget_errors("WebSocket")


def test_a_word_that_was_put_into_a_browser_is_never_a_session(guarded: ConsoleProcess) -> None:
    name = session_of(guarded, "ana", PASSWORD).partition("=")[0]
    planted = f"{name}=planted-by-somebody-else"
    fresh = session_of(guarded, "ana", PASSWORD, cookie=planted)
    assert fresh != planted
    assert is_in(guarded, fresh)
    assert not is_in(guarded, planted)


def test_a_login_ends_the_session_that_the_browser_had(guarded: ConsoleProcess) -> None:
    first = session_of(guarded, "ana", PASSWORD)
    assert is_in(guarded, first)
    second = session_of(guarded, "vera", "v", cookie=first)
    assert is_in(guarded, second)
    assert not is_in(guarded, first)


def test_the_cookie_is_kept_from_scripts_and_other_sites(guarded: ConsoleProcess) -> None:
    said = posted(guarded, "ana", PASSWORD).headers["set-cookie"]
    assert "HttpOnly" in said
    assert "samesite=strict" in said.lower()
    assert "Path=/" in said
    assert "Domain" not in said


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://127.0.0.1:1"])
def test_a_login_or_logout_from_another_site_is_refused(guarded: ConsoleProcess, origin: str) -> None:
    assert posted(guarded, "ana", PASSWORD, origin=origin).status == 403
    cookie = session_of(guarded, "ana", PASSWORD)
    reply = guarded.ask("POST", "/logout", b"", {"Cookie": cookie, "Origin": origin})
    assert reply.status == 403
    assert is_in(guarded, cookie)


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nX: y"],
)
def test_a_login_leads_nowhere_else(guarded: ConsoleProcess, target: str) -> None:
    body = urlencode({"name": "ana", "password": PASSWORD, "next": target}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": guarded.url}
    reply = guarded.ask("POST", "/login", body, headers)
    assert reply.headers["location"] == "/"


def test_who_has_no_role_is_told_so(guarded: ConsoleProcess) -> None:
    reply = posted(guarded, "nobody", "n")
    assert reply.status == 403
    assert "no role is given" in reply.body.decode()
    assert "set-cookie" not in reply.headers


def test_passwords_cannot_be_tried_for_long(guarded: ConsoleProcess) -> None:
    for _ in range(5):
        assert posted(guarded, "victim", "wrong").status == 401
    reply = posted(guarded, "victim", "wrong")
    assert reply.status == 429
    assert "Too many attempts" in reply.body.decode()
    assert posted(guarded, "ana", PASSWORD).status == 303, "others are not kept out"


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("a" * 5000, "x"),
        ("ana", "x" * 5000),
        ("\x00", "\x00"),
        ("ana\r\nSet-Cookie: a=b", "x"),
        ("", ""),
        ("<b>", "x"),
    ],
)
def test_a_strange_login_is_a_wrong_one(guarded: ConsoleProcess, name: str, password: str) -> None:
    reply = posted(guarded, name, password)
    assert reply.status in (401, 429)
    assert "<b>" not in reply.body.decode()
    assert "set-cookie" not in reply.headers


def test_what_is_asked_without_a_session_is_refused(guarded: ConsoleProcess) -> None:
    assert guarded.ask("GET", "/local", headers={"Accept": "text/html"}).status == 303
    assert guarded.ask("GET", "/local").status == 401
    assert guarded.ask("GET", "/local/topics", headers={"Cookie": "penstock_session=x"}).status == 401
    assert guarded.ask("GET", "/health").status == 200


def test_names_and_passwords_are_no_html_and_in_no_log(guarded: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{guarded.url}/login?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&why=%3Cb%3E")
    expect(page.get_by_test_id("login-button")).to_be_visible()
    assert page.locator("script").count() == 1
    log_in(page, guarded, '"><img src=x onerror=alert(1)>', "never-in-a-log")
    expect(page.get_by_test_id("login-message")).to_be_visible()
    expect(page.get_by_test_id("login-name")).to_have_value('"><img src=x onerror=alert(1)>')
    assert "never-in-a-log" not in guarded.log
    pages.forget_errors("401")


def test_the_login_speaks_portuguese(guarded: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{guarded.url}/login", locale="pt-BR")
    expect(page.get_by_test_id("login-button")).to_have_text("Entrar")
    assert page.evaluate("document.documentElement.lang") == "pt"


def test_the_header_fits_on_a_phone(guarded: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(viewport=PHONE)
    log_in(page, guarded, "ana", PASSWORD)
    expect(page.get_by_test_id("page")).to_be_visible()
    expect(page.get_by_test_id("visitor")).to_be_in_viewport(ratio=1)
    expect(page.get_by_test_id("menu-button")).to_be_in_viewport(ratio=1)


def test_under_tls_the_cookie_is_for_tls_only(
    start_console: StartConsole,
    broker: PenstockBroker,
    tmp_path_factory: pytest.TempPathFactory,
    pages: Pages,
) -> None:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    store = authority.issue("console", hosts=["127.0.0.1", "localhost"]).pem()
    console = start_console("--set", f"ssl.keystore.location={store}", bootstrap=broker.bootstrap, login=True)
    assert console.url.startswith("https://")
    page = pages.open(f"{console.url}/login#{console.password}")
    expect(page.get_by_test_id("page")).to_be_visible()
    expect(page.get_by_test_id("visitor")).to_contain_text("admin")
    [cookie] = [each for each in page.context.cookies() if "session" in each["name"]]
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")


@pytest.fixture(scope="module")
def scram(start_console: StartConsole, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """A console whose visitors are the users of a cluster behind TLS and SASL."""
    directory = tmp_path_factory.mktemp("secured")
    with SecuredBroker(directory / "broker", Authority(directory / "certificates")) as broker:
        with Cluster(broker.bootstrap("PLAINTEXT")) as cluster:
            for name in ("console", "ana", "bob"):
                cluster.users.set(name, f"{name}-secret")
        file = directory / "console.yaml"
        file.write_text(
            f"""\
clusters:
  - name: secured
    bootstrap: {broker.bootstrap("SECURE")}
    properties:
      security.protocol: SASL_SSL
      ssl.truststore.location: {broker.authority.path}
      sasl.mechanism: SCRAM-SHA-512
      sasl.username: console
      sasl.password: console-secret
login:
  method: scram
  roles_of:
    ana: [operator]
"""
        )
        console = start_console("--config", str(file), login=True)
        yield console
        console.stop()


def test_users_of_a_cluster_come_in_by_scram(scram: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{scram.url}/login")
    expect(page.get_by_text("Your name and password of the Kafka cluster secured.")).to_be_visible()
    log_in(page, scram, "ana", "ana-secret")
    expect(page).to_have_url(f"{scram.url}/secured")
    page.get_by_test_id("visitor").click()
    expect(page.get_by_text("Roles: operator")).to_be_visible()


def test_a_wrong_password_at_the_cluster_is_wrong_here(scram: ConsoleProcess) -> None:
    assert posted(scram, "ana", "wrong").status == 401
    assert posted(scram, "unknown", "wrong").status == 401
    assert posted(scram, "", "").status == 401


def test_a_user_of_the_cluster_without_a_role_is_not_let_in(scram: ConsoleProcess) -> None:
    assert posted(scram, "bob", "bob-secret").status == 403


def test_a_cluster_that_does_not_answer_makes_no_password_wrong(
    start_console: StartConsole, tmp_path: Path
) -> None:
    file = tmp_path / "console.yaml"
    file.write_text(
        json.dumps(
            {
                "clusters": [{"name": "gone", "bootstrap": "127.0.0.1:9"}],
                "login": {"method": "scram", "roles_of": {"*": ["viewer"]}},
            }
        )
    )
    console = start_console("--config", str(file), login=True)
    reply = posted(console, "ana", "x")
    assert reply.status == 503
    text = reply.body.decode()
    assert "cannot be checked now: cannot reach a broker at 127.0.0.1:9: connection refused" in text


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with OpenIdProvider() as running:
        yield running


@pytest.fixture
def by_openid(
    start_console: StartConsole, broker: PenstockBroker, provider: OpenIdProvider, tmp_path: Path
) -> ConsoleProcess:
    file = tmp_path / "console.yaml"
    file.write_text(
        json.dumps(
            {
                "clusters": [{"name": "local", "bootstrap": broker.bootstrap}],
                "login": {
                    "method": "oidc",
                    "oidc": {
                        "issuer": provider.issuer,
                        "client_id": CLIENT_ID,
                        "client_secret": CLIENT_SECRET,
                        "provider": "Example",
                        "roles_claim": "groups",
                    },
                    "roles_of": {"group:ops": ["operator"], "maria": ["viewer"]},
                },
            }
        )
    )
    return start_console("--config", str(file), login=True)


def test_a_provider_of_openid_lets_people_in(
    by_openid: ConsoleProcess, provider: OpenIdProvider, pages: Pages
) -> None:
    page = pages.open(f"{by_openid.url}/local/groups")
    expect(page.get_by_test_id("oidc")).to_have_text("Log in with Example")
    page.get_by_test_id("oidc").click()
    page.locator("#approve").click()
    expect(page).to_have_url(f"{by_openid.url}/local/groups")
    page.get_by_test_id("visitor").click()
    expect(page.get_by_text("Roles: operator")).to_be_visible()
    assert provider.refusals == []

    spoiled = {
        "another nonce": lambda claims: {**claims, "nonce": "other"},
        "another client": lambda claims: {**claims, "aud": "other"},
        "another issuer": lambda claims: {**claims, "iss": "https://other.example"},
        "over": lambda claims: {**claims, "exp": 1},
        "no time": lambda claims: {**claims, "exp": None},
        "no algorithm": lambda claims: {**claims, "kid": "unknown"},
    }
    for what, spoil in spoiled.items():
        provider.spoil = spoil
        stranger = pages.open(f"{by_openid.url}/login")
        stranger.get_by_test_id("oidc").click()
        stranger.locator("#approve").click()
        expect(stranger.get_by_test_id("login-message")).to_contain_text("The login cannot be checked now")
        assert [
            each
            for each in stranger.context.cookies()
            if "session" in each["name"] and "oidc" not in each["name"]
        ] == [], what
    provider.spoil = dict

    provider.person = {"sub": "18", "preferred_username": "eve"}
    stranger = pages.open(f"{by_openid.url}/login")
    stranger.get_by_test_id("oidc").click()
    stranger.locator("#approve").click()
    expect(stranger.get_by_test_id("login-message")).to_contain_text("no role is given to you")
    pages.forget_errors("403", "WebSocket")


def test_a_login_by_openid_is_bound_to_its_browser_and_counts_once(
    by_openid: ConsoleProcess, provider: OpenIdProvider, pages: Pages
) -> None:
    """An attacker who sends somebody the end of a login of his own does not log that person in as himself."""
    page = pages.open(f"{by_openid.url}/login")
    page.get_by_test_id("oidc").click()
    page.locator("#approve").wait_for()
    state = page.url.partition("state=")[2].partition("&")[0]
    provider.codes["stolen"] = {}
    callback = f"/login/oidc/callback?code=stolen&state={state}"
    reply = by_openid.ask("GET", callback)
    assert reply.status == 403
    assert "begun in another browser" in reply.body.decode()
    page.locator("#approve").click()
    expect(page.get_by_test_id("login-message")).to_contain_text("not known, or took too long")
    for query in ("", "?code=x", "?code=x&state=unknown", "?error=%3Cscript%3E&state=unknown"):
        answer = by_openid.ask("GET", f"/login/oidc/callback{query}")
        assert answer.status == 403
        assert "<script>" not in answer.body.decode()
    pages.forget_errors("403")


def test_a_password_of_users_is_hashed_by_the_command(tmp_path: Path) -> None:
    import subprocess
    import sys

    from penstock.web.users_file import is_let_in, parse_users

    command = [sys.executable, "-m", "penstock", "console", "--hash-password"]
    done = subprocess.run(command, input="se:cret\n", capture_output=True, text=True, timeout=60, check=True)
    users = parse_users(f"ana: {done.stdout.strip()}", option="x")
    assert is_let_in(users, "ana", "se:cret", ("*",))
    assert "se:cret" not in done.stdout


def test_what_the_file_says_the_command_line_does_not(start_console: StartConsole, tmp_path: Path) -> None:
    file = tmp_path / "console.yaml"
    file.write_text("clusters: [{name: local, bootstrap: 'a:1'}]\n")
    for option in ("--bootstrap-server", "--name", "--data", "--sql-url", "--connect-url"):
        with pytest.raises(ProcessFailed, match=f"--config says it all: leave out {option}"):
            start_console("--config", str(file), option, "http://x:1")
