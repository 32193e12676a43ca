"""The file that names our session with the store is written by a thread, and the last session wins."""

import asyncio
from pathlib import Path

from penstock.broker.cluster.own_sessions import FILE_NAME, OwnSessions
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pool


def test_the_last_session_is_known_to_the_next_process(tmp_path: Path) -> None:
    partitions = HeldPartitions(OsDisk(), [str(tmp_path)], SystemClock(), broker_id=1, is_clustered=True)
    pool: Pool | None = None

    async def register() -> None:
        nonlocal pool
        pool = Pool(asyncio.get_running_loop(), "syncs", 8)
        sessions = OwnSessions(partitions, pool)
        for session_id in range(1, 30):
            sessions.add(session_id)
            assert session_id in sessions
        assert 7 not in sessions

    asyncio.run(register())
    assert pool is not None
    pool._threads.shutdown(wait=True)
    assert int((tmp_path / FILE_NAME).read_bytes()) == 29
    partitions.close()
