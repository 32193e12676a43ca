"""penstock up --help: what the table of services says, in words."""

from __future__ import annotations

from click.testing import CliRunner

from penstock.cli.verbs.up import down, up
from penstock.stack.services import SERVICES


def told(text: str) -> str:
    return " ".join(text.split())


def test_a_port_is_that_of_the_service_by_its_title_and_others_follow_only_where_there_may_be_some() -> None:
    shown = told(CliRunner().invoke(up, ["--help"], terminal_width=200).output)
    for service in SERVICES:
        first = "First port of" if max(service.counts) > 1 else "Port of"
        assert f"{first} {service.title}" in shown
        assert f"first {service.name}" not in shown
    assert shown.count("the others follow") == sum(max(service.counts) > 1 for service in SERVICES)
    assert "Port of the SQL server (8088 in a new directory; 0 takes a free one)." in shown


def test_help_speaks_of_services_too() -> None:
    assert "ZooKeeper, brokers, and the services" in told(CliRunner().invoke(up, ["--help"]).output)
    assert "services first, then brokers, ZooKeeper last" in told(CliRunner().invoke(down, ["--help"]).output)
