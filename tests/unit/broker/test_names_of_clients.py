"""What clients call themselves is kept as long as their connections: it is cut."""

import asyncio
from pathlib import Path

from penstock.wire.messages.api_versions import ApiVersionsRequest
from tests.unit.broker.lone_broker import lone_broker


def test_the_names_of_a_clients_library_are_cut(tmp_path: Path) -> None:
    async def story() -> None:
        async with lone_broker(tmp_path) as broker, await broker.client() as client:
            request = ApiVersionsRequest(
                client_software_name="n" * 32_000, client_software_version="1" * 32_000
            )
            assert (await client.ask(request, 3)).error_code == 0
            (connection,) = broker.listener.connections
            assert connection.client_software == ("n" * 255, "1" * 255)

    asyncio.run(story())
