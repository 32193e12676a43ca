"""A proxy before a broker that loses answers: a produce request arrives and is stored, its answer does not come back.

That is the one fault for which idempotent producers exist. After each `passed_between` answered produce requests it swallows
the next answer, and whatever follows it on that connection, and closes both sides.
"""

import asyncio
import struct
from collections import deque

from tests.clients.aiokafka_driver import LoopThread

PRODUCE = 0


class ForgetfulProxy:
    def __init__(self, *, port: int, broker_port: int, passed_between: int, losses: int) -> None:
        self.port = port
        self.lost_answers = 0
        self._broker_port = broker_port
        self._passed_between = passed_between
        self._losses = losses
        self._passed = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = LoopThread()
        self._server = self._loop.run(asyncio.start_server(self._serve, "127.0.0.1", port))

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        both_sides = {to_client, to_broker}
        self._writers |= both_sides
        api_keys: deque[int] = deque()  # of the requests on their way: the broker answers in order

        async def requests() -> None:
            while True:
                frame = await _read_frame(from_client)
                api_keys.append(struct.unpack_from(">h", frame, 4)[0])
                to_broker.write(frame)
                await to_broker.drain()

        async def answers() -> None:
            while True:
                frame = await _read_frame(from_broker)
                if api_keys.popleft() == PRODUCE and self._loses_this_one():
                    return
                to_client.write(frame)
                await to_client.drain()

        both = [asyncio.ensure_future(requests()), asyncio.ensure_future(answers())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            for side in both_sides:
                side.close()
                await asyncio.gather(side.wait_closed(), return_exceptions=True)
            self._writers -= both_sides
            self._tasks.discard(task)

    def _loses_this_one(self) -> bool:
        self._passed += 1
        if self._passed <= self._passed_between or self.lost_answers == self._losses:
            return False
        self._passed = 0
        self.lost_answers += 1
        return True

    def close(self) -> None:
        async def close() -> None:
            self._server.close()
            while self._tasks:
                for writer in self._writers:
                    writer.close()
                await asyncio.wait(self._tasks, timeout=0.05)

        self._loop.run(close())
        self._loop.close()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])
