"""Delegation tokens in a cluster, on the simulation's clock: all brokers follow what the controller does with them."""

from penstock.controller.delegation_tokens import Lifetimes, create_token
from penstock.metadata import znodes
from penstock.model.tokens import DelegationToken
from penstock.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from simulation.seeds.machine import Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, node_of, others

HOUR_MS = 3_600_000
OPTIONS = {"delegation.token.secret.key": "key", "delegation.token.expiry.check.interval.ms": "10000"}


async def made(machine: Machine, token_id: str, *, good_for_ms: int) -> DelegationToken:
    node = node_of(machine)
    (token,) = await node.changes.make(
        lambda: create_token(
            CreateDelegationTokenRequest(),
            requester="User:ana",
            token_id=token_id,
            lifetimes=Lifetimes(longest_ms=HOUR_MS, renewal_ms=good_for_ms),
            now_ms=node.clock.now_ms(),
            notify=True,
        )
    )
    return token


def test_tokens_are_known_to_all_brokers_until_they_have_expired() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        await cluster.on(controller, made(controller, "short", good_for_ms=5_000))
        long = await cluster.on(controller, made(controller, "long", good_for_ms=HOUR_MS))
        for machine in cluster.machines:
            tokens = node_of(machine).tokens
            await cluster.until(lambda tokens=tokens: tokens.usable("short") and tokens.usable("long"))
            assert tokens.with_secret(tokens.secret("long")) == long
        node = node_of(controller)
        ends_ms = node.clock.now_ms() + 5_000
        await cluster.until(lambda: node.clock.now_ms() > ends_ms)
        assert node.tokens.usable("short") is None, "also before it is removed"
        for machine in cluster.machines:
            image = node_of(machine).image
            await cluster.until(lambda image=image: "short" not in image.tokens)
            assert image.tokens == {"long": long}
        assert await cluster.on(controller, node.tree.children(znodes.TOKENS)) == ["long"]

    SimulatedCluster(options=OPTIONS).run(main)


def test_a_broker_that_was_away_learns_what_became_of_tokens() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        away = others(cluster, controller)[0]
        await cluster.on(controller, made(controller, "short", good_for_ms=5_000))
        await cluster.until(lambda: "short" in node_of(away).image.tokens)
        away.kill()
        await cluster.on(controller, made(controller, "long", good_for_ms=HOUR_MS))
        await cluster.until(lambda: "short" not in node_of(controller).image.tokens)
        away.start()
        await cluster.until(lambda: away.node is not None and list(away.node.image.tokens) == ["long"])

    SimulatedCluster(options=OPTIONS).run(main)
