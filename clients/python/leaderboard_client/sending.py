"""Sends requests through a client of redis-py, and sends again what may be sent again."""

import asyncio
import time
import uuid
from typing import Any, Callable, Iterator, List, Optional, Sequence, TypeVar

from redis.exceptions import ConnectionError, ReadOnlyError, ResponseError, TimeoutError

from .records import Page
from .words import Name, Word, decode, encode

T = TypeVar("T")

#: Errors of a try that was not answered, or not run; the latter begin with these words.
UNANSWERED = (ConnectionError, TimeoutError, ReadOnlyError)
NOT_RUN = ("TRYAGAIN", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS")
PAUSE_MIN_S, PAUSE_MAX_S = 0.01, 1.0


def pauses(count: int) -> Iterator[float]:
    """How long to wait before each further try."""
    for index in range(count):
        yield min(PAUSE_MAX_S, PAUSE_MIN_S * 2.0**index)


def may_be_again(error: Exception) -> bool:
    """Is it right to send the request again?"""
    return isinstance(error, UNANSWERED) or (
        isinstance(error, ResponseError) and str(error).split(" ", 1)[0] in NOT_RUN
    )


def command_words(request: Sequence[Word]) -> List[Any]:
    """The words to send. The command's name stays a text, by which cluster clients look it up."""
    return [request[0], *(encode(word) for word in request[1:])]


def merge(replies: List[Any]) -> Any:
    """What all nodes of a cluster replied, as if one had."""
    first = replies[0]
    if len(replies) > 1 and isinstance(first, Page):
        raise ValueError("in a cluster each node has a cursor of its own: use the iterator")
    if isinstance(first, bool):
        return any(replies)
    if isinstance(first, int):
        return sum(replies)
    if isinstance(first, list) and first and isinstance(first[0], int):
        return [sum(column) for column in zip(*replies)]
    return [each for reply in replies for each in reply] if isinstance(first, list) else first


class Sender:
    """What clients of boards and of databases share: the redis-py client, and how often to try again."""

    def __init__(self, client: Any, retries: int) -> None:
        self.client = client
        self.retries = retries

    def _once(self, once: Optional[Word], packed: object = None) -> Optional[Word]:
        """The id of a result: the given one, or a random one if the result may be sent again."""
        is_needed = once is None and packed is None and self.retries > 0
        return uuid.uuid4().hex if is_needed else once


class SyncSender(Sender):
    """For redis.Redis, redis.RedisCluster and Sentinel's master_for."""

    def _execute(self, request: Sequence[Word], again: bool, **options: Any) -> Any:
        words = command_words(request)
        waits = pauses(self.retries if again else 0)
        while True:
            try:
                return self.client.execute_command(*words, **options)
            except Exception as error:
                pause = next(waits, None) if may_be_again(error) else None
                if pause is None:
                    raise
                time.sleep(pause)

    def _send(self, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        return parse(self._execute(request, again))

    def _nodes(self) -> List[Any]:
        """The masters of a cluster; of another client None alone."""
        return list(self.client.get_primaries()) if hasattr(self.client, "get_primaries") else [None]

    def _send_to(self, node: Any, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        if node is None:
            return parse(self._execute(request, again))
        reply = self._execute(request, again, target_nodes=node)
        return parse(reply[node.name] if isinstance(reply, dict) and node.name in reply else reply)

    def _send_to_all(self, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        merged: T = merge([self._send_to(node, request, parse, again) for node in self._nodes()])
        return merged


class AsyncSender(Sender):
    """For the clients of redis.asyncio."""

    async def _execute(self, request: Sequence[Word], again: bool, **options: Any) -> Any:
        words = command_words(request)
        waits = pauses(self.retries if again else 0)
        while True:
            try:
                return await self.client.execute_command(*words, **options)
            except Exception as error:
                pause = next(waits, None) if may_be_again(error) else None
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def _send(self, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        return parse(await self._execute(request, again))

    async def _nodes(self) -> List[Any]:
        if not hasattr(self.client, "get_primaries"):
            return [None]
        await self.client.initialize()
        return list(self.client.get_primaries())

    async def _send_to(self, node: Any, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        if node is None:
            return parse(await self._execute(request, again))
        reply = await self._execute(request, again, target_nodes=node)
        return parse(reply[node.name] if isinstance(reply, dict) and node.name in reply else reply)

    async def _send_to_all(self, request: Sequence[Word], parse: Callable[[Any], T], again: bool) -> T:
        merged: T = merge([await self._send_to(node, request, parse, again) for node in await self._nodes()])
        return merged


class BoardSender(SyncSender):
    """Requests about one board."""

    def __init__(self, client: Any, name: Name, *, retries: int = 0) -> None:
        super().__init__(client, retries)
        self.name = decode(name)


class AsyncBoardSender(AsyncSender):
    """Requests about one board."""

    def __init__(self, client: Any, name: Name, *, retries: int = 0) -> None:
        super().__init__(client, retries)
        self.name = decode(name)


class DatabaseSender(SyncSender):
    """Requests about all boards."""

    def __init__(self, client: Any, *, retries: int = 0) -> None:
        super().__init__(client, retries)


class AsyncDatabaseSender(AsyncSender):
    """Requests about all boards."""

    def __init__(self, client: Any, *, retries: int = 0) -> None:
        super().__init__(client, retries)
