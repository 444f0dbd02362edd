"""What the commands reply, as values that do not change."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Generic, List, Mapping, Optional, Tuple, TypeVar, Union

from .words import EPOCH

#: Exact: an int of any size, or a Decimal where the number has decimals.
Score = Union[int, Decimal]
T = TypeVar("T")


@dataclass(frozen=True)
class Rating:
    """A player's record on a board with RATING."""

    rating: Score
    #: As it is now: it grows while the player does not play. None: the system has none.
    deviation: Optional[Score]
    volatility: Optional[Score]
    games: int
    won: int
    drawn: int
    lost: int
    #: The time of the last match, in unix milliseconds; None: there was none yet.
    last: Optional[int]


@dataclass(frozen=True)
class Rated(Rating):
    """A player and the rating, also of one who is not ranked."""

    member: str
    #: None: not ranked, or not yet.
    rank: Optional[int]


@dataclass(frozen=True)
class Played:
    """What a match did to a player."""

    member: str
    before: Score
    after: Score
    deviation: Optional[Score]
    games: int
    #: None: not ranked.
    rank_before: Optional[int]
    rank_after: Optional[int]


@dataclass(frozen=True)
class Prediction:
    """What a match would bring."""

    #: Of each team, to win: from 0 to 1.
    chances: List[float]
    #: How even the match would be, from 0 to 1.
    quality: float


@dataclass(frozen=True)
class Record:
    """A member's place, and the result that it has there."""

    member: str
    #: 0 is the best.
    rank: int
    #: When the result was reached, in unix milliseconds; None: the board's layout has no TIME.
    time: Optional[int]
    #: The fields, in the order of the layout.
    scores: Tuple[Score, ...]
    #: With pct: how many percent of the members are not ahead of this one.
    percent: Optional[Decimal] = None
    #: With withkey: the packed key.
    key: Optional[int] = None
    #: With tags.
    tags: Optional[Mapping[str, str]] = None
    #: With data: what the member's hash holds; None, if there is no hash.
    data: Optional[Mapping[str, Optional[str]]] = None
    #: With since: the rank on the other board, None if the member was not there.
    since: Optional[int] = None
    #: With rating.
    rating: Optional[Rating] = None

    @property
    def score(self) -> Score:
        """The first field."""
        return self.scores[0]

    @property
    def reached(self) -> Optional[datetime]:
        """The time as a moment, in UTC."""
        return None if self.time is None else EPOCH + timedelta(milliseconds=self.time)


@dataclass(frozen=True)
class Placed:
    """A member's record after a write, and its rank before it."""

    #: None: the board did not keep the member.
    record: Optional[Record]
    #: None: the member was not on the board.
    previous_rank: Optional[int]
    #: With withrepeat: did the id of once come before?
    repeated: Optional[bool] = None


@dataclass(frozen=True)
class Result:
    """What a result did on one of several boards."""

    #: As in Placed.
    record: Optional[Record]
    previous_rank: Optional[int]
    #: Was it written there?
    counts: bool
    #: With withrepeat: did the id of once come before?
    repeated: Optional[bool] = None


@dataclass(frozen=True)
class BoardRecord:
    """A board, and a member's record on it."""

    board: str
    record: Record


@dataclass(frozen=True)
class LeaguePlace:
    """A member's tier and room in a league."""

    tier: int
    #: None: there is no result in this period.
    room: Optional[int]
    record: Optional[Record]
    #: Of league_add the tier before, None for a new member; of league_get the tier to come, None if it stays.
    other_tier: Optional[int]
    #: Of league_get "up", "stay" or "down": what would happen if the period ended now. None if it ends never.
    outlook: Optional[str] = None
    #: Of league_add with withrepeat: did the id of once come before?
    repeated: Optional[bool] = None


@dataclass(frozen=True)
class ValueCount:
    """How many members have a tag's value, or a pair of two tags' values."""

    #: None: without a value.
    values: Tuple[Optional[str], ...]
    count: int


@dataclass(frozen=True)
class Cut:
    """A rank, and the packed key of the member there."""

    rank: int
    #: As with withkey: larger is better.
    key: int


@dataclass(frozen=True)
class Ban:
    """A member that is kept off boards with such names."""

    member: str
    pattern: str
    #: Unix milliseconds; None: it does not end by itself.
    until: Optional[int]
    #: The player goes on, and sees the own entry.
    shadow: bool = False


@dataclass(frozen=True)
class Held:
    """A result that a board with HOLD keeps without ranking it."""

    id: int
    member: str
    #: That the member would have.
    values: List[Score]
    #: OVER, TOP, or the limit that it breaks.
    reason: str
    #: Unix milliseconds.
    at: int
    user: str
    address: str


@dataclass(frozen=True)
class Waiting:
    """A result that a board with HOLD keeps without ranking it, as its player sees it."""

    id: int
    #: That the player would have.
    values: List[Score]
    #: Unix milliseconds.
    at: int


@dataclass(frozen=True)
class Sent:
    """What has become of a player's result: did it change the board, or is it held?"""

    counts: bool
    is_held: bool


@dataclass(frozen=True)
class OwnRecords:
    """Records, and what is held of the player who asks, the newest first."""

    records: List[Optional[Record]]
    held: List[Waiting]


@dataclass(frozen=True)
class Page(Generic[T]):
    """A step of a walk. The walk is over when the cursor is 0."""

    cursor: int
    items: List[T]
