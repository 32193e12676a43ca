"""The fake network: what TCP promises, and what a network does to it."""

import asyncio

import pytest

from simulation.seeds.loop import Schedule
from simulation.seeds.network import Network
from simulation.seeds.process import Process
from simulation.seeds.sockets import BUFFER_BYTES


class Pair:
    """A client and a server, connected."""

    def __init__(self, seed=1):
        self.schedule = Schedule(seed)
        self.network = Network(self.schedule)
        self.server = Process(self.network, "server")
        self.client = Process(self.network, "client")
        self.listener = self.server.listen(9092)

    async def connect(self):
        ours = await self.client.connect("server", 9092)
        theirs, address = self.listener.accept()
        assert address == ours.getsockname()
        return ours, theirs

    def run(self, main):
        try:
            return self.schedule.run(main(self), self.client.loop)
        finally:
            self.schedule.close()


async def receive(sock, size):
    data = b""
    while len(data) < size:
        try:
            piece = sock.recv(size - len(data))
        except BlockingIOError:
            await asyncio.sleep(0.001)
            continue
        if not piece:
            break
        data += piece
    return data


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_in_the_order_in_which_they_were_sent(seed):
    async def main(pair):
        ours, theirs = await pair.connect()
        sent = b"".join(b"%d," % number for number in range(300))
        for start in range(0, len(sent), 7):
            ours.send(sent[start : start + 7])
        return await receive(theirs, len(sent)) == sent

    assert Pair(seed).run(main)


def test_nobody_listens_where_nobody_listens():
    async def main(pair):
        with pytest.raises(ConnectionRefusedError):
            await pair.client.connect("server", 1)

    Pair().run(main)


def test_a_sender_is_held_back_by_a_receiver_that_does_not_read():
    async def main(pair):
        ours, theirs = await pair.connect()
        assert ours.send(bytes(2 * BUFFER_BYTES)) == BUFFER_BYTES
        with pytest.raises(BlockingIOError):
            ours.send(b"more")
        writable = asyncio.Event()
        pair.client.loop.add_writer(ours.fileno(), writable.set)
        await receive(theirs, BUFFER_BYTES)
        await writable.wait()
        pair.client.loop.remove_writer(ours.fileno())
        return ours.send(b"more")

    assert Pair().run(main) == 4


def test_a_split_holds_back_what_is_sent_until_it_is_healed():
    async def main(pair):
        ours, theirs = await pair.connect()
        pair.network.split(["client"], ["server"])
        ours.send(b"before ")
        await asyncio.sleep(60)
        with pytest.raises(BlockingIOError):
            theirs.recv(100)
        pair.network.heal()
        ours.send(b"after")
        return await receive(theirs, 12)

    assert Pair().run(main) == b"before after"


def test_a_connection_over_a_split_is_made_when_it_is_healed():
    async def main(pair):
        pair.network.split(["client"], ["server"])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pair.client.connect("server", 9092), 30)
        connecting = asyncio.ensure_future(pair.client.connect("server", 9092))
        await asyncio.sleep(1)
        pair.network.heal()
        return (await connecting).getpeername()

    assert Pair().run(main) == ("server", 9092)


def test_a_process_that_is_killed_ends_its_connections():
    async def main(pair):
        ours, _ = await pair.connect()
        pair.server.kill()
        await asyncio.sleep(1)
        assert ours.recv(10) == b""
        with pytest.raises(ConnectionRefusedError):
            await pair.client.connect("server", 9092)

    Pair().run(main)


def test_a_machine_without_power_is_silent_for_a_while():
    async def main(pair):
        ours, theirs = await pair.connect()
        theirs.send(b"on its way")
        pair.server.kill(silently=True)
        with pytest.raises(BlockingIOError):
            ours.recv(10)
        await asyncio.sleep(10)
        with pytest.raises(ConnectionResetError):
            ours.recv(10)

    Pair().run(main)


def test_a_reset_breaks_both_ends():
    async def main(pair):
        ours, theirs = await pair.connect()
        pair.network.reset_all("server")
        for sock in (ours, theirs):
            with pytest.raises(ConnectionResetError):
                sock.send(b"x")

    Pair().run(main)
