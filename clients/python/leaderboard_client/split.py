"""One board larger than a machine: SplitBoard. docs/scale/one-board.md says what it promises.

    board = SplitBoard(cluster, "arena", shards=16)      boards arena:{0} .. arena:{15}, wherever they are
    board.create(fields="FIELD points 23 TIME 41 MS")
    board.submit("ann", 500)
    board.rank("ann"), board.page(20001, 50), board.around("ann", 5)

A member's board is that of shard crc32(name) % shards, for ever. The whole is in the order of packed key
(WITHKEY; larger is better), then shard, then rank in the shard. Places are found by cuts:

    shard 0   90 - - - 70 - - - 40 - - - 10       LB.CUTS: ranks and packed keys, of the whole shard first,
    shard 1   95 - - - 80 - - - 30 - - - 20       then of what is left of it
                           [ rank 6? ]            at most 3 + 1 members of each are before 40, at least 2 + 1

What is read in the end is checked: records of each shard without a gap, and beyond them nothing that belongs in
between. A round is one request for each shard at once, in a pipeline."""

import time
import uuid
import zlib
from dataclasses import replace
from fractions import Fraction
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, cast

from redis.exceptions import RedisError

from .board import Leaderboard
from .parse import counts as parse_counts, record_parser
from .records import Record, ValueCount
from .sending import command_words, pause_after, pauses
from .words import Name, Number, Several, Word, decode, encode, page_ranks, pairs, results, several

CUTS = 2048  # of the first round, all shards together; of a later one four times as many at most
CUTS_MAX = 10000  # that a shard takes
KEYS_MAX = 10000  # packed keys, likewise
FEW = 128  # places from the top that are read without cuts
MANY = 512  # records that are read beside those asked for rather than another round taken
WALKED = 5000  # records at a time, by whoever wants all
ROUNDS_MAX = 40
PAD_MAX = 1000

Group = Optional[Mapping[str, Several[Word]]]
#: A record's place in the order: the packed key (negative), the shard, the rank in it.
Order = Tuple[int, int, int]
#: The record as it was replied: of most only the order counts.
Placed = Tuple[Order, Any]


class BoardChanged(RedisError):  # type: ignore[misc]
    """The board changed faster than a place on it could be found."""


def shard_of(member: Word, shards: int) -> int:
    """crc32 as in zip and PNG, of the name in UTF-8."""
    return zlib.crc32(encode(member)) % shards


class Shard:
    """What is known of one shard while places are sought: its members before first are better than all of them, those
    from end on are worse; end None: not known. cuts: rank and packed key."""

    def __init__(self) -> None:
        self.first = 0
        self.end: Optional[int] = None
        self.cuts: List[Tuple[int, int]] = []

    @property
    def left(self) -> int:
        return 1 if self.end is None else self.end - self.first


class Search:
    """For the count places from first on."""

    def __init__(self, first: int, count: int, shards: int) -> None:
        self.first, self.count, self.pad = first, count, 2
        self.records: List[Any] = []
        self.begin(shards)

    def begin(self, shards: int) -> None:
        """At the beginning, or again."""
        self.shards = [Shard() for _ in range(shards)]
        self.is_narrow = shards == 1 or self.first + self.count <= FEW
        if self.is_narrow:
            for shard in self.shards:
                shard.first, shard.end = self.first if shards == 1 else 0, self.first + self.count

    @property
    def left(self) -> int:
        return sum(shard.left for shard in self.shards)

    @property
    def is_new(self) -> bool:
        return self.shards[0].end is None

    def take_cuts(self, replies: Sequence[Any]) -> None:
        """Cuts of what is left of each shard; None: nothing is."""
        before = None if self.is_new else self.left
        for shard, cuts in zip(self.shards, replies):
            shard.cuts = [(int(rank), int(key)) for rank, key in cuts or []]
            if shard.end is None:
                shard.end = shard.cuts[-1][0] + 1 if shard.cuts else 0
        total = sum(cast(int, shard.end) for shard in self.shards)
        self._narrow(min(self.first + self.count, total) - 1)
        self.is_narrow = self.left <= self.count + MANY or (before is not None and self.left >= before)

    def _narrow(self, last: int) -> None:
        """Leave of each shard what may be at the places first .. last. Each cut is before all that follow in the
        order, so of each shard it is known how many members are before it: at least, and at most."""
        places = [[rank for rank, _ in shard.cuts] + [cast(int, shard.end)] for shard in self.shards]
        cuts = sorted((-key, index, rank) for index, shard in enumerate(self.shards) for rank, key in shard.cuts)
        least, passed = [shard.first for shard in self.shards], [0] * len(places)
        most = [ranks[0] for ranks in places]
        least_sum, most_sum = sum(least), sum(most)
        low, high = list(least), [ranks[-1] for ranks in places]
        has_high = False
        for _, index, rank in cuts:
            if most_sum <= self.first:  # what is surely before this one is before all that are sought
                low = list(least)
                low[index] = rank
            if not has_high and least_sum - least[index] + rank >= last:
                has_high, high = True, list(most)
                high[index] = rank + 1
            if has_high and most_sum > self.first:
                break
            passed[index] += 1
            following = places[index][passed[index]]
            least_sum += rank + 1 - least[index]
            most_sum += following - most[index]
            least[index], most[index] = rank + 1, following
        for shard, first, end in zip(self.shards, low, high):
            shard.first, shard.end, shard.cuts = first, max(first, end), []

    def ranges(self) -> List[Tuple[int, int]]:
        """Start and stop of the records to read in each shard: with some on either side, which show that nothing is
        missing."""
        pad = self.pad if len(self.shards) > 1 else 0
        return [(max(0, shard.first - pad), cast(int, shard.end) - 1 + pad) for shard in self.shards]

    def take_records(self, lists: List[List[Placed]]) -> bool:
        """Of these ranges. False: the board has changed meanwhile."""
        spans = list(zip(self.ranges(), lists))
        if len(lists) == 1:
            self.records = [reply for _, reply in lists[0]]
            return True
        if any(start > 0 and not records for (start, _), records in spans):
            return False
        ends = [len(records) < stop + 1 - start for (start, stop), records in spans]
        found = merge(lists, ends, self.first, self.count)
        self.records = found or []
        return found is not None

    def widen(self, shards: int) -> None:
        """After a change: read more on either side, or begin again."""
        self.pad *= 8
        if self.pad > PAD_MAX:
            self.pad = 2
            self.begin(shards)


def merge(lists: List[List[Placed]], ends: List[bool], first: int, count: int) -> Optional[List[Any]]:
    """The records at the places first .. first + count - 1, or as many as there are; None: others may be in between.

    lists: of each shard records without a gap; ends: is the last of them the shard's last?"""
    heads = [records[0][0] for records in lists if records and records[0][0][2] > 0]
    tails = [records[-1][0] for records, is_end in zip(lists, ends) if records and not is_end]
    merged = sorted((placed for records in lists for placed in records), key=lambda placed: placed[0])
    begin = first - sum(records[0][0][2] for records in lists if records)
    end = begin + count
    if begin < 0 or (tails and end > len(merged)):
        return None
    wanted = merged[begin:end]
    if wanted and heads and max(heads) > wanted[0][0]:
        return None
    if wanted and tails and min(tails) < wanted[-1][0]:
        return None
    return [reply for _, reply in wanted]


class SplitBoard:
    """client: a redis.cluster.RedisCluster or a redis.Redis. retries: as a Leaderboard's.

    where and wherenot read inside a group of members with the same tags, within in that of the member asked about.
    Records have their packed key, and ranks in the whole."""

    def __init__(self, client: Any, name: Name, shards: int = 16, *, retries: int = 0, suffix: str = "") -> None:
        self.client, self.name, self.shards, self.retries = client, decode(encode(name)), shards, retries
        self.boards = [
            Leaderboard(client, f"{self.name}:{{{shard}}}{suffix}", retries=retries) for shard in range(shards)
        ]
        self.rounds = 0  #: so far

    def archive(self, period: str) -> "SplitBoard":
        """The board of an earlier period (PERIOD): archive("2026-11-16")."""
        return SplitBoard(self.client, self.name, self.shards, retries=self.retries, suffix=f"@{period}")

    def board_of(self, member: Word) -> Leaderboard:
        """The shard in which the member is, or would be. Ranks that it replies are those in the shard."""
        return self.boards[shard_of(member, self.shards)]

    # ---- rounds ----

    def _ask(self, asked: Sequence[Tuple[int, Sequence[Word]]], again: bool = True) -> List[Any]:
        """asked: a shard, a command and the words behind the key. Replies in this order. again: may be sent again."""
        waits = pauses(self.retries if again else 0)
        while asked:
            try:
                return self._ask_once(asked)
            except RedisError as error:
                time.sleep(pause_after(error, {}, waits, iter(())))
        return []

    def _ask_once(self, asked: Sequence[Tuple[int, Sequence[Word]]]) -> List[Any]:
        """An error is raised when all replies are there."""
        self.rounds += 1
        pipe = self.client.pipeline(transaction=False)
        for shard, (command, *words) in asked:
            key = self.boards[shard].name
            # Without it redis-py asks a node which arguments of the command are keys, each time.
            is_cluster = hasattr(self.client, "get_node_from_key")
            node = {"target_nodes": self.client.get_node_from_key(key)} if is_cluster else {}
            pipe.execute_command(*command_words([command, key, *words]), **node)
        replies: List[Any] = pipe.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _ask_all(self, *request: Word, again: bool = True) -> List[Any]:
        return self._ask([(shard, request) for shard in range(self.shards)], again)

    @staticmethod
    def _placed(replies: Sequence[Any], tags: bool = False) -> List[List[Placed]]:
        """Of every shard, records WITHKEY [TAGS]."""
        place = -2 if tags else -1
        return [
            [((-int(reply[place]), shard, int(reply[1])), reply) for reply in records]
            for shard, records in enumerate(replies)
        ]

    @staticmethod
    def _ranked(replies: Sequence[Any], first: int, tags: bool = False) -> List[Record]:
        """From first on."""
        parse = record_parser(withkey=True, tags=tags)
        return [replace(parse(reply), rank=first + index) for index, reply in enumerate(replies)]

    @staticmethod
    def _group(where: Group, wherenot: Group) -> List[Word]:
        return [
            *(pairs(where, "WHERE") if where else []),
            *(pairs(wherenot, "WHERENOT") if wherenot else []),
        ]

    # ---- writing ----

    def create(self, **options: Any) -> None:
        """As Leaderboard.create, on every shard. What was interrupted is completed by the same call again."""
        there = []
        for board in self.boards:
            try:
                board.create(**options)
            except RedisError as error:
                if "BUSYKEY" not in str(error):
                    raise
                there.append(error)
        if len(there) == self.shards:
            raise there[0]
        layouts = {board.info()["layout"] for board in self.boards} if there else set()
        if len(layouts) > 1:
            raise RedisError(f"shards of '{self.name}' have different layouts: {', '.join(sorted(layouts))}")

    def submit(self, member: Word, field: Several[Word], **options: Any) -> bool:
        """Write a result, with the options of Leaderboard.submit. Does it count?"""
        return self.board_of(member).submit(member, field, **options)[0].counts

    def submit_many(self, values: Iterable[Tuple[Word, Several[Word]]], *options: Word) -> int:
        """Write many results with the same words of LB.ADD. Each shard writes its own as a whole or not at all; an
        error of one is raised when the others are done. With retries each shard's get an id (ONCE), unless the words
        have ONCE or PACKED. How many members were changed."""
        has_id = self.retries > 0 and not {decode(word).upper() for word in options} & {"ONCE", "PACKED"}
        of: Dict[int, List[Tuple[Word, Several[Word]]]] = {}
        for member, value in values:
            of.setdefault(shard_of(member, self.shards), []).append((member, value))
        asked: List[Tuple[int, List[Word]]] = []
        for shard, own in of.items():
            once: List[Word] = ["ONCE", uuid.uuid4().hex] if has_id else []
            asked.append((shard, ["LB.ADD", *once, *options, *results(own)]))
        return sum(self._ask(asked, again=has_id))

    def tag(self, member: Word, pair: Mapping[str, Word]) -> bool:
        """Set tags of a member that is there."""
        return bool(self._ask([(shard_of(member, self.shards), ["LB.TAG", member, *pairs(pair)])], again=False)[0])

    def remove(self, *members: Word) -> int:
        """With ZREM: in the module a `board` line must match the shards' names."""
        of: Dict[int, List[Word]] = {}
        for member in members:
            of.setdefault(shard_of(member, self.shards), []).append(member)
        return sum(self._ask([(shard, ["ZREM", *own]) for shard, own in of.items()], again=False))

    def delete(self) -> int:
        return sum(self._ask_all("UNLINK", again=False))

    # ---- members ----

    def _get(self, members: Sequence[Word], words: Sequence[Word], tags: bool = False) -> List[Optional[Record]]:
        """In one round, ranks in the shards. None: it is not there."""
        of: Dict[int, List[int]] = {}
        for place, member in enumerate(members):
            of.setdefault(shard_of(member, self.shards), []).append(place)
        asked: List[Tuple[int, List[Word]]] = [
            (shard, ["LB.GET", len(own), *[members[place] for place in own], "WITHKEY", "STRINGS", *words])
            for shard, own in of.items()
        ]
        found: List[Optional[Record]] = [None] * len(members)
        parse = record_parser(withkey=True, tags=tags)
        for own, replies in zip(of.values(), self._ask(asked)):
            for place, reply in zip(own, replies):
                found[place] = None if reply is None else parse(reply)
        return found

    def _group_of(self, member: Word, where: Group, wherenot: Group, within: Several[Word]) -> Optional[List[Word]]:
        """A round, if there is a within. None: the member is not there, or not in the group."""
        words = self._group(where, wherenot)
        if not within:
            return words
        names = [decode(name).lower() for name in several(within)]
        found = self._get([member], ["TAGS", *words], True)[0]
        if found is None:
            return None
        tags = {name.lower(): value for name, value in (found.tags or {}).items()}
        # As the member is in the group, its own value is one of those that where allows.
        others = {name: value for name, value in (where or {}).items() if decode(name).lower() not in names}
        return self._group({**others, **{name: tags.get(name, "") for name in names}}, wherenot)

    def rank(
        self, member: Word, *, comp: bool = False, where: Group = None, wherenot: Group = None, within: Several[Word] = ()
    ) -> Optional[Record]:
        """The member's record; None: it is not there, or not in the group. Two rounds, three with within."""
        words = self._group_of(member, where, wherenot, within)
        return None if words is None else self._ranks([member], words, comp)[0]

    def ranks(
        self, *members: Word, comp: bool = False, where: Group = None, wherenot: Group = None
    ) -> List[Optional[Record]]:
        """The records of many, in two rounds for each ten thousand. comp: members with the same fields share the best
        rank."""
        words = self._group(where, wherenot)
        parts = [members[begin : begin + KEYS_MAX] for begin in range(0, len(members), KEYS_MAX)]
        return [record for part in parts for record in self._ranks(part, words, comp)]

    def _ranks(self, members: Sequence[Word], words: List[Word], comp: bool) -> List[Optional[Record]]:
        words = [*words, *(["COMP"] if comp else [])]
        found = self._get(members, words)
        asked: List[Tuple[int, List[Word]]] = []
        places: List[List[int]] = []
        for shard in range(self.shards):
            keys = {
                place: self._at(record, shard, comp)
                for place, record in enumerate(found)
                if record is not None and shard_of(record.member, self.shards) != shard
            }
            if keys:
                asked.append((shard, ["LB.ABOVE", *keys.values(), *words]))
                places.append(list(keys))
        ranks = [0 if record is None else record.rank for record in found]
        for own, counts in zip(places, self._ask(asked)):
            for place, count in zip(own, counts):
                ranks[place] += count
        return [None if record is None else replace(record, rank=rank) for record, rank in zip(found, ranks)]

    def _at(self, record: Record, shard: int, comp: bool = False) -> Word:
        """The packed key that has in this shard all that is before the record above it: of lower shards those with the
        same key, too."""
        key = cast(int, record.key)
        return f"={key}" if shard < shard_of(record.member, self.shards) and not comp else key

    def around(
        self, member: Word, count: int, *, where: Group = None, wherenot: Group = None, within: Several[Word] = ()
    ) -> List[Record]:
        """count records with the member in the middle, as LB.AROUND. Two rounds, three with within."""
        words = self._group_of(member, where, wherenot, within)
        found = None if words is None else self._get([member], words)[0]
        for _ in range(ROUNDS_MAX):
            if found is None or words is None:
                return []
            found, records = self._around(found, count, words)
            if records is not None:
                return records
        raise BoardChanged(f"'{self.name}' changes too fast: no records around '{decode(member)}'")

    def _around(
        self, record: Record, count: int, words: List[Word]
    ) -> Tuple[Optional[Record], Optional[List[Record]]]:
        """The member's record in its shard now, and the records, if it still has the same key."""
        size, own = 2 * (count + 1), shard_of(record.member, self.shards)
        asked: List[Tuple[int, List[Word]]] = []
        for shard in range(self.shards):
            place: List[Word] = ["MEMBER", record.member] if shard == own else ["PACKED", self._at(record, shard)]
            asked.append((shard, ["LB.AROUND", *place, size, "WITHKEY", "STRINGS", *words]))
        lists = self._placed(self._ask(asked))
        order, reply = next((each for each in lists[own] if decode(each[1][0]) == record.member), (None, None))
        now = None if order is None else record_parser(withkey=True)(reply)
        if order is None or now is None or now.key != record.key:
            return now, None
        before = [sum(each[0] < order for each in records) for records in lists]
        # The place is in the middle but where the board ends.
        ends = [len(records) < size or better > size // 2 for records, better in zip(lists, before)]
        skipped = sum(records[0][0][2] for records in lists if records)
        first = max(0, min(skipped + sum(before) - count // 2, skipped + sum(map(len, lists)) - count))
        found = merge(lists, ends, first, count)
        return now, None if found is None else self._ranked(found, first)

    # ---- places ----

    def range(
        self, start: int, stop: int, *, tags: bool = False, where: Group = None, wherenot: Group = None
    ) -> List[Record]:
        """The records at the places start .. stop, which are 0 or more. Three rounds; one near the top; four with
        64 shards, or a billion members."""
        if start < 0 or stop < 0:
            raise ValueError("places of a split board are 0 or more: they are not counted from the end")
        search = Search(start, max(0, stop - start + 1), self.shards)
        return self._find([search], self._group(where, wherenot), tags)[0]

    def page(self, number: int, size: int = 20, **options: Any) -> List[Record]:
        """A page, the first being 1, with the options of range."""
        return self.range(*page_ranks(number, size), **options)

    def top(self, count: int, **options: Any) -> List[Record]:
        """The best, with the options of range."""
        return self.range(0, count - 1, **options) if count > 0 else []

    def quantile(self, q: Several[Number], *, where: Group = None, wherenot: Group = None) -> List[Optional[Record]]:
        """A record for each quantile from 0, the worst, to 1, the best, as LB.QUANTILE; None: nobody is there. Rounds
        as of a page, together."""
        words = self._group(where, wherenot)
        wanted = [Fraction(decode(each)) for each in several(q)]
        if not all(0 <= each <= 1 for each in wanted):
            raise ValueError("quantiles are from 0 to 1")
        cuts = self._ask_all("LB.CUTS", self._cuts_each(None, 1), *words)
        total = sum(own[-1][0] + 1 for own in cuts if own)
        searches = []
        for each in wanted:
            from_worst = -(-each * total // 1)
            search = Search(max(0, total - max(1, int(from_worst))), 1, self.shards)
            if search.is_new:
                search.take_cuts(cuts)
            searches.append(search)
        return [records[0] if records else None for records in self._find(searches, words, False)]

    def _cuts_each(self, left: Optional[int], searches: int) -> int:
        """In each shard. c of them leave about 2 / c of what is left, and MANY may remain."""
        most = CUTS // self.shards if left is None else 4 * CUTS // (self.shards * searches)
        return max(2, min(CUTS_MAX, most, most if left is None else 3 * left // MANY + 2))

    def _cut(self, searches: List[Search], words: List[Word]) -> None:
        """A round of cuts. New ones ask all the same."""
        first_new = next((search for search in searches if search.is_new), None)
        different = [search for search in searches if not search.is_new or search is first_new]
        asked: List[Tuple[int, List[Word]]] = []
        of: List[Tuple[int, int]] = []
        for place, search in enumerate(different):
            count = self._cuts_each(None if search.is_new else search.left, len(different))
            for index, shard in enumerate(search.shards):
                if shard.left > 0:
                    span: List[Word] = [] if shard.end is None else [shard.first, shard.end - 1]
                    asked.append((index, ["LB.CUTS", count, *span, *words]))
                    of.append((place, index))
        replies: List[List[Any]] = [[None] * self.shards for _ in different]
        for (place, index), reply in zip(of, self._ask(asked)):
            replies[place][index] = reply
        of_new = next((own for search, own in zip(different, replies) if search is first_new), None)
        for search, own in zip(different, replies):
            if search is not first_new:
                search.take_cuts(own)
        for search in [search for search in searches if of_new is not None and search.is_new]:
            search.take_cuts(cast(List[Any], of_new))

    def _find(self, searches: List[Search], words: List[Word], tags: bool) -> List[List[Record]]:
        parts = ["WITHKEY", "STRINGS", *words, *(["TAGS"] if tags else [])]
        begun, missing = self.rounds, searches
        while missing:
            if self.rounds - begun > ROUNDS_MAX:
                raise BoardChanged(f"'{self.name}' changes too fast: no place {missing[0].first}")
            wide = [search for search in missing if not search.is_narrow]
            if wide:
                self._cut(wide, words)
                continue
            ranges = [(shard, span) for search in missing for shard, span in enumerate(search.ranges())]
            replies = self._ask([(shard, ["LB.RANGE", *span, *parts]) for shard, span in ranges])
            failed = []
            for place, search in enumerate(missing):
                own = replies[place * self.shards : (place + 1) * self.shards]
                if not search.take_records(self._placed(own, tags)):
                    search.widen(self.shards)
                    failed.append(search)
            missing = failed
        return [self._ranked(search.records, search.first, tags) for search in searches]

    def __iter__(self) -> Iterator[Record]:
        """All records, best first, as Leaderboard's."""
        number, page = 1, self.page(1, WALKED)
        while page:
            yield from page
            number += 1
            page = self.page(number, WALKED)

    # ---- counts ----

    @staticmethod
    def _between(start: Optional[Number], stop: Optional[Number]) -> List[Word]:
        whole = start is None and stop is None
        return [] if whole else ["-inf" if start is None else start, "+inf" if stop is None else stop, "BYSCORE"]

    def count(
        self, start: Optional[Number] = None, stop: Optional[Number] = None, *, where: Group = None, wherenot: Group = None
    ) -> int:
        """How many members, or with scores from start to stop ("(5": without 5 itself). One round."""
        return sum(self._ask_all("LB.COUNT", *self._between(start, stop), *self._group(where, wherenot)))

    def __len__(self) -> int:
        return self.count()

    def count_by(
        self, by: Several[Word], start: Optional[Number] = None, stop: Optional[Number] = None, *,
        where: Group = None, wherenot: Group = None,
    ) -> List[ValueCount]:
        """The same by the values of one tag or two, most first. One round."""
        replies = self._ask_all(
            "LB.COUNT", *self._between(start, stop), *several(by, "BY"), *self._group(where, wherenot)
        )
        counts: Dict[Tuple[Optional[str], ...], int] = {}
        for row in (row for reply in replies for row in parse_counts(reply)):
            counts[row.values] = counts.get(row.values, 0) + row.count
        rows = [ValueCount(values, count) for values, count in counts.items()]
        return sorted(rows, key=lambda row: (-row.count, [encode(value or "") for value in row.values]))

    def hist(self, edge: Several[Number], *, where: Group = None, wherenot: Group = None) -> List[int]:
        """Members below the first edge, between edges, and from the last one up. One round."""
        replies = self._ask_all("LB.HIST", *several(edge), *self._group(where, wherenot))
        return [sum(counts) for counts in zip(*replies)]
