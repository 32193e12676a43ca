"""`penstock` with one service more: all that a new service needs is its row."""

import sys
from pathlib import Path

from penstock.stack import brokers, services
from penstock.stack.health import http_health
from penstock.stack.restart_policy import RestartPolicy
from penstock.stack.stack import Member, Service, Stack

SERVER = Path(__file__).with_name("bell_server.py")


def command(stack: Stack, member: Member) -> list[str]:
    where = [str(stack.data_of(member)), stack.host_of(member), str(member.port)]
    return [sys.executable, str(SERVER), *where, brokers.bootstrap_of(stack)]


BELL = Service(
    name="bell",
    title="the bell",
    plural="bells",
    command=command,
    health_check=http_health(),
    port=8090,
    port_option="--bell-port",
    needs=(brokers.NAME,),
    default_count=0,
    restart_policy=RestartPolicy(first_pause_s=0.1, longest_pause_s=0.4, max_deaths=3),
)

if __name__ == "__main__":
    services.SERVICES = (BELL, *services.SERVICES)  # first, so that only its needs can put it last
    from penstock.cli.verbs.app import run

    sys.exit(run(sys.argv[1:]))
