"""Typed clients of `leaderboard`, and of its module in Redis and Valkey, over redis-py."""

from .async_board import AsyncLeaderboard, AsyncLeaderboards, AsyncSubscription
from .board import Leaderboard, Leaderboards, Subscription
from .commands import VERSION as __version__
from .events import Event
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
from .split import BoardChanged, SplitBoard

__all__ = [
    "AsyncLeaderboard",
    "AsyncLeaderboards",
    "AsyncSubscription",
    "Ban",
    "BoardChanged",
    "BoardRecord",
    "Cut",
    "Held",
    "Event",
    "Leaderboard",
    "Leaderboards",
    "LeaguePlace",
    "OwnRecords",
    "Page",
    "Placed",
    "Played",
    "Prediction",
    "Rated",
    "Rating",
    "Record",
    "Result",
    "Score",
    "SplitBoard",
    "Subscription",
    "ValueCount",
    "Waiting",
    "__version__",
]
