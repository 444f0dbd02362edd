"""The classes of agoragames' `leaderboard` package (leaderboard-python 3.7), for programs that use it: change

    from leaderboard.leaderboard import Leaderboard

to

    from leaderboard_client.agoragames import Leaderboard

Methods, options and results are that package's: ranks begin with 1, scores are floats, and a member is a dictionary. Where it
makes several requests that belong together, they are one transaction; members and their data are text. Scores with decimals
need a board whose field has a SCALE, such as `board * FIELD score 53 SIGNED SCALE 2` in leaderboard.conf.
"""

import math
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from redis import ConnectionPool, Redis

from .words import decode

Row = Dict[str, Any]


def _own(name: str) -> Callable[..., Any]:
    """A method about the leaderboard itself, from the one about a named leaderboard."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(self, name)(self.leaderboard_name, *arguments, **options)

    method.__name__ = name
    method.__doc__ = f"{name} of this leaderboard."
    return method


def _text(value: Any) -> Optional[str]:
    return None if value is None else decode(value)


def _number(reply: Any) -> Optional[int]:
    return None if reply is None else int(reply)


def _stored(value: Any) -> Any:
    return value if isinstance(value, (str, bytes, int, float)) else str(value)


class Leaderboard:
    """A leaderboard whose members have ranks 1, 2, 3, ..., the highest score first (order="asc": the lowest)."""

    VERSION = "3.7.2"
    DEFAULT_PAGE_SIZE = 25
    DEFAULT_REDIS_HOST = "localhost"
    DEFAULT_REDIS_PORT = 6379
    DEFAULT_REDIS_DB = 0
    DEFAULT_MEMBER_DATA_NAMESPACE = "member_data"
    DEFAULT_GLOBAL_MEMBER_DATA = False
    DEFAULT_POOLS: Dict[Any, Any] = {}
    ASC = "asc"
    DESC = "desc"
    MEMBER_KEY = "member"
    MEMBER_DATA_KEY = "member_data"
    SCORE_KEY = "score"
    RANK_KEY: str = "rank"

    @classmethod
    def pool(cls, host: str, port: int, db: int, pools: Dict[Any, Any], **options: Any) -> Any:
        """The pool of connections for this host, port and database."""
        if not isinstance(pools.get((host, port, db)), ConnectionPool):
            pools[host, port, db] = ConnectionPool(host=host, port=port, db=db, **options)
        return pools[host, port, db]

    def __init__(self, leaderboard_name: str, **options: Any) -> None:
        """Options: host, port, db, page_size, order, member_data_namespace, global_member_data; connection (a Redis
        whose pool is used), connection_pool, or redis_connection (a client that is used as it is)."""
        self.leaderboard_name = leaderboard_name
        self.options = options
        page_size = options.pop("page_size", self.DEFAULT_PAGE_SIZE)
        self.page_size = page_size if page_size >= 1 else self.DEFAULT_PAGE_SIZE
        self.member_data_namespace = options.pop("member_data_namespace", self.DEFAULT_MEMBER_DATA_NAMESPACE)
        self.global_member_data = options.pop("global_member_data", self.DEFAULT_GLOBAL_MEMBER_DATA)
        self.order = options.pop("order", self.DESC).lower()
        if self.order not in (self.ASC, self.DESC):
            raise ValueError(f"{self.order} is not one of [{self.ASC},{self.DESC}]")
        client = options.pop("redis_connection", None)
        self.redis_connection: Any = client if client else self._connect(options)

    def _connect(self, options: Dict[str, Any]) -> Any:
        connection = options.pop("connection", None)
        if isinstance(connection, Redis):
            options["connection_pool"] = connection.connection_pool
        if "connection_pool" not in options:
            host = options.pop("host", self.DEFAULT_REDIS_HOST)
            port = options.pop("port", self.DEFAULT_REDIS_PORT)
            db = options.pop("db", self.DEFAULT_REDIS_DB)
            pools = options.pop("pools", self.DEFAULT_POOLS)
            others = {name: options.pop(name) for name in list(options)}
            options["connection_pool"] = self.pool(host, port, db, pools, **others)
        return Redis(**options)

    # ---- ranks, which the other kinds of leaderboards count in another way ----

    def _is_ascending(self) -> bool:
        return bool(self.order == self.ASC)

    def _ask_rank(self, client: Any, name: str, member: Any) -> Any:
        return client.zrank(name, member) if self._is_ascending() else client.zrevrank(name, member)

    def _ranks(self, name: str, members: Sequence[Any], scores: Sequence[Optional[float]]) -> List[Optional[int]]:
        """The ranks of members with these scores, counted from 0."""
        pipeline = self.redis_connection.pipeline()
        for member in members:
            self._ask_rank(pipeline, name, member)
        return list(pipeline.execute()) if members else []

    def _scores(self, name: str, members: Sequence[Any]) -> List[Optional[float]]:
        pipeline = self.redis_connection.pipeline()
        for member in members:
            pipeline.zscore(name, member)
        return [None if score is None else float(score) for score in pipeline.execute()] if members else []

    # ---- writing ----

    def delete_leaderboard_named(self, leaderboard_name: str) -> None:
        """Delete the leaderboard, and the data of its members."""
        self.redis_connection.delete(*self._keys(leaderboard_name))

    def _keys(self, name: str) -> List[str]:
        return [name, self._member_data_key(name)]

    def _add(self, name: str, scores: Mapping[Any, float], data: Any, member: Any = None) -> None:
        pipeline = self.redis_connection.pipeline()
        pipeline.zadd(name, scores)
        if data:
            pipeline.hset(self._member_data_key(name), member, _stored(data))
        pipeline.execute()

    def rank_member_in(self, leaderboard_name: str, member: Any, score: float, member_data: Any = None) -> None:
        """Set a member's score, and, if given, its data."""
        self._add(leaderboard_name, {member: score}, member_data, member)

    def rank_member_across(
        self, leaderboards: Iterable[str], member: Any, score: float, member_data: Any = None
    ) -> None:
        """Set a member's score on several leaderboards."""
        for name in leaderboards:
            self.rank_member_in(name, member, score, member_data)

    def rank_member_if_in(
        self,
        leaderboard_name: str,
        rank_conditional: Callable[..., bool],
        member: Any,
        score: float,
        member_data: Any = None,
    ) -> None:
        """Set a member's score if rank_conditional(self, member, present score, score, member_data, {"reverse": order})
        says so."""
        present = self.score_for_in(leaderboard_name, member)
        if rank_conditional(self, member, present, score, member_data, {"reverse": self.order}):
            self.rank_member_in(leaderboard_name, member, score, member_data)

    def rank_members_in(self, leaderboard_name: str, members_and_scores: Sequence[Any]) -> None:
        """Set the scores of members: [member, score, member, score, ...]."""
        for member, score in zip(members_and_scores[::2], members_and_scores[1::2]):
            self.rank_member_in(leaderboard_name, member, score)

    def change_score_for_member_in(
        self, leaderboard_name: str, member: Any, delta: float, member_data: Any = None
    ) -> None:
        """Add to a member's score, and set its data, if given."""
        pipeline = self.redis_connection.pipeline()
        pipeline.zincrby(leaderboard_name, delta, member)
        if member_data:
            pipeline.hset(self._member_data_key(leaderboard_name), member, _stored(member_data))
        pipeline.execute()

    def remove_member_from(self, leaderboard_name: str, member: Any) -> None:
        """Remove a member and its data."""
        pipeline = self.redis_connection.pipeline()
        pipeline.zrem(leaderboard_name, member)
        pipeline.hdel(self._member_data_key(leaderboard_name), member)
        pipeline.execute()

    def remove_members_in_score_range_in(self, leaderboard_name: str, min_score: float, max_score: float) -> None:
        """Remove the members with scores from min_score to max_score."""
        self.redis_connection.zremrangebyscore(leaderboard_name, min_score, max_score)

    def remove_members_outside_rank_in(self, leaderboard_name: str, rank: int) -> int:
        """Keep the first `rank` members, and count those removed."""
        start, stop = (rank, -1) if self._is_ascending() else (0, -rank - 1)
        return int(self.redis_connection.zremrangebyrank(leaderboard_name, start, stop))

    def expire_leaderboard_for(self, leaderboard_name: str, seconds: int) -> None:
        """Remove the leaderboard, and its members' data, after some seconds."""
        pipeline = self.redis_connection.pipeline()
        for key in self._keys(leaderboard_name):
            pipeline.expire(key, seconds)
        pipeline.execute()

    def expire_leaderboard_at_for(self, leaderboard_name: str, timestamp: int) -> None:
        """Remove the leaderboard, and its members' data, at a unix time."""
        pipeline = self.redis_connection.pipeline()
        for key in self._keys(leaderboard_name):
            pipeline.expireat(key, timestamp)
        pipeline.execute()

    def merge_leaderboards(self, destination: str, keys: Sequence[str], aggregate: str = "SUM") -> None:
        """Store who is on this leaderboard or one of the others."""
        self.redis_connection.zunionstore(destination, [self.leaderboard_name, *keys], aggregate)

    def intersect_leaderboards(self, destination: str, keys: Sequence[str], aggregate: str = "SUM") -> None:
        """Store who is on this leaderboard and all of the others."""
        self.redis_connection.zinterstore(destination, [self.leaderboard_name, *keys], aggregate)

    # ---- members' data ----

    def _member_data_key(self, name: str) -> str:
        namespace = str(self.member_data_namespace)
        return namespace if self.global_member_data else f"{name}:{namespace}"

    def member_data_for_in(self, leaderboard_name: str, member: Any) -> Optional[str]:
        """A member's data."""
        return _text(self.redis_connection.hget(self._member_data_key(leaderboard_name), member))

    def members_data_for_in(self, leaderboard_name: str, members: Sequence[Any]) -> List[Optional[str]]:
        """The data of several members."""
        key = self._member_data_key(leaderboard_name)
        return [_text(each) for each in self.redis_connection.hmget(key, members)] if members else []

    def update_member_data_in(self, leaderboard_name: str, member: Any, member_data: Any) -> None:
        """Set a member's data."""
        self.redis_connection.hset(self._member_data_key(leaderboard_name), member, _stored(member_data))

    def remove_member_data_in(self, leaderboard_name: str, member: Any) -> None:
        """Remove a member's data."""
        self.redis_connection.hdel(self._member_data_key(leaderboard_name), member)

    # ---- numbers ----

    def total_members_in(self, leaderboard_name: str) -> int:
        """How many members there are."""
        return int(self.redis_connection.zcard(leaderboard_name))

    def total_pages_in(self, leaderboard_name: str, page_size: Optional[int] = None) -> int:
        """How many pages there are."""
        return math.ceil(self.total_members_in(leaderboard_name) / (page_size or self.page_size))

    def total_members_in_score_range_in(self, leaderboard_name: str, min_score: float, max_score: float) -> int:
        """How many members have scores from min_score to max_score."""
        return int(self.redis_connection.zcount(leaderboard_name, min_score, max_score))

    def total_scores_in(self, leaderboard_name: str) -> float:
        """The sum of all scores."""
        return float(sum(row[self.SCORE_KEY] for row in self.all_leaders_from(leaderboard_name)))

    def check_member_in(self, leaderboard_name: str, member: Any) -> bool:
        """Is the member there?"""
        return self.score_for_in(leaderboard_name, member) is not None

    def score_for_in(self, leaderboard_name: str, member: Any) -> Optional[float]:
        """A member's score; None: it is not there."""
        return self._scores(leaderboard_name, [member])[0]

    def rank_for_in(self, leaderboard_name: str, member: Any) -> Optional[int]:
        """A member's rank; None: it is not there."""
        row: Any = self.score_and_rank_for_in(leaderboard_name, member)
        return None if row[self.RANK_KEY] is None else int(row[self.RANK_KEY])

    def score_and_rank_for_in(self, leaderboard_name: str, member: Any) -> Row:
        """A member's score and rank."""
        return self.ranked_in_list_in(leaderboard_name, [member])[0]

    def page_for_in(self, leaderboard_name: str, member: Any, page_size: int = DEFAULT_PAGE_SIZE) -> int:
        """The page that a member is on; 0: on none."""
        position = self._ask_rank(self.redis_connection, leaderboard_name, member)
        return 0 if position is None else int(position) // page_size + 1

    def percentile_for_in(self, leaderboard_name: str, member: Any) -> Optional[int]:
        """How many percent of the members are behind a member, rounded up; with "asc" 100 less that."""
        pipeline = self.redis_connection.pipeline()
        pipeline.zcard(leaderboard_name)
        pipeline.zrevrank(leaderboard_name, member)
        total, position = map(_number, pipeline.execute())
        if total is None or position is None:
            return None
        percentile = math.ceil((total - position - 1) / total * 100)
        return 100 - percentile if self._is_ascending() else percentile

    def score_for_percentile_in(self, leaderboard_name: str, percentile: float) -> Optional[float]:
        """The score at a percentile from 0 to 100, between those of two members if none is there."""
        total = self.total_members_in(leaderboard_name)
        if not 0 <= percentile <= 100 or total < 1:
            return None
        index = (total - 1) * (100 - percentile if self._is_ascending() else percentile) / 100
        first = math.floor(index)
        rows = self.redis_connection.zrange(leaderboard_name, first, math.ceil(index), withscores=True)
        scores = [float(score) for _, score in rows]
        return scores[0] + (index - first) * (scores[-1] - scores[0])

    # ---- pages ----

    def _range(self, name: str, start: int, stop: int, options: Row) -> List[Row]:
        ask = self.redis_connection.zrange if self._is_ascending() else self.redis_connection.zrevrange
        return self._rows(name, ask(name, start, stop), **options)

    def _rows(self, name: str, members: Iterable[Any], members_only: bool = False, **options: Any) -> List[Row]:
        names = [decode(member) for member in members]
        if members_only:
            return [{self.MEMBER_KEY: member} for member in names]
        return self.ranked_in_list_in(name, names, **options)

    def leaders_in(self, leaderboard_name: str, current_page: int, **options: Any) -> List[Row]:
        """A page; the first is 1."""
        page_size = options.get("page_size", self.page_size)
        start = (max(int(current_page), 1) - 1) * page_size
        return self._range(leaderboard_name, start, start + page_size - 1, options)

    def all_leaders_from(self, leaderboard_name: str, **options: Any) -> List[Row]:
        """All members."""
        return self._range(leaderboard_name, 0, -1, options)

    def members_from_score_range_in(
        self, leaderboard_name: str, minimum_score: float, maximum_score: float, **options: Any
    ) -> List[Row]:
        """The members with scores from minimum_score to maximum_score."""
        if self._is_ascending():
            members = self.redis_connection.zrangebyscore(leaderboard_name, minimum_score, maximum_score)
        else:
            members = self.redis_connection.zrevrangebyscore(leaderboard_name, maximum_score, minimum_score)
        return self._rows(leaderboard_name, members, **options)

    def members_from_rank_range_in(
        self, leaderboard_name: str, starting_rank: int, ending_rank: int, **options: Any
    ) -> List[Row]:
        """The members at places from starting_rank to ending_rank."""
        if ending_rank < 1:
            return []
        return self._range(leaderboard_name, max(starting_rank - 1, 0), ending_rank - 1, options)

    def top_in(self, leaderboard_name: str, number: int, **options: Any) -> List[Row]:
        """The first members."""
        return self.members_from_rank_range_in(leaderboard_name, 1, number, **options)

    def member_at_in(self, leaderboard_name: str, position: int, **options: Any) -> Optional[Row]:
        """The member at a place; None: there is none."""
        rows = self._range(leaderboard_name, position - 1, position - 1, options) if position > 0 else []
        return rows[0] if rows else None

    def around_me_in(self, leaderboard_name: str, member: Any, **options: Any) -> List[Row]:
        """A page with the member in its middle; empty, if it is not there."""
        position = self._ask_rank(self.redis_connection, leaderboard_name, member)
        if position is None:
            return []
        page_size = options.get("page_size", self.page_size)
        start = max(position - page_size // 2, 0)
        return self._range(leaderboard_name, start, start + page_size - 1, options)

    def ranked_in_list_in(self, leaderboard_name: str, members: Sequence[Any], **options: Any) -> List[Row]:
        """These members, in this order, with ranks and scores, None where a member is not there. Options: include_missing
        (False leaves those out), with_member_data, sort_by (the key of ranks or of scores)."""
        given = list(members)
        scores = self._scores(leaderboard_name, given)
        if not options.get("include_missing", True):
            kept = [index for index, score in enumerate(scores) if score is not None]
            given, scores = [given[index] for index in kept], [scores[index] for index in kept]
        rows: List[Row] = []
        for member, score, rank in zip(given, scores, self._ranks(leaderboard_name, given, scores)):
            place = None if rank is None else rank + 1
            rows.append({self.MEMBER_KEY: member, self.SCORE_KEY: score, self.RANK_KEY: place})
        if options.get("with_member_data"):
            for row, data in zip(rows, self.members_data_for_in(leaderboard_name, given)):
                row[self.MEMBER_DATA_KEY] = data
        sort_by = str(options.get("sort_by"))
        if sort_by in (self.RANK_KEY, self.SCORE_KEY):
            missing = -math.inf if self._is_ascending() else math.inf
            rows.sort(key=lambda row: missing if row[sort_by] is None else row[sort_by])
        return rows

    delete_leaderboard = _own("delete_leaderboard_named")
    rank_member = _own("rank_member_in")
    rank_member_if = _own("rank_member_if_in")
    rank_members = _own("rank_members_in")
    change_score_for = _own("change_score_for_member_in")
    remove_member = _own("remove_member_from")
    remove_members_in_score_range = _own("remove_members_in_score_range_in")
    remove_members_outside_rank = _own("remove_members_outside_rank_in")
    expire_leaderboard = _own("expire_leaderboard_for")
    expire_leaderboard_at = _own("expire_leaderboard_at_for")
    member_data_for = _own("member_data_for_in")
    members_data_for = _own("members_data_for_in")
    update_member_data = _own("update_member_data_in")
    remove_member_data = _own("remove_member_data_in")
    total_members = _own("total_members_in")
    total_pages = _own("total_pages_in")
    total_members_in_score_range = _own("total_members_in_score_range_in")
    total_scores = _own("total_scores_in")
    check_member = _own("check_member_in")
    score_for = _own("score_for_in")
    rank_for = _own("rank_for_in")
    score_and_rank_for = _own("score_and_rank_for_in")
    page_for = _own("page_for_in")
    percentile_for = _own("percentile_for_in")
    score_for_percentile = _own("score_for_percentile_in")
    leaders = _own("leaders_in")
    all_leaders = _own("all_leaders_from")
    members_from_score_range = _own("members_from_score_range_in")
    members_from_rank_range = _own("members_from_rank_range_in")
    top = _own("top_in")
    member_at = _own("member_at_in")
    around_me = _own("around_me_in")
    ranked_in_list = _own("ranked_in_list_in")


class CompetitionRankingLeaderboard(Leaderboard):
    """Equal scores have the same rank, and the next place counts all of them: 1, 1, 3."""

    def _ranks(self, name: str, members: Sequence[Any], scores: Sequence[Optional[float]]) -> List[Optional[int]]:
        pipeline = self.redis_connection.pipeline()
        for score in scores:
            if score is not None and self._is_ascending():
                pipeline.zcount(name, "-inf", f"({score!r}")
            elif score is not None:
                pipeline.zcount(name, f"({score!r}", "+inf")
        counts = iter(pipeline.execute() if members else [])
        return [None if score is None else next(counts) for score in scores]


class TieRankingLeaderboard(Leaderboard):
    """Equal scores have the same rank, and the next place is the next number: 1, 1, 2. The different scores are on a board of
    their own, name:ties."""

    DEFAULT_TIES_NAMESPACE = "ties"

    def __init__(self, leaderboard_name: str, **options: Any) -> None:
        self.ties_namespace = options.pop("ties_namespace", self.DEFAULT_TIES_NAMESPACE)
        super().__init__(leaderboard_name, **options)

    def _ties_leaderboard_key(self, name: str) -> str:
        return f"{name}:{self.ties_namespace}"

    def _keys(self, name: str) -> List[str]:
        return [*super()._keys(name), self._ties_leaderboard_key(name)]

    def _ranks(self, name: str, members: Sequence[Any], scores: Sequence[Optional[float]]) -> List[Optional[int]]:
        return super()._ranks(self._ties_leaderboard_key(name), [repr(score) for score in scores], scores)

    def _count_score(self, name: str, score: Optional[float], previous: Optional[float]) -> None:
        """A member has this score now, and had the other one."""
        ties = self._ties_leaderboard_key(name)
        if score is not None:
            self.redis_connection.zadd(ties, {repr(float(score)): score})
        if previous is not None and previous != score and not self.redis_connection.zcount(name, previous, previous):
            self.redis_connection.zrem(ties, repr(previous))

    def rank_member_in(self, leaderboard_name: str, member: Any, score: float, member_data: Any = None) -> None:
        previous = self.score_for_in(leaderboard_name, member)
        super().rank_member_in(leaderboard_name, member, score, member_data)
        self._count_score(leaderboard_name, score, previous)

    def change_score_for_member_in(
        self, leaderboard_name: str, member: Any, delta: float, member_data: Any = None
    ) -> None:
        previous = self.score_for_in(leaderboard_name, member)
        super().change_score_for_member_in(leaderboard_name, member, delta, member_data)
        self._count_score(leaderboard_name, self.score_for_in(leaderboard_name, member), previous)

    def remove_member_from(self, leaderboard_name: str, member: Any) -> None:
        previous = self.score_for_in(leaderboard_name, member)
        super().remove_member_from(leaderboard_name, member)
        self._count_score(leaderboard_name, None, previous)

    def remove_members_in_score_range_in(self, leaderboard_name: str, min_score: float, max_score: float) -> None:
        super().remove_members_in_score_range_in(leaderboard_name, min_score, max_score)
        ties = self._ties_leaderboard_key(leaderboard_name)
        self.redis_connection.zremrangebyscore(ties, min_score, max_score)

    def remove_members_outside_rank_in(self, leaderboard_name: str, rank: int) -> int:
        removed = super().remove_members_outside_rank_in(leaderboard_name, rank)
        ties = self._ties_leaderboard_key(leaderboard_name)
        worst: List[Tuple[Any, float]] = self.redis_connection.zrange(
            leaderboard_name, *((-1, -1) if self._is_ascending() else (0, 0)), withscores=True
        )
        if not worst:
            self.redis_connection.delete(ties)
        elif self._is_ascending():
            self.redis_connection.zremrangebyscore(ties, f"({float(worst[0][1])!r}", "+inf")
        else:
            self.redis_connection.zremrangebyscore(ties, "-inf", f"({float(worst[0][1])!r}")
        return removed
