"""The LB. commands as methods. Written by `make docs` from the server's table of commands: do not edit."""

from typing import Any, Dict, List, Literal, Mapping, Optional, Tuple

from . import parse
from .records import Ban, BoardRecord, Cut, LeaguePlace, Page, Placed, Record, Result, ValueCount
from .sending import BoardSender, DatabaseSender
from .words import (
    Name,
    Number,
    Results,
    Several,
    Time,
    Word,
    alternatives,
    milliseconds,
    pairs,
    results as results_words,
    several,
    split,
)

VERSION = "1.0.0"


class BoardCommands(BoardSender):
    """Commands on one board."""

    def above(
        self,
        packed_key: Several[Word],
        *,
        comp: bool = False,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
    ) -> List[int]:
        """How many members are better than each packed key, of which there are 10,000 at most, or
        (=packed-key) at least as good; COMP: whatever their times; WHERE: inside a group of members
        with the same tags.

            LB.ABOVE key packed-key [packed-key ...] [COMP] [WHERE name value [WHERE name value
            ...]] [WHERENOT name value [WHERENOT name value ...]]

        O(log n) for each packed key, n being the members of the board.
        """
        request: List[Word] = ["LB.ABOVE", self.name, *several(packed_key)]
        if comp:
            request += ["COMP"]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        return self._send(request, parse.integers, again=True)

    def add(
        self,
        results: Optional[Results[Several[Word]]] = None,
        *,
        condition: Optional[Literal["NX", "XX"]] = None,
        nocreate: bool = False,
        operator: Optional[Literal["SET", "INCR", "BEST"]] = None,
        at: Optional[Time] = None,
        touch: bool = False,
        keeptime: bool = False,
        tag: Optional[Mapping[str, Several[Word]]] = None,
        once: Optional[Word] = None,
        withrepeat: bool = False,
        hset: Optional[Tuple[Name, Mapping[str, Word]]] = None,
        packed: Optional[Results[int]] = None,
    ) -> int:
        """Write fields, times and tags of members, all of them or nothing; count those added or
        changed.

            LB.ADD key [NX | XX] [NOCREATE] [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH |
            KEEPTIME] [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n
            field value [field value ...]] [WITHRANK] [STRINGS] <field [field ...] member [field
            [field ...] member ...] | PACKED packed-key member [packed-key member ...]>

        O(log n) for each member named, n being the members of the board.
        """
        alternatives(at=at, touch=touch, keeptime=keeptime, required=False)
        alternatives(results=results, packed=packed, required=True)
        once = self._once(once, packed)
        request: List[Word] = ["LB.ADD", self.name]
        if condition is not None:
            request += [condition]
        if nocreate:
            request += ["NOCREATE"]
        if operator is not None:
            request += [operator]
        if at is not None:
            request += ["AT", milliseconds(at)]
        if touch:
            request += ["TOUCH"]
        if keeptime:
            request += ["KEEPTIME"]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if once is not None:
            request += ["ONCE", once]
        if withrepeat:
            request += ["WITHREPEAT"]
        if hset is not None:
            request += ["HSET", hset[0], *pairs(hset[1], counted=True)]
        if results is not None:
            request += [*results_words(results)]
        if packed is not None:
            request += ["PACKED", *results_words(packed)]
        return self._send(request, parse.integer, again=once is not None)

    def add_withrank(
        self,
        results: Optional[Results[Several[Word]]] = None,
        *,
        condition: Optional[Literal["NX", "XX"]] = None,
        nocreate: bool = False,
        operator: Optional[Literal["SET", "INCR", "BEST"]] = None,
        at: Optional[Time] = None,
        touch: bool = False,
        keeptime: bool = False,
        tag: Optional[Mapping[str, Several[Word]]] = None,
        once: Optional[Word] = None,
        withrepeat: bool = False,
        hset: Optional[Tuple[Name, Mapping[str, Word]]] = None,
        packed: Optional[Results[int]] = None,
    ) -> List[Placed]:
        """Write fields, times and tags of members, all of them or nothing; count those added or
        changed.

            LB.ADD key [NX | XX] [NOCREATE] [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH |
            KEEPTIME] [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n
            field value [field value ...]] [WITHRANK] [STRINGS] <field [field ...] member [field
            [field ...] member ...] | PACKED packed-key member [packed-key member ...]>

        O(log n) for each member named, n being the members of the board.
        """
        alternatives(at=at, touch=touch, keeptime=keeptime, required=False)
        alternatives(results=results, packed=packed, required=True)
        once = self._once(once, packed)
        request: List[Word] = ["LB.ADD", self.name]
        if condition is not None:
            request += [condition]
        if nocreate:
            request += ["NOCREATE"]
        if operator is not None:
            request += [operator]
        if at is not None:
            request += ["AT", milliseconds(at)]
        if touch:
            request += ["TOUCH"]
        if keeptime:
            request += ["KEEPTIME"]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if once is not None:
            request += ["ONCE", once]
        if withrepeat:
            request += ["WITHREPEAT"]
        if hset is not None:
            request += ["HSET", hset[0], *pairs(hset[1], counted=True)]
        request += ["WITHRANK", "STRINGS"]
        if results is not None:
            request += [*results_words(results)]
        if packed is not None:
            request += ["PACKED", *results_words(packed)]
        return self._send(request, parse.placed(), again=once is not None)

    def alter(
        self,
        *,
        tag: Optional[Mapping[str, Several[Word]]] = None,
        cap: Optional[Word] = None,
        limit: Optional[Word] = None,
        keep: Optional[Literal["LAST", "BEST"]] = None,
        state: Optional[Literal["FREEZE", "THAW"]] = None,
        opens: Optional[Word] = None,
        closes: Optional[Word] = None,
        stale: Optional[Several[Word]] = None,
        settle: Optional[Literal["YES", "NO"]] = None,
        period: Optional[Literal["HOUR", "DAY", "WEEK", "MONTH", "YEAR", "NONE"]] = None,
        every: Optional[int] = None,
        on: Optional[Word] = None,
        at: Optional[int] = None,
        from_: Optional[Word] = None,
        tz: Optional[Word] = None,
        archive: Optional[Word] = None,
        archived: Optional[Literal["FROZEN", "WRITABLE"]] = None,
        copy: bool = False,
        window: Optional[Several[Word]] = None,
    ) -> None:
        """Change the options of a board that exists; NONE takes one away.

            LB.ALTER key [TAG name bits [TAG name bits ...]] [CAP cap | LIMIT limit] [KEEP <LAST |
            BEST>] [FREEZE | THAW] [OPENS time] [CLOSES time] [STALE age [MINUTE | HOUR | DAY]]
            [SETTLE <YES | NO>] [PERIOD <HOUR | DAY | WEEK | MONTH | YEAR | NONE>] [EVERY units] [ON
            weekday] [AT hour] [FROM date] [TZ zone] [ARCHIVE periods] [ARCHIVED <FROZEN |
            WRITABLE>] [COPY] [WINDOW window [SUM | BEST]]

        O(log n); the members' memory is freed in steps afterwards.
        """
        alternatives(cap=cap, limit=limit, required=False)
        request: List[Word] = ["LB.ALTER", self.name]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if cap is not None:
            request += ["CAP", cap]
        if limit is not None:
            request += ["LIMIT", limit]
        if keep is not None:
            request += ["KEEP", keep]
        if state is not None:
            request += [state]
        if opens is not None:
            request += ["OPENS", opens]
        if closes is not None:
            request += ["CLOSES", closes]
        if stale is not None:
            request += ["STALE", *split(stale)]
        if settle is not None:
            request += ["SETTLE", settle]
        if period is not None:
            request += ["PERIOD", period]
        if every is not None:
            request += ["EVERY", every]
        if on is not None:
            request += ["ON", on]
        if at is not None:
            request += ["AT", at]
        if from_ is not None:
            request += ["FROM", from_]
        if tz is not None:
            request += ["TZ", tz]
        if archive is not None:
            request += ["ARCHIVE", archive]
        if archived is not None:
            request += ["ARCHIVED", archived]
        if copy:
            request += ["COPY"]
        if window is not None:
            request += ["WINDOW", *split(window)]
        return self._send(request, parse.nothing, again=False)

    def around(
        self,
        member: Optional[Word],
        count: int,
        *,
        score: Optional[Number] = None,
        packed: Optional[Word] = None,
        comp: bool = False,
        withkey: bool = False,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
        within: Optional[Several[Word]] = None,
        tags: bool = False,
        data: Optional[Name] = None,
        fields: Optional[Several[Word]] = None,
        since: Optional[Word] = None,
    ) -> List[Record]:
        """A window of records around a member, or around the place of a score or of a packed key;
        WHERE and WITHIN: inside a group of members with the same tags; SINCE: with the rank on
        another board.

            LB.AROUND key <MEMBER member | SCORE score | PACKED packed-key> count [COMP] [WITHKEY]
            [STRINGS] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name
            value ...]] [WITHIN name [WITHIN name ...]] [TAGS] [DATA pattern] [FIELDS n field [field
            ...]] [SINCE <archive | LAST>]

        O(log n + m) for m of the board's n members.
        """
        alternatives(member=member, score=score, packed=packed, required=True)
        request: List[Word] = ["LB.AROUND", self.name]
        if member is not None:
            request += ["MEMBER", member]
        if score is not None:
            request += ["SCORE", score]
        if packed is not None:
            request += ["PACKED", packed]
        request += [count]
        if comp:
            request += ["COMP"]
        if withkey:
            request += ["WITHKEY"]
        request += ["STRINGS"]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        if within is not None:
            request += [*several(within, token="WITHIN")]
        if tags:
            request += ["TAGS"]
        if data is not None:
            request += ["DATA", data]
        if fields is not None:
            request += ["FIELDS", *several(fields, counted=True)]
        if since is not None:
            request += ["SINCE", since]
        return self._send(request, parse.records(withkey=withkey, tags=tags, data=data is not None, fields=fields, since=since is not None), again=True)

    def count(
        self,
        start: Optional[Word] = None,
        stop: Optional[Word] = None,
        *,
        byscore: bool = False,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
    ) -> int:
        """How many members a board has, or a range of it, by rank or by score, in all or by the
        values of one tag or two (BY), the most frequent first.

            LB.COUNT key [start stop [BYSCORE]] [BY name [BY name ...]] [WHERE name value [WHERE
            name value ...]] [WHERENOT name value [WHERENOT name value ...]]

        O(log n), n being the members of the board; with BY O(m log m) for m different values.
        """
        request: List[Word] = ["LB.COUNT", self.name]
        if start is not None:
            request += [start]
        if stop is not None:
            request += [stop]
        if byscore:
            request += ["BYSCORE"]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        return self._send(request, parse.integer, again=True)

    def count_by(
        self,
        by: Several[Word],
        start: Optional[Word] = None,
        stop: Optional[Word] = None,
        *,
        byscore: bool = False,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
    ) -> List[ValueCount]:
        """How many members a board has, or a range of it, by rank or by score, in all or by the
        values of one tag or two (BY), the most frequent first.

            LB.COUNT key [start stop [BYSCORE]] [BY name [BY name ...]] [WHERE name value [WHERE
            name value ...]] [WHERENOT name value [WHERENOT name value ...]]

        O(log n), n being the members of the board; with BY O(m log m) for m different values.
        """
        request: List[Word] = ["LB.COUNT", self.name]
        if start is not None:
            request += [start]
        if stop is not None:
            request += [stop]
        if byscore:
            request += ["BYSCORE"]
        request += [*several(by, token="BY")]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        return self._send(request, parse.value_counts, again=True)

    def create(
        self,
        *,
        layout: Optional[Word] = None,
        fields: Optional[Several[Word]] = None,
        tag: Optional[Mapping[str, Several[int]]] = None,
        cap: Optional[int] = None,
        limit: Optional[int] = None,
        keep: Optional[Literal["LAST", "BEST"]] = None,
        freeze: bool = False,
        opens: Optional[Word] = None,
        closes: Optional[Word] = None,
        stale: Optional[Tuple[int, Literal["MINUTE", "HOUR", "DAY"]]] = None,
        settle: Optional[Literal["YES", "NO"]] = None,
        period: Optional[Literal["HOUR", "DAY", "WEEK", "MONTH", "YEAR"]] = None,
        every: Optional[int] = None,
        on: Optional[Word] = None,
        at: Optional[int] = None,
        from_: Optional[Word] = None,
        tz: Optional[Word] = None,
        archive: Optional[int] = None,
        archived: Optional[Literal["FROZEN", "WRITABLE"]] = None,
        copy: bool = False,
        window: Optional[Tuple[int, Literal["SUM", "BEST"]]] = None,
        exist_ok: bool = False,
    ) -> None:
        """Make an empty board with a layout and options of its own, which stays when it is empty.

            LB.CREATE key [LAYOUT name | FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale]
            [DOUBLE] [DECAY half-life <S | M | H | D>] [FIELD name bits [ASC | DESC] [SIGNED] [SCALE
            scale] [DOUBLE] [DECAY half-life <S | M | H | D>] ...] [TIME bits <US | MS | S | M | H |
            D> [START start | END end] [LATEST]]] [TAG name bits [TAG name bits ...]] [CAP cap |
            LIMIT limit] [KEEP <LAST | BEST>] [FREEZE] [OPENS time] [CLOSES time] [STALE count
            <MINUTE | HOUR | DAY>] [SETTLE <YES | NO>] [PERIOD <HOUR | DAY | WEEK | MONTH | YEAR>
            [EVERY units] [ON weekday] [AT hour] [FROM date] [TZ zone] [ARCHIVE periods] [ARCHIVED
            <FROZEN | WRITABLE>] [COPY] [WINDOW window <SUM | BEST>]]

        O(1). exist_ok: a key that is there is no error.
        """
        alternatives(layout=layout, fields=fields, required=False)
        alternatives(cap=cap, limit=limit, required=False)
        request: List[Word] = ["LB.CREATE", self.name]
        if layout is not None:
            request += ["LAYOUT", layout]
        if fields is not None:
            request += [*split(fields)]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if cap is not None:
            request += ["CAP", cap]
        if limit is not None:
            request += ["LIMIT", limit]
        if keep is not None:
            request += ["KEEP", keep]
        if freeze:
            request += ["FREEZE"]
        if opens is not None:
            request += ["OPENS", opens]
        if closes is not None:
            request += ["CLOSES", closes]
        if stale is not None:
            request += ["STALE", stale[0], stale[1]]
        if settle is not None:
            request += ["SETTLE", settle]
        if period is not None:
            request += ["PERIOD", period]
        if every is not None:
            request += ["EVERY", every]
        if on is not None:
            request += ["ON", on]
        if at is not None:
            request += ["AT", at]
        if from_ is not None:
            request += ["FROM", from_]
        if tz is not None:
            request += ["TZ", tz]
        if archive is not None:
            request += ["ARCHIVE", archive]
        if archived is not None:
            request += ["ARCHIVED", archived]
        if copy:
            request += ["COPY"]
        if window is not None:
            request += ["WINDOW", window[0], window[1]]
        return self._create(request, exist_ok)

    def cuts(
        self,
        count: int,
        start: Optional[int] = None,
        stop: Optional[int] = None,
        *,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
    ) -> List[Cut]:
        """Rank and packed key of the first member, the last, and others at equal distances, 2 to
        10,000, of a board or a range of ranks; WHERE: inside a group of members with the same tags.

            LB.CUTS key count [start stop] [WHERE name value [WHERE name value ...]] [WHERENOT name
            value [WHERENOT name value ...]]

        O(log n) for each of them, n being the members of the board.
        """
        request: List[Word] = ["LB.CUTS", self.name, count]
        if start is not None:
            request += [start]
        if stop is not None:
            request += [stop]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        return self._send(request, parse.cuts, again=True)

    def get(
        self,
        member: Several[Word],
        *,
        comp: bool = False,
        sort: bool = False,
        pct: bool = False,
        withkey: bool = False,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
        within: Optional[Several[Word]] = None,
        tags: bool = False,
        data: Optional[Name] = None,
        fields: Optional[Several[Word]] = None,
        since: Optional[Word] = None,
    ) -> List[Optional[Record]]:
        """Rank, reach time and fields of many members at once, in the order asked for or by rank;
        WHERE and WITHIN: inside a group of members with the same tags; SINCE: with the rank on
        another board.

            LB.GET key n member [member ...] [COMP] [SORT] [PCT] [WITHKEY] [STRINGS] [WHERE name
            value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]] [WITHIN
            name [WITHIN name ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]] [SINCE
            <archive | LAST>]

        O(m log n) for m of the board's n members, also inside a group; SORT adds O(m log m).
        """
        request: List[Word] = ["LB.GET", self.name, *several(member, counted=True)]
        if comp:
            request += ["COMP"]
        if sort:
            request += ["SORT"]
        if pct:
            request += ["PCT"]
        if withkey:
            request += ["WITHKEY"]
        request += ["STRINGS"]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        if within is not None:
            request += [*several(within, token="WITHIN")]
        if tags:
            request += ["TAGS"]
        if data is not None:
            request += ["DATA", data]
        if fields is not None:
            request += ["FIELDS", *several(fields, counted=True)]
        if since is not None:
            request += ["SINCE", since]
        return self._send(request, parse.record_each(pct=pct, withkey=withkey, tags=tags, data=data is not None, fields=fields, since=since is not None), again=True)

    def hist(
        self,
        edge: Several[Number],
        *,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
    ) -> List[int]:
        """How many members have a score below, between and above the given edges, of which there
        are 10,000 at most; WHERE: inside a group of members with the same tags.

            LB.HIST key edge [edge ...] [WHERE name value [WHERE name value ...]] [WHERENOT name
            value [WHERENOT name value ...]]

        O(log n) for each edge, n being the members of the board.
        """
        request: List[Word] = ["LB.HIST", self.name, *several(edge)]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        return self._send(request, parse.integers, again=True)

    def info(self) -> Dict[str, Any]:
        """A board's layout and options, the ranges of its fields and times, its members, its
        memory, its archives and its tags.

            LB.INFO key

        O(1).
        """
        request: List[Word] = ["LB.INFO", self.name]
        return self._send(request, parse.description, again=True)

    def league_add(
        self,
        member: Word,
        field: Several[Word],
        *,
        operator: Optional[Literal["SET", "INCR", "BEST"]] = None,
        at: Optional[Time] = None,
        touch: bool = False,
        keeptime: bool = False,
        tag: Optional[Mapping[str, Several[Word]]] = None,
        once: Optional[Word] = None,
        withrepeat: bool = False,
        hset: Optional[Tuple[Name, Mapping[str, Word]]] = None,
    ) -> Optional[LeaguePlace]:
        """Write a member's result in its room; the first one of a period puts it into the open room
        of its tier; tier, room, record and the tier before.

            LB.LEAGUE ADD key [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH | KEEPTIME]
            [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n field value
            [field value ...]] [STRINGS] field [field ...] member

        O(log n) in the members of the board.
        """
        alternatives(at=at, touch=touch, keeptime=keeptime, required=False)
        once = self._once(once)
        request: List[Word] = ["LB.LEAGUE", "ADD", self.name]
        if operator is not None:
            request += [operator]
        if at is not None:
            request += ["AT", milliseconds(at)]
        if touch:
            request += ["TOUCH"]
        if keeptime:
            request += ["KEEPTIME"]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if once is not None:
            request += ["ONCE", once]
        if withrepeat:
            request += ["WITHREPEAT"]
        if hset is not None:
            request += ["HSET", hset[0], *pairs(hset[1], counted=True)]
        request += ["STRINGS", *several(field), member]
        return self._send(request, parse.league_place(), again=once is not None)

    def league_create(
        self,
        *,
        room: int,
        tiers: int,
        up: int,
        down: int,
        layout: Optional[Word] = None,
        fields: Optional[Several[Word]] = None,
        tag: Optional[Mapping[str, Several[int]]] = None,
        keep: Optional[Literal["LAST", "BEST"]] = None,
        settle: Optional[Literal["YES", "NO"]] = None,
        period: Optional[Literal["HOUR", "DAY", "WEEK", "MONTH", "YEAR"]] = None,
        every: Optional[int] = None,
        on: Optional[Word] = None,
        at: Optional[int] = None,
        from_: Optional[Word] = None,
        tz: Optional[Word] = None,
        idle: Optional[Literal["STAY", "DOWN"]] = None,
        archive: Optional[int] = None,
        archived: Optional[Literal["FROZEN", "WRITABLE"]] = None,
        exist_ok: bool = False,
    ) -> None:
        """Make a league, and the empty board whose layout and options its rooms have.

            LB.LEAGUE CREATE key [LAYOUT name | FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale]
            [DOUBLE] [FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale] [DOUBLE] ...] [TIME bits
            <US | MS | S | M | H | D> [START start | END end] [LATEST]]] [TAG name bits [TAG name
            bits ...]] [KEEP <LAST | BEST>] [SETTLE <YES | NO>] [PERIOD <HOUR | DAY | WEEK | MONTH |
            YEAR>] [EVERY units] [ON weekday] [AT hour] [FROM date] [TZ zone] ROOM members TIERS
            tiers UP members DOWN members [IDLE <STAY | DOWN>] [ARCHIVE periods] [ARCHIVED <FROZEN |
            WRITABLE>]

        O(1). exist_ok: a key that is there is no error.
        """
        alternatives(layout=layout, fields=fields, required=False)
        request: List[Word] = ["LB.LEAGUE", "CREATE", self.name]
        if layout is not None:
            request += ["LAYOUT", layout]
        if fields is not None:
            request += [*split(fields)]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if keep is not None:
            request += ["KEEP", keep]
        if settle is not None:
            request += ["SETTLE", settle]
        if period is not None:
            request += ["PERIOD", period]
        if every is not None:
            request += ["EVERY", every]
        if on is not None:
            request += ["ON", on]
        if at is not None:
            request += ["AT", at]
        if from_ is not None:
            request += ["FROM", from_]
        if tz is not None:
            request += ["TZ", tz]
        request += ["ROOM", room, "TIERS", tiers, "UP", up, "DOWN", down]
        if idle is not None:
            request += ["IDLE", idle]
        if archive is not None:
            request += ["ARCHIVE", archive]
        if archived is not None:
            request += ["ARCHIVED", archived]
        return self._create(request, exist_ok)

    def league_get(self, member: Word) -> Optional[LeaguePlace]:
        """A member's tier, its room in the running period, its record there, the tier that is to
        come, if it is another, and whether it would go up, stay or go down if the period ended now.

            LB.LEAGUE GET key member

        O(log n) in the members of the board.
        """
        request: List[Word] = ["LB.LEAGUE", "GET", self.name, member]
        return self._send(request, parse.league_place(), again=True)

    def league_info(self) -> Dict[str, Any]:
        """A league's numbers, its running period, and its tiers, the highest first, with their
        members and the room that is open.

            LB.LEAGUE INFO key

        O(t log n) for t tiers, at most 255, and n members.
        """
        request: List[Word] = ["LB.LEAGUE", "INFO", self.name]
        return self._send(request, parse.description, again=True)

    def league_remove(self, member: Word) -> bool:
        """Take a member out of the league and its room; whether it was there.

            LB.LEAGUE REMOVE key member

        O(log n) in the members of the board.
        """
        request: List[Word] = ["LB.LEAGUE", "REMOVE", self.name, member]
        return self._send(request, parse.flag, again=False)

    def league_set(self, tier: int, member: Word) -> bool:
        """Put a member into a tier: it leaves its room, and its next result begins anew; whether it
        was in another.

            LB.LEAGUE SET key tier member

        O(log n) in the members of the board.
        """
        request: List[Word] = ["LB.LEAGUE", "SET", self.name, tier, member]
        return self._send(request, parse.flag, again=False)

    def quantile(
        self,
        q: Several[Number],
        *,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
        tags: bool = False,
        data: Optional[Name] = None,
        fields: Optional[Several[Word]] = None,
    ) -> List[Optional[Record]]:
        """The members at given quantiles, from the worst (0) to the best (1); WHERE: inside a group
        of members with the same tags.

            LB.QUANTILE key q [q ...] [STRINGS] [WHERE name value [WHERE name value ...]] [WHERENOT
            name value [WHERENOT name value ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]]

        O(log n) for each quantile, n being the members of the board.
        """
        request: List[Word] = ["LB.QUANTILE", self.name, *several(q), "STRINGS"]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        if tags:
            request += ["TAGS"]
        if data is not None:
            request += ["DATA", data]
        if fields is not None:
            request += ["FIELDS", *several(fields, counted=True)]
        return self._send(request, parse.record_each(tags=tags, data=data is not None, fields=fields), again=True)

    def range(
        self,
        start: Word,
        stop: Word,
        *,
        byscore: bool = False,
        rev: bool = False,
        limit: Optional[Tuple[int, int]] = None,
        comp: bool = False,
        withkey: bool = False,
        where: Optional[Mapping[str, Several[Word]]] = None,
        wherenot: Optional[Mapping[str, Several[Word]]] = None,
        tags: bool = False,
        data: Optional[Name] = None,
        fields: Optional[Several[Word]] = None,
        since: Optional[Word] = None,
    ) -> List[Record]:
        """Records by rank or by score, best first or (REV) worst first; WHERE: inside a group of
        members with the same tags; SINCE: with the rank on another board.

            LB.RANGE key start stop [BYSCORE] [REV] [LIMIT offset count] [COMP] [WITHKEY] [STRINGS]
            [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value
            ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]] [SINCE <archive | LAST>]

        O(log n + m) for m of the board's n members, also with a LIMIT far inside; with COMP and REV
        O(log n) more for every change of fields.
        """
        request: List[Word] = ["LB.RANGE", self.name, start, stop]
        if byscore:
            request += ["BYSCORE"]
        if rev:
            request += ["REV"]
        if limit is not None:
            request += ["LIMIT", limit[0], limit[1]]
        if comp:
            request += ["COMP"]
        if withkey:
            request += ["WITHKEY"]
        request += ["STRINGS"]
        if where is not None:
            request += [*pairs(where, token="WHERE")]
        if wherenot is not None:
            request += [*pairs(wherenot, token="WHERENOT")]
        if tags:
            request += ["TAGS"]
        if data is not None:
            request += ["DATA", data]
        if fields is not None:
            request += ["FIELDS", *several(fields, counted=True)]
        if since is not None:
            request += ["SINCE", since]
        return self._send(request, parse.records(withkey=withkey, tags=tags, data=data is not None, fields=fields, since=since is not None), again=True)

    def roll(
        self,
        archive: Name,
        *,
        start: Optional[Word] = None,
        end: Optional[Word] = None,
        ex: Optional[int] = None,
    ) -> int:
        """Move a board's members to an archive, start over with an empty board, and count them.

            LB.ROLL key archive [START start | END end] [EX seconds]

        O(1).
        """
        alternatives(start=start, end=end, required=False)
        request: List[Word] = ["LB.ROLL", self.name, archive]
        if start is not None:
            request += ["START", start]
        if end is not None:
            request += ["END", end]
        if ex is not None:
            request += ["EX", ex]
        return self._send(request, parse.integer, again=False)

    def submit(
        self,
        member: Word,
        field: Several[Word],
        *,
        boards: Optional[Several[Name]] = None,
        condition: Optional[Literal["NX", "XX"]] = None,
        nocreate: bool = False,
        operator: Optional[Literal["SET", "INCR", "BEST"]] = None,
        at: Optional[Time] = None,
        touch: bool = False,
        keeptime: bool = False,
        tag: Optional[Mapping[str, Several[Word]]] = None,
        once: Optional[Word] = None,
        withrepeat: bool = False,
        hset: Optional[Tuple[Name, Mapping[str, Word]]] = None,
    ) -> List[Result]:
        """Write one result on several boards, on all of them or none; its record, its previous rank
        and whether it counts, on each.

            LB.SUBMIT numkeys key [key ...] [NX | XX] [NOCREATE] [SET | INCR | BEST] [AT
            unix-time-milliseconds | TOUCH | KEEPTIME] [TAG name value [TAG name value ...]] [ONCE
            id] [WITHREPEAT] [HSET pattern n field value [field value ...]] [STRINGS] field [field
            ...] member

        O(m log n) for m boards of n members.
        """
        alternatives(at=at, touch=touch, keeptime=keeptime, required=False)
        once = self._once(once)
        request: List[Word] = ["LB.SUBMIT", *several(self.name if boards is None else boards, counted=True)]
        if condition is not None:
            request += [condition]
        if nocreate:
            request += ["NOCREATE"]
        if operator is not None:
            request += [operator]
        if at is not None:
            request += ["AT", milliseconds(at)]
        if touch:
            request += ["TOUCH"]
        if keeptime:
            request += ["KEEPTIME"]
        if tag is not None:
            request += [*pairs(tag, token="TAG")]
        if once is not None:
            request += ["ONCE", once]
        if withrepeat:
            request += ["WITHREPEAT"]
        if hset is not None:
            request += ["HSET", hset[0], *pairs(hset[1], counted=True)]
        request += ["STRINGS", *several(field), member]
        return self._send(request, parse.results(), again=once is not None)

    def tag(
        self,
        member: Word,
        tag: Mapping[str, Word],
        *,
        if_: Optional[Mapping[str, Word]] = None,
    ) -> bool:
        """Set tags of a member, if (IF) others have these values; 1 if that changed one.

            LB.TAG key member name value [name value ...] [IF name value [name value ...]]

        O(log n) in the members of the board.
        """
        request: List[Word] = ["LB.TAG", self.name, member, *pairs(tag)]
        if if_ is not None:
            request += ["IF", *pairs(if_)]
        return self._send(request, parse.flag, again=False)

    def tags(self, member: Several[Word]) -> List[Optional[Dict[str, str]]]:
        """The tags of many members.

            LB.TAGS key member [member ...]

        O(m log n) for m of the board's n members.
        """
        request: List[Word] = ["LB.TAGS", self.name, *several(member)]
        return self._send(request, parse.tags_each, again=True)


class DatabaseCommands(DatabaseSender):
    """Commands on all boards of a database."""

    def ban(
        self,
        member: Word,
        *,
        ex: Optional[int] = None,
        match: Optional[Name] = None,
    ) -> int:
        """Take a member off the boards, and refuse it until the ban ends; count the boards.

            LB.BAN member [EX seconds] [MATCH pattern]

        O(n log m) for n boards of m members, in steps between other commands.
        """
        request: List[Word] = ["LB.BAN", member]
        if ex is not None:
            request += ["EX", ex]
        if match is not None:
            request += ["MATCH", match]
        return self._send_to_all(request, parse.integer, again=False)

    def bans(
        self,
        *,
        match: Optional[Name] = None,
        cursor: Optional[int] = None,
        count: Optional[int] = None,
    ) -> Page[Ban]:
        """Walk over the banned members of the database in steps, each with the boards' pattern and
        the end of the ban.

            LB.BANS [MATCH pattern] [CURSOR cursor] [COUNT count]

        O(COUNT) for each call, half a millisecond at the most.
        """
        request: List[Word] = ["LB.BANS"]
        if match is not None:
            request += ["MATCH", match]
        if cursor is not None:
            request += ["CURSOR", cursor]
        if count is not None:
            request += ["COUNT", count]
        return self._send_to_all(request, parse.ban_page, again=True)

    def forget(
        self,
        member: Word,
        *,
        match: Optional[Name] = None,
        data: Optional[Several[Name]] = None,
        all: bool = False,
    ) -> int:
        """Take a member off all boards, and remove its hashes; count the boards.

            LB.FORGET member [MATCH pattern] [DATA data [DATA data ...]] [ALL]

        O(n log m) for n boards of m members, in steps between other commands.
        """
        request: List[Word] = ["LB.FORGET", member]
        if match is not None:
            request += ["MATCH", match]
        if data is not None:
            request += [*several(data, token="DATA")]
        if all:
            request += ["ALL"]
        return self._send_to_all(request, parse.integer, again=False)

    def list(
        self,
        *,
        match: Optional[Name] = None,
        cursor: Optional[int] = None,
        count: Optional[int] = None,
        unsettled: bool = False,
    ) -> Page[Dict[str, Any]]:
        """Walk over the boards of the database in steps, each with its layout, options, archives
        and tags.

            LB.LIST [MATCH pattern] [CURSOR cursor] [COUNT count] [UNSETTLED]

        O(COUNT) for each call, of which it takes 50 at the most; O(n) for the whole walk over n
        keys.
        """
        request: List[Word] = ["LB.LIST"]
        if match is not None:
            request += ["MATCH", match]
        if cursor is not None:
            request += ["CURSOR", cursor]
        if count is not None:
            request += ["COUNT", count]
        if unsettled:
            request += ["UNSETTLED"]
        return self._send_to_all(request, parse.board_page, again=True)

    def move(
        self,
        from_: Word,
        to: Word,
        *,
        match: Optional[Name] = None,
        mode: Optional[Literal["BEST", "SUM"]] = None,
    ) -> List[int]:
        """Merge a member's results into another's on all boards; count the boards, and those left
        as they were.

            LB.MOVE from to [MATCH pattern] [BEST | SUM]

        O(n log m) for n boards of m members, in steps between other commands.
        """
        request: List[Word] = ["LB.MOVE", from_, to]
        if match is not None:
            request += ["MATCH", match]
        if mode is not None:
            request += [mode]
        return self._send_to_all(request, parse.integers, again=False)

    def settle(self, archive: Name) -> bool:
        """Note that what an archive decides is done, such as rewards: 1 the first time.

            LB.SETTLE archive

        O(1).
        """
        request: List[Word] = ["LB.SETTLE", archive]
        return self._send(request, parse.flag, again=False)

    def unban(self, member: Word) -> bool:
        """Lift the bans of a member; whether there were any.

            LB.UNBAN member

        O(1).
        """
        request: List[Word] = ["LB.UNBAN", member]
        return self._send_to_all(request, parse.flag, again=False)

    def where(
        self,
        member: Word,
        *,
        match: Optional[Name] = None,
    ) -> List[BoardRecord]:
        """The boards that a member is on, each with the member's record.

            LB.WHERE member [MATCH pattern] [STRINGS]

        O(n log m) for n boards of m members, in steps between other commands.
        """
        request: List[Word] = ["LB.WHERE", member]
        if match is not None:
            request += ["MATCH", match]
        request += ["STRINGS"]
        return self._send_to_all(request, parse.board_records(), again=True)
