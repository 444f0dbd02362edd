"""Sends requests through a client of redis-py, and sends again what may be sent again."""
# docs/write makes senders.py of this file.  # async

import asyncio  # async
# sync: import time
from typing import Any, Callable, List, Optional, Sequence, TypeVar

from redis.exceptions import ResponseError

from .sending import SenderBase, command_words, is_there_already, key_of, merge, pause_after, pauses
from .words import Name, Word, decode, encode

T = TypeVar("T")


class AsyncSender(SenderBase):
    """For a client, a cluster client, and a Sentinel's master_for."""

    async def _execute(self, request: Sequence[Word], again: bool, node: Any = None) -> Any:
        words = command_words(request)
        waits, moves = pauses(self.retries if again else 0), iter([0.0])
        if hasattr(self.client, "keyslot"):  # async
            await self.client.initialize()  # async
        while True:
            route = self._route(request) if node is None else {"target_nodes": node}
            try:
                return await self.client.execute_command(*words, **route)
            except Exception as error:
                await asyncio.sleep(pause_after(error, route, waits, moves))

    async def _send(self, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        return parse(await self._execute(request, again))

    async def _nodes(self) -> List[Any]:
        """The masters of a cluster; of another client None alone."""
        if not hasattr(self.client, "get_primaries"):
            return [None]
        await self.client.initialize()  # async
        return list(self.client.get_primaries())

    async def _send_to(self, node: Any, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        return parse(await self._execute(request, again, node))

    async def _send_to_all(self, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        merged: T = merge([await self._send_to(node, request, parse, again) for node in await self._nodes()])
        return merged

    async def _create(self, request: Sequence[Word], exist_ok: bool) -> None:
        try:
            await self._execute(request, again=False)
        except ResponseError as error:
            if not exist_ok or not is_there_already(error):
                raise


class AsyncBoardSender(AsyncSender):
    """Requests about one board."""

    def __init__(self, client: Any, name: Name, *, retries: int = 0) -> None:
        super().__init__(client, retries)
        self.name = decode(encode(name))

    def _key(self, request: Sequence[Word]) -> Optional[Word]:
        return key_of(request, self.name)


class AsyncDatabaseSender(AsyncSender):
    """Requests about all boards."""

    def __init__(self, client: Any, *, retries: int = 0) -> None:
        super().__init__(client, retries)
