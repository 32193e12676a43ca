"""Which consumer instances there are: their names, their bounds, and their end when nobody uses them."""

from __future__ import annotations

import asyncio
import time
from typing import Final
from uuid import uuid4

from penstock.rest import errors
from penstock.rest.access import Access
from penstock.rest.consumers.instance import Instance, InstanceConfig

LOOK_EVERY_S: Final = 1.0
END_S: Final = 5.0


class Instances:
    def __init__(self, *, limit: int, idle_timeout_ms: int, proxy_id: str) -> None:
        self._limit = limit
        self._idle_timeout_s = idle_timeout_ms / 1000
        self._prefix = f"rest-consumer-{proxy_id}-" if proxy_id else "rest-consumer-"
        self._all: dict[tuple[str, str], Instance] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, place: tuple[str, str]) -> bool:
        return place in self._all

    async def create(self, access: Access, group: str, name: str | None, config: InstanceConfig) -> Instance:
        name = name or f"{self._prefix}{uuid4()}"
        if (group, name) in self._all:
            raise errors.instance_exists()
        if len(self._all) + len(self._ending) >= self._limit:
            raise errors.too_many_instances(self._limit)
        instance = Instance(group, name, config, lambda: access.connection("consumer"), access.owner)
        self._all[group, name] = instance
        try:
            await instance.start()
        except BaseException:
            if self._all.get((group, name)) is instance:
                del self._all[group, name]
            instance.end()
            raise
        return instance

    def get(self, access: Access, group: str, name: str) -> Instance:
        """HttpError 404 for one that is not there, or is another's."""
        instance = self._all.get((group, name))
        if instance is None or instance.owner != access.owner:
            raise errors.instance_not_found()
        instance.used_s = time.monotonic()
        return instance

    async def delete(self, access: Access, group: str, name: str) -> None:
        instance = self.get(access, group, name)
        await asyncio.wait({self._end(instance)}, timeout=END_S)

    def _end(self, instance: Instance) -> asyncio.Task[None]:
        self._all.pop((instance.group, instance.name), None)
        instance.end()

        async def ended() -> None:
            await instance.ended.wait()

        task = asyncio.create_task(ended())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    def expire(self) -> None:
        """Ends those that nobody has used for their time."""
        now_s = time.monotonic()
        for instance in list(self._all.values()):
            if (
                not instance.in_use
                and now_s - instance.used_s > self._idle_timeout_s
                and instance.started.done()
            ):
                self._end(instance)

    async def close(self) -> None:
        for instance in list(self._all.values()):
            self._end(instance)
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=END_S)
