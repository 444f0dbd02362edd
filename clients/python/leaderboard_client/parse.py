"""From replies to values. RESP2 has arrays of names and values where RESP3 has maps."""

from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional

from .records import (
    Ban,
    BoardRecord,
    Cut,
    Held,
    LeaguePlace,
    OwnRecords,
    Page,
    Placed,
    Played,
    Prediction,
    Rated,
    Rating,
    Record,
    Result,
    Score,
    ValueCount,
    Waiting,
)
from .shapes import BOARD, LEAGUE, LISTED_BOARD
from .words import Several, Word, decode, several


def ok(reply: Any) -> None:
    """OK says nothing."""


def integer(reply: Any) -> int:
    return int(reply)


def flag(reply: Any) -> bool:
    return int(reply) != 0


def text(reply: Any) -> str:
    return decode(reply)


def integers(reply: Any) -> List[int]:
    return [int(each) for each in reply]


def optional_integer(reply: Any) -> Optional[int]:
    return None if reply is None else int(reply)


def optional_text(reply: Any) -> Optional[str]:
    return None if reply is None else decode(reply)


def score(reply: Any) -> Score:
    """Exact: what has no decimals is an int."""
    text = decode(reply)
    return Decimal(text) if "." in text else int(text)


def number(reply: Any) -> Score:
    """Exact, also from a double of RESP3: its shortest form is what was sent."""
    return score(format(Decimal(repr(reply)).normalize(), "f") if isinstance(reply, float) else reply)


def optional_number(reply: Any) -> Optional[Score]:
    return None if reply is None else number(reply)


def time(reply: Any) -> Optional[int]:
    return optional_integer(reply)


def as_dict(reply: Any) -> Dict[str, Any]:
    """A map of either protocol; only the names are decoded."""
    if isinstance(reply, dict):
        return {decode(name): value for name, value in reply.items()}
    return {decode(name): value for name, value in zip(reply[::2], reply[1::2])}


def texts(reply: Any) -> Dict[str, str]:
    return {name: decode(value) for name, value in as_dict(reply).items()}


def described(reply: Any, shape: Any) -> Any:
    """Maps with the maps in them, as a shape has them."""
    if isinstance(shape, dict) and reply is not None:
        return {name: described(each, shape.get(name)) for name, each in as_dict(reply).items()}
    if isinstance(reply, list):
        return [described(each, shape[0] if isinstance(shape, list) else None) for each in reply]
    return decode(reply) if isinstance(reply, (bytes, str)) else reply


def board(reply: Any) -> Dict[str, Any]:
    """As LB.INFO has it."""
    found: Dict[str, Any] = described(reply, BOARD)
    return found


def league(reply: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = described(reply, LEAGUE)
    return found


def record_parser(
    *,
    pct: bool = False,
    withkey: bool = False,
    tags: bool = False,
    data: bool = False,
    fields: Optional[Several[Word]] = None,
    since: bool = False,
    rating: bool = False,
) -> Callable[[Any], Record]:
    """A parser of records with these parts, which follow the fields."""
    names = None if fields is None else [decode(name) for name in several(fields)]

    def parse_data(reply: Any) -> Optional[Dict[str, Optional[str]]]:
        if reply is None:
            return None
        values = as_dict(reply) if names is None else dict(zip(names, reply))
        return {name: optional_text(each) for name, each in values.items()}

    def parse(reply: Any) -> Record:
        rest = list(reply[3:])
        parts: Dict[str, Any] = {}
        if rating:
            found = rest.pop()
            parts["rating"] = None if found is None else Rating(**rating_parts(found))
        if since:
            parts["since"] = optional_integer(rest.pop())
        if data:
            parts["data"] = parse_data(rest.pop())
        if tags:
            parts["tags"] = texts(rest.pop())
        if withkey:
            parts["key"] = int(rest.pop())
        if pct:
            parts["percent"] = Decimal(decode(rest.pop()))
        scores = tuple(score(each) for each in rest)
        return Record(decode(reply[0]), int(reply[1]), optional_integer(reply[2]), scores, **parts)

    return parse


def optional(parse: Callable[[Any], Record]) -> Callable[[Any], Optional[Record]]:
    return lambda reply: None if reply is None else parse(reply)


def records(**parts: Any) -> Callable[[Any], List[Record]]:
    parse = record_parser(**parts)
    return lambda reply: [parse(each) for each in reply]


def records_or_none(**parts: Any) -> Callable[[Any], List[Optional[Record]]]:
    parse = optional(record_parser(**parts))
    return lambda reply: [parse(each) for each in reply]


def repeated(reply: Any, index: int) -> Optional[bool]:
    return flag(reply[index]) if len(reply) > index else None


def placed(**parts: Any) -> Callable[[Any], List[Placed]]:
    parse = optional(record_parser(**parts))
    return lambda reply: [Placed(parse(each[0]), optional_integer(each[1]), repeated(each, 2)) for each in reply]


def results(**parts: Any) -> Callable[[Any], List[Result]]:
    parse = optional(record_parser(**parts))
    return lambda reply: [
        Result(parse(each[0]), optional_integer(each[1]), flag(each[2]), repeated(each, 3)) for each in reply
    ]


def board_records(**parts: Any) -> Callable[[Any], List[BoardRecord]]:
    parse = record_parser(**parts)
    return lambda reply: [BoardRecord(decode(board), parse(record)) for board, record in reply]


def league_place(**parts: Any) -> Callable[[Any], Optional[LeaguePlace]]:
    parse = optional(record_parser(**parts))

    def place(reply: Any) -> Optional[LeaguePlace]:
        if reply is None or reply[0] is None:
            return None
        tier, room, record, other = reply[:4]
        last = reply[4] if len(reply) > 4 else None
        came_before = bool(last) if isinstance(last, int) else None
        outlook = None if isinstance(last, int) else optional_text(last)
        return LeaguePlace(int(tier), optional_integer(room), parse(record), optional_integer(other), outlook, came_before)

    return place


def counts(reply: Any) -> List[ValueCount]:
    return [ValueCount(tuple(optional_text(each) for each in row[:-1]), int(row[-1])) for row in reply]


def cuts(reply: Any) -> List[Cut]:
    return [Cut(int(rank), int(key)) for rank, key in reply]


def rating_parts(reply: Any) -> Dict[str, Any]:
    rating, deviation, volatility, *counts, last = reply
    return {
        "rating": number(rating),
        "deviation": optional_number(deviation),
        "volatility": optional_number(volatility),
        **{name: int(count) for name, count in zip(("games", "won", "drawn", "lost"), counts)},
        "last": optional_integer(last),
    }


def rated(reply: Any) -> Rated:
    return Rated(**rating_parts(reply[2:]), member=decode(reply[0]), rank=optional_integer(reply[1]))


def rated_each(reply: Any) -> List[Optional[Rated]]:
    return [None if each is None else rated(each) for each in reply]


def played(reply: Any) -> List[Played]:
    return [
        Played(decode(member), number(before), number(after), optional_number(deviation), int(games),
               optional_integer(rank_before), optional_integer(rank_after))
        for member, before, after, deviation, games, rank_before, rank_after in reply
    ]


def prediction(reply: Any) -> Prediction:
    chances, quality = reply
    return Prediction([float(each) for each in chances], float(quality))


def tags_each(reply: Any) -> List[Optional[Dict[str, str]]]:
    return [None if each is None else texts(each) for each in reply]


def boards(reply: Any) -> Page[Dict[str, Any]]:
    return Page(int(reply[0]), [described(each, LISTED_BOARD) for each in reply[1]])


def bans(reply: Any) -> Page[Ban]:
    found = [Ban(decode(member), decode(pattern), optional_integer(until), int(shadow) == 1)
             for member, pattern, until, shadow in reply[1]]
    return Page(int(reply[0]), found)


def held(reply: Any) -> Page[Held]:
    found = [
        Held(int(number), decode(member), [score(value) for value in values], decode(reason), int(at), decode(user), decode(address))
        for number, member, values, reason, at, user, address in reply[1]
    ]
    return Page(int(reply[0]), found)


def own_records(**parts: Any) -> Callable[[Any], OwnRecords]:
    parse = optional(record_parser(**parts))
    return lambda reply: OwnRecords(
        [parse(each) for each in reply[0]],
        [Waiting(int(number), [score(value) for value in values], int(at)) for number, values, at in reply[1]],
    )
