"""One board larger than a machine: SplitBoard. docs/cluster.md says what it promises.

    board = SplitBoard(cluster, "arena", shards=16)      boards arena:{0} .. arena:{15}, wherever they are
    board.create("FIELD", "points", 30, "TIME", 34, "MS")
    board.submit("ann", 500)
    board.rank("ann"), board.page(1000000, 50), board.around("ann", 5)

A member's board is that of shard crc32(name) % shards, for ever. The whole is in the order of packed key
(WITHKEY; larger is better), then shard, then rank in the shard. Places are found by cuts:

    shard 0   90 - - - 70 - - - 40 - - - 10       LB.CUTS: ranks and packed keys, of the whole shard first,
    shard 1   95 - - - 80 - - - 30 - - - 20       then of what is left of it
                           [ rank 6? ]            at most 3 + 1 members of each are before 40, at least 2 + 1

What is read in the end is checked: records of each shard without a gap, and beyond them nothing that belongs in
between. A round is one request for each shard at once, in a pipeline."""
import zlib
from collections import namedtuple
from fractions import Fraction

from redis.exceptions import RedisError

CUTS = 4096  # of one round, all shards together
FEW = 128  # places from the top that are read without cuts
MANY = 512  # records that are read beside those asked for rather than another round taken
ROUNDS_MAX = 40

Record = namedtuple("Record", "member rank time values tags key")
Record.__doc__ = """A member: rank from 0, time in unix milliseconds or None, values of the fields, tags (None unless asked
for), packed key."""


class BoardChanged(RedisError):
    """The board changed faster than a place on it could be found."""


def shard_of(member, shards):
    """crc32 as in zip and PNG, of the name in UTF-8."""
    name = member if isinstance(member, bytes) else str(member).encode()
    return zlib.crc32(name) % shards


def text(value):
    return value.decode() if isinstance(value, bytes) else value


class Shard:
    """What is known of one shard while a place is sought: its members before first are better than all that is
    sought, those from end on are worse. cuts: (rank, key)."""

    def __init__(self):
        self.first, self.end, self.cuts = 0, None, []


class Search:
    """For the count places from first on."""

    def __init__(self, first, count, shards):
        self.first, self.count = first, count
        self.shards = [Shard() for _ in range(shards)]
        self.pad, self.records, self.is_exact = 2, [], shards == 1 or first + count <= FEW
        if self.is_exact:
            for shard in self.shards:
                shard.first, shard.end = (first, first + count) if shards == 1 else (0, first + count)

    def take_cuts(self, replies):
        """Cuts of what is left of each shard; clips what is sought to what there is. Returns self."""
        for shard, cuts in zip(self.shards, replies):
            if cuts is None:
                continue
            shard.cuts = [(rank, int(key)) for rank, key in cuts]
            if shard.end is None:
                shard.end = shard.cuts[-1][0] + 1 if shard.cuts else 0
        total = sum(shard.end for shard in self.shards)
        self.narrow(self.first, min(self.first + self.count, total) - 1)
        return self

    def narrow(self, first, last):
        """Leave of each shard what may be in first .. last."""
        cuts = sorted((-key, index, rank) for index, shard in enumerate(self.shards) for rank, key in shard.cuts)
        # How many of a shard are before the cut: at least, at most. Places in its cuts.
        least, most = [shard.first for shard in self.shards], [shard.end for shard in self.shards]
        ranks = [[rank for rank, _ in shard.cuts] + [shard.end] for shard in self.shards]
        for index in range(len(ranks)):
            most[index] = ranks[index][0]
        passed = [0] * len(ranks)
        least_sum, most_sum = sum(least), sum(most)
        low, high = list(least), None
        for _, index, rank in cuts:
            if most_sum <= first:
                low = None  # this one is at first at the latest: what is surely before it is out
            if high is None and least_sum - least[index] + rank >= last:
                high = list(most)
                high[index] = rank + 1
            if low is None:
                low = list(least)
                low[index] = rank
            elif high is not None:
                break
            passed[index] += 1
            least_sum += rank + 1 - least[index]
            most_sum += ranks[index][passed[index]] - most[index]
            least[index], most[index] = rank + 1, ranks[index][passed[index]]
        for index, shard in enumerate(self.shards):
            shard.first = low[index]
            shard.end = max(low[index], high[index] if high else shard.end)
            shard.cuts = []

    def left(self):
        return sum(shard.end - shard.first for shard in self.shards)

    def ranges(self):
        """(start, stop) of the records to read in each shard."""
        if len(self.shards) == 1:
            return [(self.first, self.first + self.count - 1)]
        pad = 0 if self.is_exact else self.pad
        return [(max(0, shard.first - pad), shard.end - 1 + pad) for shard in self.shards]

    def take_records(self, replies):
        """(place in the order, record) lists. False: the board has changed meanwhile."""
        ranges = self.ranges()
        ends = [len(records) < stop + 1 - start for (start, stop), records in zip(ranges, replies)]
        if any(start > 0 and not records for (start, _), records in zip(ranges, replies)) and len(replies) > 1:
            return False
        self.records = merge(replies, ends, self.first, self.count)
        return self.records is not None


def merge(lists, ends, first, count):
    """The records at the places first .. first + count - 1, or as many as there are; None: others may be in between.

    lists: of each shard records without a gap, (order, record); ends: is the last of them the shard's last?"""
    heads = [records[0] for records in lists if records and records[0][1].rank > 0]
    tails = [records[-1] for records, is_end in zip(lists, ends) if records and not is_end]
    if any(not records and not is_end for records, is_end in zip(lists, ends)):
        return None
    offset = sum(records[0][1].rank for records in lists if records)
    merged = sorted((pair for records in lists for pair in records), key=lambda pair: pair[0])
    begin = first - offset
    end = min(begin + count, len(merged))
    if begin >= len(merged):  # behind the last, if that is known
        return None if tails else []
    if begin < 0 or (tails and begin + count > end):
        return None
    wanted = merged[begin:end]
    if heads and max(order for order, _ in heads) > wanted[0][0]:
        return None
    if tails and min(order for order, _ in tails) < wanted[-1][0]:
        return None
    return [record._replace(rank=first + i) for i, (_, record) in enumerate(wanted)]


class SplitBoard:
    """cluster: a redis.cluster.RedisCluster or a redis.Redis. where, wherenot: {tag: value or values}, reading
    inside that group; within: tags whose values are those of the member asked about."""

    def __init__(self, cluster, name, shards=16, suffix=""):
        self.client, self.name, self.shards, self.suffix = cluster, name, shards, suffix
        self.keys = [f"{name}:{{{shard}}}{suffix}" for shard in range(shards)]
        self.rounds = 0  # so far
        self._nodes = hasattr(cluster, "get_node_from_key")

    # ---- rounds ----

    def _ask(self, asked):
        """asked: (shard, command, words behind the key). Replies in this order; the first error is raised when all
        are there."""
        if not asked:
            return []
        self.rounds += 1
        pipe = self.client.pipeline(transaction=False)
        for shard, command, *words in asked:
            key = self.keys[shard]
            # Without it redis-py asks a node which arguments of the command are keys, each time.
            node = {"target_nodes": self.client.get_node_from_key(key)} if self._nodes else {}
            pipe.execute_command(command, key, *words, **node)
        replies = pipe.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _ask_all(self, command, *words):
        return self._ask([(shard, command, *words) for shard in range(self.shards)])

    @staticmethod
    def _group(where, wherenot):
        words = []
        for word, group in (("WHERE", where), ("WHERENOT", wherenot)):
            for name, values in (group or {}).items():
                for value in [values] if isinstance(values, (str, bytes, int)) else values:
                    words += [word, name, value]
        return words

    def _record(self, shard, reply, with_tags=False):
        """(order, record) of a reply WITHKEY [TAGS]."""
        tags = None
        if with_tags:
            reply, tags = reply[:-1], reply[-1]
            tags = tags if isinstance(tags, dict) else dict(zip(tags[::2], tags[1::2]))
            tags = {text(name): text(value) for name, value in tags.items()}
        member, rank, time, *values, key = reply
        record = Record(text(member), rank, time, tuple(text(value) for value in values), tags, int(key))
        return (-record.key, shard, rank), record

    def _records(self, replies, with_tags=False):
        return [[self._record(shard, reply, with_tags) for reply in records]
                for shard, records in enumerate(replies)]

    # ---- writing ----

    def create(self, *options):
        """LB.CREATE with these words on every shard. One that was interrupted is completed by the same again."""
        self.rounds += 1
        pipe = self.client.pipeline(transaction=False)
        for key in self.keys:
            pipe.execute_command("LB.CREATE", key, *options)
        replies = pipe.execute(raise_on_error=False)
        errors = [reply for reply in replies if isinstance(reply, Exception)]
        others = [error for error in errors if "BUSYKEY" not in str(error) and "exists" not in str(error)]
        if others or len(errors) == self.shards:
            raise (others or errors)[0]
        layouts = {str(self._layout(reply)) for reply in self._ask_all("LB.INFO")} if errors else ()
        if len(layouts) > 1:
            raise RedisError(f"shards of '{self.name}' have different layouts: {sorted(layouts)}")

    @staticmethod
    def _layout(reply):
        info = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))
        return {text(name): text(value) for name, value in info.items()}["layout"]

    def submit(self, member, *values, options=(), tags=None):
        """LB.ADD of one member; options: words such as "BEST", "INCR", "AT", time. Whether it changed something."""
        words = [word for name, value in (tags or {}).items() for word in ("TAG", name, value)]
        return bool(self._ask([(self.shard(member), "LB.ADD", *options, *words, *values, member)])[0])

    def submit_many(self, results, options=()):
        """results: (member, values ...). One LB.ADD for each shard, of which each is done whole or not at all: an
        error of one is raised when the others are done. How many were changed."""
        words = {}
        for member, *values in results:
            words.setdefault(self.shard(member), []).extend((*values, member))
        return sum(self._ask([(shard, "LB.ADD", *options, *of) for shard, of in words.items()]))

    def tag(self, member, tags):
        """LB.TAG: set tags of a member that is there."""
        words = [word for pair in tags.items() for word in pair]
        return self._ask([(self.shard(member), "LB.TAG", member, *words)])[0]

    def remove(self, *members):
        words = {}
        for member in members:
            words.setdefault(self.shard(member), []).append(member)
        return sum(self._ask([(shard, "ZREM", *of) for shard, of in words.items()]))

    def delete(self):
        return sum(self._ask_all("UNLINK"))

    def archive(self, period):
        """The board of an earlier period (PERIOD): archive("2026-11-16")."""
        return SplitBoard(self.client, self.name, self.shards, f"@{period}")

    def shard(self, member):
        return shard_of(member, self.shards)

    # ---- members ----

    def _get(self, members, words, with_tags=False):
        """(order, record) of each, None: not there. One round."""
        places = {}
        for place, member in enumerate(members):
            places.setdefault(self.shard(member), []).append(place)
        replies = self._ask([(shard, "LB.GET", len(of), *[members[place] for place in of], "WITHKEY", *words)
                             for shard, of in places.items()])
        found = [None] * len(members)
        for (shard, of), records in zip(places.items(), replies):
            for place, reply in zip(of, records):
                found[place] = None if reply is None else self._record(shard, reply, with_tags)
        return found

    def _group_of(self, member, where, wherenot, within):
        """The words of the group, None: the member is not there. A round with within."""
        where = dict(where or {})
        if within:
            found = self._get([member], ["TAGS"], True)[0]
            if found is None:
                return None
            where.update({name: found[1].tags.get(name, "") for name in within})
        return self._group(where, wherenot)

    def rank(self, member, where=None, wherenot=None, within=(), comp=False):
        """The member's record; None: it is not there, or not in the group. Two rounds, three with within."""
        words = self._group_of(member, where, wherenot, within)
        return None if words is None else self._ranks([member], words, comp)[0]

    def ranks(self, *members, where=None, wherenot=None, comp=False):
        """The same of many members, in two rounds. comp: members with the same fields share the best rank."""
        return self._ranks(members, self._group(where, wherenot), comp)

    def _ranks(self, members, words, comp):
        words = [*words, *(["COMP"] if comp else [])]
        found = self._get(members, words)
        there = [(place, *pair) for place, pair in enumerate(found) if pair is not None]
        asked, places = [], []
        for shard in range(self.shards):
            of = [(place, f"={record.key}" if shard < order[1] and not comp else record.key)
                  for place, order, record in there if order[1] != shard]
            if of:
                asked.append((shard, "LB.ABOVE", *[key for _, key in of], *words))
                places.append([place for place, _ in of])
        records = [pair and pair[1] for pair in found]
        for of, counts in zip(places, self._ask(asked)):
            for place, count in zip(of, counts):
                records[place] = records[place]._replace(rank=records[place].rank + count)
        return records

    def around(self, member, count, where=None, wherenot=None, within=()):
        """count records with the member in the middle, as LB.AROUND. Two rounds, three with within."""
        words = self._group_of(member, where, wherenot, within)
        found = None if words is None else self._get([member], words)[0]
        size = 2 * (count + 1)
        for _ in range(ROUNDS_MAX):
            if found is None:
                return []
            order, record = found
            asked = [(shard, "LB.AROUND", *(("MEMBER", member) if shard == order[1] else
                                            ("PACKED", f"={record.key}" if shard < order[1] else record.key)),
                      size, "WITHKEY", *words) for shard in range(self.shards)]
            lists = self._records(self._ask(asked))
            found = next((pair for pair in lists[order[1]] if pair[1].member == text(member)), None)
            if found is None or found[1].key != record.key:
                continue  # it has moved, or gone
            order = found[0]
            before = [sum(pair[0] < order for pair in records) for records in lists]
            # A window shifts only where the board ends.
            ends = [len(records) < size or of > size // 2 for records, of in zip(lists, before)]
            rank = sum(before) + sum(records[0][1].rank for records in lists if records)
            total = rank - sum(before) + sum(map(len, lists))
            first = max(0, min(rank - count // 2, total - count))
            records = merge(lists, ends, first, count)
            if records is not None:
                return records
        raise BoardChanged(f"'{self.name}' changes too fast: no records around '{text(member)}'")

    # ---- places ----

    def page(self, first, count, where=None, wherenot=None, tags=False):
        """The records at the places first .. first + count - 1. Three rounds; one near the top; four on a board of
        a billion."""
        words = self._group(where, wherenot)
        return self._find([Search(first, count, self.shards)], words, tags)[0]

    def top(self, count, where=None, wherenot=None, tags=False):
        """The best count records."""
        return self.page(0, count, where, wherenot, tags)

    def quantile(self, *quantiles, where=None, wherenot=None):
        """A record for each quantile from 0, the worst, to 1, the best, as LB.QUANTILE; None: nobody is there."""
        words = self._group(where, wherenot)
        cuts = self._ask_all("LB.CUTS", self._cuts_each(1), *words)
        total = sum(of[-1][0] + 1 for of in cuts if of)
        if total == 0:
            return [None] * len(quantiles)
        searches = []
        for quantile in quantiles:
            from_worst = -(-Fraction(str(quantile)) * total // 1)
            search = Search(total - int(max(1, from_worst)), 1, self.shards)
            searches.append(search if search.is_exact else search.take_cuts(cuts))
        return [records[0] if records else None for records in self._find(searches, words, False)]

    def _cuts_each(self, searches):
        return max(2, min(10000, CUTS // (self.shards * searches)))

    def _cuts(self, searches, words):
        """Cuts of what is left of the shards of each search, in one round."""
        count = self._cuts_each(len(searches))
        asked, of = [], []
        for place, search in enumerate(searches):
            for index, shard in enumerate(search.shards):
                if shard.end is None or shard.end > shard.first:
                    span = [] if shard.end is None else [shard.first, shard.end - 1]
                    asked.append((index, "LB.CUTS", count, *span, *words))
                    of.append((place, index))
        replies = [[None] * self.shards for _ in searches]
        for (place, index), reply in zip(of, self._ask(asked)):
            replies[place][index] = reply
        return replies

    def _narrow(self, searches, words):
        """Until little is left of each."""
        open_ones = [search for search in searches if not search.is_exact]
        while open_ones:
            new = [search for search in open_ones if search.shards[0].end is None]
            if new:  # all ask the same
                cuts = self._cuts(new[:1], words)[0]
                for search in new:
                    search.take_cuts(cuts)
            else:
                for search, cuts in zip(open_ones, self._cuts(open_ones, words)):
                    before = search.left()
                    search.take_cuts(cuts)
                    search.is_stuck = search.left() >= before
            open_ones = [search for search in open_ones
                         if search.left() > search.count + MANY and not getattr(search, "is_stuck", False)]

    def _find(self, searches, words, with_tags):
        more = ["WITHKEY", *words, *(["TAGS"] if with_tags else [])]
        begun, missing = self.rounds, searches
        while missing:
            if self.rounds - begun > ROUNDS_MAX:
                raise BoardChanged(f"'{self.name}' changes too fast: no place {missing[0].first}")
            self._narrow([search for search in missing if search.shards[0].end is None
                          or search.left() > search.count + MANY + search.pad * 2 * self.shards], words)
            asked = [(shard, "LB.RANGE", start, stop, *more) for search in missing
                     for shard, (start, stop) in enumerate(search.ranges())]
            replies, next_missing = self._ask(asked), []
            for place, search in enumerate(missing):
                of = replies[place * self.shards:(place + 1) * self.shards]
                if not search.take_records(self._records(of, with_tags)):
                    search.pad *= 8
                    next_missing.append(search)
                    if search.pad > 1000:  # begin again
                        search.__init__(search.first, search.count, self.shards)
            missing = next_missing
        return [search.records for search in searches]

    # ---- counts ----

    def count(self, start=None, stop=None, by=(), where=None, wherenot=None):
        """How many members, or with scores from start to stop ("(5" without 5 itself). by: one tag or two, then rows
        of (value ..., count), most first. One round."""
        words = [*([] if start is None else [start, stop, "BYSCORE"]),
                 *[word for name in by for word in ("BY", name)], *self._group(where, wherenot)]
        replies = self._ask_all("LB.COUNT", *words)
        if not by:
            return sum(replies)
        rows = {}
        for *values, count in [row for reply in replies for row in reply]:
            values = tuple(text(value) for value in values)
            rows[values] = rows.get(values, 0) + count
        order = lambda row: (-row[-1], [(value or "").encode() for value in row[:-1]])
        return sorted(((*values, count) for values, count in rows.items()), key=order)

    def histogram(self, *edges, where=None, wherenot=None):
        """Members below the first edge, between edges, and from the last one up. One round."""
        replies = self._ask_all("LB.HIST", *edges, *self._group(where, wherenot))
        return [sum(counts) for counts in zip(*replies)]
