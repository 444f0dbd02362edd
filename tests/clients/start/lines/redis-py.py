import redis

client = redis.Redis(port=6379, decode_responses=True)
# the page's lines
for row in [*top, record]:
    print(*("null" if word is None else word for word in row))
