"""A board, and all boards of a database, over a client of redis-py."""

from typing import Any, Dict, Iterator, List, Optional, Tuple

from redis.exceptions import ResponseError

from .commands import BoardCommands, DatabaseCommands
from .events import EVENTS_SETTING, Event, channels, check_events, database_of, parse_event
from .parse import ban_page, board_page
from .parse import flag as parse_flag
from .parse import integer as parse_integer
from .records import Ban, Record, Score
from .words import Name, Several, Word

PAGE_SIZE = 500


def page_ranks(number: int, size: int) -> Tuple[int, int]:
    """The first and last rank of a page, the first being 1."""
    if number < 1 or size < 1:
        raise ValueError("pages begin with 1, and have at least one record")
    return (number - 1) * size, number * size - 1


def events_setting(client: Any) -> Any:
    """What CONFIG GET says of the events; None: this user may not ask."""
    try:
        return client.config_get(EVENTS_SETTING)
    except ResponseError:
        return None


class Leaderboard(BoardCommands):
    """The board of a key.

        board = Leaderboard(redis, "arena")
        board.submit("ann", 500)
        for record in board:
            print(record.rank, record.member, record.score)

    With retries, a request that was not answered is sent again, as often as that: what reads, and results, which
    get an id (ONCE) and so count once.
    """

    def page(self, number: int, size: int = 20, **options: Any) -> List[Record]:
        """A page of the board, the first being 1, with the options of range."""
        return self.range(*page_ranks(number, size), **options)

    def top(self, count: int, **options: Any) -> List[Record]:
        """The first ones, with the options of range."""
        return self.page(1, count, **options)

    def rank(self, member: Word, **options: Any) -> Optional[int]:
        """A member's place, 0 being the best, with the options of get. None: the member is not there."""
        record = self.get(member, **options)[0]
        return None if record is None else record.rank

    def score(self, member: Word) -> Optional[Score]:
        """The first field. None: the member is not there."""
        record = self.get(member)[0]
        return None if record is None else record.score

    def remove(self, *members: Word) -> int:
        """How many were there. By ZREM: in the module a `board` line must match the board's name."""
        return self._send(["ZREM", self.name, *members], parse_integer, again=False)

    def delete(self) -> bool:
        """Was there a board?"""
        return self._send(["UNLINK", self.name], parse_flag, again=False)

    def records(self, *, page_size: int = PAGE_SIZE, **options: Any) -> Iterator[Record]:
        """All records, best first, with the options of range. Each page is of the moment it is asked for: members
        who move meanwhile may come twice or not at all."""
        number = 1
        while True:
            page = self.page(number, page_size, **options)
            yield from page
            if len(page) < page_size:
                return
            number += 1

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True

    def __contains__(self, member: object) -> bool:
        return isinstance(member, (str, bytes)) and self.get(member)[0] is not None

    def events(
        self,
        *,
        top: Optional[int] = None,
        changes: Optional[int] = None,
        members: Optional[int] = None,
        overtaken: Optional[Several[Name]] = None,
        database: Optional[int] = None,
    ) -> "Subscription":
        """Subscribe to what happens on the board, and, if asked for, to the first `top` ones whenever they change,
        to changes of the first ones without saying which, to the members who enter and leave them, and to members
        who are overtaken. The server needs `notify-board-events yes`."""
        number = database_of(self.client) if database is None else database
        names = channels(self.name, number, top=top, changes=changes, members=members, overtaken=overtaken)
        check_events(None if hasattr(self.client, "keyslot") else events_setting(self.client))
        return Subscription(self.client, names)


class Subscription:
    """Events as they come. It has a connection of its own, which close, or leaving a `with`, gives back."""

    def __init__(self, client: Any, names: List[bytes]) -> None:
        self._pubsub = client.pubsub()
        self._pubsub.subscribe(*names)
        confirmed = 0
        while confirmed < len(names):
            message = self._pubsub.get_message(timeout=None)
            confirmed += message is not None and message["type"] == "subscribe"

    def get(self, timeout: float) -> Optional[Event]:
        """The next event; None: there was none for so many seconds."""
        return parse_event(self._pubsub.get_message(timeout=timeout))

    def __iter__(self) -> Iterator[Event]:
        for message in self._pubsub.listen():
            event = parse_event(message)
            if event is not None:
                yield event

    def close(self) -> None:
        self._pubsub.close()

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


class Leaderboards(DatabaseCommands):
    """All boards of a database; of a cluster, those of all its nodes."""

    def board(self, name: Name) -> Leaderboard:
        return Leaderboard(self.client, name, retries=self.retries)

    def boards(self, *, match: Optional[Name] = None, unsettled: bool = False) -> Iterator[Dict[str, Any]]:
        """Every board, as LB.LIST describes it."""
        last: List[Word] = ["UNSETTLED"] if unsettled else []
        yield from self._walk("LB.LIST", match, last, board_page)

    def banned(self, *, match: Optional[Name] = None) -> Iterator[Ban]:
        """Every ban; match is for members."""
        yield from self._walk("LB.BANS", match, [], ban_page)

    def _walk(self, command: str, match: Optional[Name], last: List[Word], parse: Any) -> Iterator[Any]:
        options: List[Word] = [] if match is None else ["MATCH", match]
        for node in self._nodes():
            cursor = -1
            while cursor != 0:
                request: List[Word] = [command, *options, "CURSOR", max(cursor, 0), *last]
                page = self._send_to(node, request, parse, True)
                yield from page.items
                cursor = page.cursor
