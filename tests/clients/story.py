"""redis-py: one leaderboard's life, in the client's default way. story.py PORT"""
import sys
import time

import redis

board = "python:board"
is_redis = len(sys.argv) > 2 and sys.argv[2] == "redis"
client = redis.Redis(port=int(sys.argv[1]), decode_responses=True)


def says(sentence, claim):
    if not claim:
        print(f"not ok redis-py {redis.__version__}: {sentence}")
        sys.exit(1)
    print(f"ok redis-py {redis.__version__}: {sentence}")


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


client.delete(board)
says("connects and pings", client.ping() is True)
says("adds players", client.zadd(board, {"zoe": 50, "adam": 20, "carl": 7}) == 3)
says("adds nobody twice", client.zadd(board, {"zoe": 50}) == 0)
says("counts changes", client.zadd(board, {"zoe": 60, "bob": 1}, ch=True) == 2)
says("increments", client.zincrby(board, 40, "zoe") == 100.0)
says("increments through ZADD", client.zadd(board, {"adam": 80}, incr=True) == 100.0)
says("ranks the first at a score first", client.zrevrange(board, 0, 1) == ["zoe", "adam"])
if not is_redis:
    client.zadd(board + ":ties", {"adam": 5})
    client.zadd(board + ":ties", {"zoe": 5})
    says("ranks by arrival whatever the names are",
         client.zrevrange(board + ":ties", 0, -1) == ["adam", "zoe"])
    client.delete(board + ":ties")
says("tells ranks", [client.zrevrank(board, m) for m in ("zoe", "carl", "nobody")] == [0, 2, None])
says("tells scores", client.zmscore(board, ["zoe", "nobody"]) == [100.0, None])
says("tells no score of nobody", client.zscore(board, "nobody") is None)
says("lists the top with scores",
     client.zrange(board, 0, 1, desc=True, withscores=True) == [("zoe", 100.0), ("adam", 100.0)])
says("lists a page", client.zrevrange(board, 2, 3) == ["carl", "bob"])
says("lists by score", client.zrangebyscore(board, "(1", "+inf", start=0, num=1) == ["carl"])
says("counts by score", client.zcount(board, 7, "inf") == 3)
says("keeps big scores exact", client.zadd(board, {"max": 4294967295}) == 1
     and client.zscore(board, "max") == 4294967295)
says("pops the best", client.zpopmax(board) == [("max", 4294967295.0)])
says("pops the last", client.zpopmin(board, 1) == [("bob", 1.0)])
says("removes", client.zrem(board, "carl", "nobody") == 1 and client.zcard(board) == 2)
with client.pipeline(transaction=False) as pipeline:
    for i in range(1000):
        pipeline.zadd(board, {f"player:{i}": i + 1000})
    pipeline.zcard(board)
    answers = pipeline.execute()
says("pipelines", answers == [1] * 1000 + [1002])
says("scans members", len(dict(client.zscan_iter(board, match="player:*", count=100))) == 1000)
says("scans keys", board in set(client.scan_iter(match="python:*")))
says("raises errors", raises(redis.ResponseError, lambda: client.zadd(board, {"x": "many"}))
     and raises(redis.ResponseError, lambda: client.execute_command("ZADD", board))
     and raises(redis.ResponseError, lambda: client.execute_command("NONSENSE")))
with client.pipeline(transaction=False) as pipeline:
    pipeline.zadd(board, {"late": 1}).execute_command("ZADD", board, "nan", "x").zcard(board)
    answers = pipeline.execute(raise_on_error=False)
says("keeps a pipeline in step behind an error",
     answers[0] == 1 and isinstance(answers[1], redis.ResponseError) and answers[2] == 1003)
says("renames", client.rename(board, board + ":old") and client.exists(board) == 0
     and client.type(board + ":old") == "zset")
with client.pipeline() as pipeline:  # together: 60 ms may go by between two requests
    answers = pipeline.pexpire(board + ":old", 60).pttl(board + ":old").execute()
says("expires", answers[0] and 0 <= answers[1] <= 60)
time.sleep(0.15)
says("has expired", client.exists(board + ":old") == 0)
says("names itself", client.client_setname("python") and client.client_getname() == "python")
says("reads INFO", client.info("server")["redis_mode"] == "standalone")
says("reads CONFIG", client.config_get("databases") == {"databases": "16"})
if tuple(int(part) for part in redis.__version__.split(".")[:1]) >= (5,):
    third = redis.Redis(port=int(sys.argv[1]), decode_responses=True, protocol=3)
    third.zadd(board, {"zoe": 1})
    says("speaks RESP3", third.zrange(board, 0, -1, withscores=True) == [["zoe", 1.0]])
    third.delete(board)
