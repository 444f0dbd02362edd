"""Typed clients of `leaderboard`, and of its module in Redis and Valkey, over redis-py."""

from .async_board import AsyncLeaderboard, AsyncLeaderboards, AsyncSubscription
from .async_player import AsyncPlayer
from .board import Leaderboard, Leaderboards, Subscription
from .commands import VERSION as __version__
from .events import Event
from .player import Player
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
    Sent,
    ValueCount,
    Waiting,
)
from .split import BoardChanged, SplitBoard

__all__ = [
    "AsyncLeaderboard",
    "AsyncLeaderboards",
    "AsyncPlayer",
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
    "Player",
    "Prediction",
    "Rated",
    "Rating",
    "Record",
    "Result",
    "Score",
    "Sent",
    "SplitBoard",
    "Subscription",
    "ValueCount",
    "Waiting",
    "__version__",
]
