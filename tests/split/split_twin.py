"""What a SplitBoard must answer, from one board with the same members."""
from dataclasses import replace

from leaderboard_client.parse import records
from leaderboard_client.split import shard_of


class Twin:
    """The members of one board, in the order of a split one: packed key, shard, arrival."""

    def __init__(self, client, key, shards, *words):
        found = records(withkey=True)(client.execute_command("LB.RANGE", key, 0, -1, "WITHKEY", "STRINGS", *words))
        order = sorted(found, key=lambda record: (-record.key, shard_of(record.member, shards)))
        self.records = [replace(record, rank=rank) for rank, record in enumerate(order)]
        self.places = {record.member: record.rank for record in self.records}

    def range(self, first, count):
        return self.records[first:first + count]

    def rank(self, member):
        place = self.places.get(member)
        return None if place is None else self.records[place]

    def around(self, member, count):
        place = self.places.get(member)
        if place is None:
            return []
        first = max(0, min(place - count // 2, len(self.records) - count))
        return self.records[first:first + count]

    def quantile(self, thousandths):
        count = len(self.records)
        return self.records[count - max(1, -(-thousandths * count // 1000))] if count else None
