"""redis-py with cache_config. cache_redis_py.py PORT ARGUMENTS: those of redis.Redis, as the page prints them."""
import sys
import time

import redis
from redis.cache import CacheConfig

port = int(sys.argv[1])
writer = redis.Redis(port=port)
reader = eval(f"redis.Redis({sys.argv[2]})")  # the page's line
cache = reader.get_cache()
for score in range(1, 51):
    writer.zadd("top", {"ann": score})
    # The client looks for messages before it takes a reply of its own; the message is on its way when ZADD is answered.
    give_up_at = time.monotonic() + 60
    while (found := reader.zscore("top", "ann")) != score:
        assert time.monotonic() < give_up_at, f"{found} is still kept, not {score}"
    assert cache.size >= 1
writer.zadd("top", {"bob": 100})
while reader.zrevrange("top", 0, 0) != [b"bob"]:
    pass
# A reply comes from memory: the server is not asked.
calls = writer.info("commandstats")["cmdstat_zrevrange"]["calls"]
for _ in range(10):
    assert reader.zrevrange("top", 0, 0) == [b"bob"]
assert writer.info("commandstats")["cmdstat_zrevrange"]["calls"] == calls
assert writer.info("clients")["tracking_clients"] >= 1
writer.flushall()
while reader.zrevrange("top", 0, 0):
    pass
print(f"redis-py {redis.__version__}: all as expected")
