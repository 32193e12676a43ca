"""Values that stand elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client.errors import BadOption
from penstock.connect.providers import Providers

CLASSES = "org.apache.kafka.common.config.provider."


def providers(**parameters: str) -> Providers:
    given = {
        "config.providers": "file, env,directory",
        "config.providers.file.class": CLASSES + "FileConfigProvider",
        "config.providers.env.class": CLASSES + "EnvVarConfigProvider",
        "config.providers.directory.class": "DirectoryConfigProvider",
    }
    return Providers.of(given | {name.replace("__", "."): value for name, value in parameters.items()})


def test_a_reference_becomes_what_it_stands_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.properties").write_text("password=p\nuser=u\n")
    (tmp_path / "token").write_text("t")
    monkeypatch.setenv("A_NAME_OF_TESTS", "n")
    file = tmp_path / "secrets.properties"
    assert providers().resolved(
        {
            "a": f"${{file:{file}:password}}",
            "b": f"jdbc://${{file:{file}:user}}@${{env:A_NAME_OF_TESTS}}/",
            "c": f"${{directory:{tmp_path}:token}}",
            "d": "plain",
        }
    ) == {"a": "p", "b": "jdbc://u@n/", "c": "t", "d": "plain"}


@pytest.mark.parametrize(
    "text",
    [
        "${vault:a:b}",
        "${env:NOT_SET_ANYWHERE}",
        "${topic}",
        "${directory:/:../etc/passwd}",
        "${file:/nowhere",
    ],
)
def test_what_cannot_be_found_stays(text: str) -> None:
    assert providers().text(text) == text


def test_only_paths_and_names_that_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("s")
    monkeypatch.setenv("OTHER", "o")
    strict = providers(
        config__providers__directory__param__allowed__paths=str(tmp_path / "inner"),
        config__providers__env__param__allowlist__pattern="ALLOWED_.*",
    )
    for text in (f"${{directory:{tmp_path}:secret}}", "${env:OTHER}"):
        assert strict.text(text) == text


def test_a_worker_without_providers_resolves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_NAME_OF_TESTS", "n")
    none = Providers.of({})
    assert none.text("${env:A_NAME_OF_TESTS}") == "${env:A_NAME_OF_TESTS}"
    assert not none.refers("${env:A_NAME_OF_TESTS}")
    assert providers().refers("x${env:A}")
    assert not providers().refers("plain")
    assert not providers().refers(None)


def test_a_provider_of_an_unknown_class_is_refused() -> None:
    with pytest.raises(BadOption, match=r"config\.providers\.x\.class"):
        Providers.of({"config.providers": "x", "config.providers.x.class": "com.example.Vault"})


def test_messages_do_not_show_what_references_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONG", "open sesame")
    monkeypatch.setenv("SHORT", "ab")
    secrets = providers().secrets({"url": "db://${env:LONG}@x", "user": "${env:SHORT}", "plain": "x", "none": None,
                                   "unknown": "${env:NOT_SET_ANYWHERE}"})  # fmt: skip
    assert secrets.hidden("db://open sesame@x for ab: abc, ${env:NOT_SET_ANYWHERE}") == (
        "db://[hidden]@x for [hidden]: abc, ${env:NOT_SET_ANYWHERE}"
    )
    assert providers().secrets({"plain": "x"}).hidden("x") == "x"
