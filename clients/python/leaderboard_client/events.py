"""The events of a board (docs/reference/push.md): channels to subscribe to, and what a message says."""

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .records import Score
from .parse import score
from .shapes import CHANNELS, EVENTS
from .words import Name, Several, decode, encode, several


@dataclass(frozen=True)
class Event:
    """What happened on a board, by its kind.

    rolled      the period is over; archive, or None where there is none
    settled, opened, closed
    league      member is in a room of a tier, and came from previous_tier
    changed     the first ones are others, or have other results
    top         the same, and `top` has them
    entered, left   member came into the first ones, or is there no more
    overtaken   member fell from previous_rank to rank, and `by` is directly ahead now
    """

    kind: str
    member: Optional[str] = None
    archive: Optional[str] = None
    top: Optional[Tuple[Tuple[str, Tuple[Score, ...]], ...]] = None
    tier: Optional[int] = None
    room: Optional[int] = None
    previous_tier: Optional[int] = None
    rank: Optional[int] = None
    previous_rank: Optional[int] = None
    by: Optional[str] = None


def channels(
    board: str,
    database: int,
    *,
    top: Optional[int],
    changes: Optional[int],
    members: Optional[int],
    overtaken: Optional[Several[Name]],
) -> List[bytes]:
    """The channels of a board; without options only that of the board itself."""

    def name(kind: str, **names: Any) -> bytes:
        names = {"DB": database, "BOARD": board, "SIZE": len(encode(board)), **names}
        return encode(re.sub("DB|N|SIZE|BOARD|MEMBER", lambda found: str(names[found[0]]), CHANNELS[kind]))

    counts = (("toplist", top), ("top", changes), ("topmembers", members))
    overtakers = [] if overtaken is None else several(overtaken)
    found = [name("board"), *(name(kind, N=count) for kind, count in counts if count is not None)]
    return found + [name("overtaken", MEMBER=decode(each)) for each in overtakers]


def parse_event(message: Any) -> Optional[Event]:
    """The event of a message of redis-py. None: it is about the subscription."""
    if message is None or message["type"] not in ("message", "pmessage"):
        return None
    channel, text = decode(message["channel"]), decode(message["data"])
    kind, _, rest = text.partition(" ")
    if channel.startswith("__toplist@") and text.startswith("["):
        rows = json.loads(text)
        return Event("top", top=tuple((row[0], tuple(score(each) for each in row[1:])) for row in rows))
    names = EVENTS.get(kind, {})
    words = rest.split(" ", max(len(names) - 1, 0))
    values: Dict[str, Any] = {name: int(word) if names[name] == "i" else word or None for name, word in zip(names, words)}
    if kind == "overtaken":
        size, _, told = channel.partition("__:")[2].partition(":")
        values["member"] = decode(encode(told)[int(size) + 1 :])
    return Event(kind, **{MEMBERS.get(name, name): value for name, value in values.items()})


#: What Event calls what the server calls otherwise.
MEMBERS = {"before": "previous_tier", "from": "previous_rank", "to": "rank"}


#: The setting without which nothing is told.
EVENTS_SETTING = "notify-board-events"


def check_events(reply: Any) -> None:
    """Are events told, as CONFIG GET replies it? None: it is not known."""
    if reply is None:
        return
    values = [decode(value) for value in reply.values()]
    if not values:
        raise RuntimeError(f"this server has no {EVENTS_SETTING}: events are told by a leaderboard server alone")
    if values[0] == "no":
        raise RuntimeError(f"nothing is told of boards: CONFIG SET {EVENTS_SETTING} yes, or put it into its file")


def database_of(client: Any) -> int:
    """The number of the database that a client of redis-py has selected."""
    pool = getattr(client, "connection_pool", None)
    return int((getattr(pool, "connection_kwargs", None) or {}).get("db") or 0)
