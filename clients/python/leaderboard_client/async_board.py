"""A board, and all boards of a database, over a client of redis-py."""
# docs/write makes board.py of this file.  # async

from typing import Any, AsyncIterator, Dict, List, Optional

from redis.exceptions import ResponseError

from . import parse
from .async_commands import AsyncBoardCommands, AsyncDatabaseCommands
from .events import EVENTS_SETTING, Event, channels, check_events, database_of, parse_event
from .records import Ban, Record, Score
from .words import Name, Several, Word, page_ranks

PAGE_SIZE = 500


class AsyncLeaderboard(AsyncBoardCommands):
    """The board of a key.

        board = AsyncLeaderboard(redis, "arena")
        await board.submit("ann", 500)
        async for record in board:
            print(record.rank, record.member, record.score)

    With retries, a request that was not answered is sent again, as often as that: what reads, and results, which
    get an id (ONCE) and so count once.
    """

    async def page(self, number: int, size: int = 20, **options: Any) -> List[Record]:
        """A page of the board, the first being 1, with the options of range."""
        return await self.range(*page_ranks(number, size), **options)

    async def top(self, count: int, **options: Any) -> List[Record]:
        """The first ones, with the options of range."""
        return await self.page(1, count, **options)

    async def rank(self, member: Word, **options: Any) -> Optional[int]:
        """A member's place, 0 being the best, with the options of get. None: the member is not there."""
        record = (await self.get(member, **options))[0]
        return None if record is None else record.rank

    async def score(self, member: Word) -> Optional[Score]:
        """The first field. None: the member is not there."""
        record = (await self.get(member))[0]
        return None if record is None else record.score

    async def remove(self, *members: Word) -> int:
        """How many were there. By ZREM: in the module a `board` line must match the board's name."""
        return await self._send(["ZREM", self.name, *members], parse.integer, again=False)

    async def delete(self) -> bool:
        """Was there a board?"""
        return await self._send(["UNLINK", self.name], parse.flag, again=False)

    async def records(self, *, page_size: int = PAGE_SIZE, **options: Any) -> AsyncIterator[Record]:
        """All records, best first, with the options of range. Each page is of the moment it is asked for: members
        who move meanwhile may come twice or not at all."""
        number = 1
        while True:
            page = await self.page(number, page_size, **options)
            for record in page:
                yield record
            if len(page) < page_size:
                return
            number += 1

    def __aiter__(self) -> AsyncIterator[Record]:
        return self.records()

    # sync: def __len__(self) -> int:
    # sync:     return self.count()
    # sync:
    # sync: def __bool__(self) -> bool:
    # sync:     return True
    # sync:
    # sync: def __contains__(self, member: object) -> bool:
    # sync:     return isinstance(member, (str, bytes)) and self.get(member)[0] is not None
    # sync:
    async def events(
        self,
        *,
        top: Optional[int] = None,
        changes: Optional[int] = None,
        members: Optional[int] = None,
        overtaken: Optional[Several[Name]] = None,
        database: Optional[int] = None,
    ) -> "AsyncSubscription":
        """Subscribe to what happens on the board, and, if asked for, to the first `top` ones whenever they change,
        to changes of the first ones without saying which, to the members who enter and leave them, and to members
        who are overtaken. The server needs `notify-board-events yes`."""
        number = database_of(self.client) if database is None else database
        names = channels(self.name, number, top=top, changes=changes, members=members, overtaken=overtaken)
        check_events(None if hasattr(self.client, "keyslot") else await self._events_setting())
        pubsub = self.client.pubsub()
        await pubsub.subscribe(*names)
        confirmed = 0
        while confirmed < len(names):
            message = await pubsub.get_message(timeout=None)
            confirmed += message is not None and message["type"] == "subscribe"
        return AsyncSubscription(pubsub)

    async def _events_setting(self) -> Any:
        try:
            return await self.client.config_get(EVENTS_SETTING)
        except ResponseError:
            return None  # this user may not ask


class AsyncSubscription:
    """Events as they come. It has a connection of its own, which close, or leaving a `with`, gives back."""

    def __init__(self, pubsub: Any) -> None:
        self._pubsub = pubsub

    async def get(self, timeout: float) -> Optional[Event]:
        """The next event; None: there was none for so many seconds."""
        return parse_event(await self._pubsub.get_message(timeout=timeout))

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for message in self._pubsub.listen():
            event = parse_event(message)
            if event is not None:
                yield event

    async def close(self) -> None:
        # redis-py 5 has named it anew.  # async
        await (getattr(self._pubsub, "aclose", None) or self._pubsub.close)()

    async def __aenter__(self) -> "AsyncSubscription":
        return self

    async def __aexit__(self, *ignored: object) -> None:
        await self.close()


class AsyncLeaderboards(AsyncDatabaseCommands):
    """All boards of a database; of a cluster, those of all its nodes."""

    def board(self, name: Name) -> AsyncLeaderboard:
        return AsyncLeaderboard(self.client, name, retries=self.retries)

    async def boards(self, *, match: Optional[Name] = None, unsettled: bool = False) -> AsyncIterator[Dict[str, Any]]:
        """Every board, as LB.LIST describes it."""
        async for each in self._walk("LB.LIST", match, ["UNSETTLED"] if unsettled else [], parse.boards):
            yield each

    async def banned(self, *, match: Optional[Name] = None) -> AsyncIterator[Ban]:
        """Every ban; match is for members."""
        async for each in self._walk("LB.BANS", match, [], parse.bans):
            yield each

    async def _walk(self, command: str, match: Optional[Name], last: List[Word], read: Any) -> AsyncIterator[Any]:
        options: List[Word] = [] if match is None else ["MATCH", match]
        for node in await self._nodes():
            cursor = -1
            while cursor != 0:
                request: List[Word] = [command, *options, "CURSOR", max(cursor, 0), *last]
                page = await self._send_to(node, request, read, True)
                for each in page.items:
                    yield each
                cursor = page.cursor
