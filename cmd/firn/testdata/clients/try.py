"""Tries the server at 127.0.0.1:PORT with redis-py."""
import sys

import redis

r = redis.Redis(port=int(sys.argv[1]), password=None, socket_timeout=20)
assert r.ping()
first = r.incr("items")
assert r.incr("items") == first + 1
assert r.incrby("items", 10) == first + 11
assert r.incr("orders") > 1 << 40
pipe = r.pipeline()  # a transaction
for _ in range(100):
    pipe.incr("items")
assert pipe.execute() == list(range(first + 12, first + 112))
pipe = r.pipeline(transaction=False)
for _ in range(100):
    pipe.incr("orders")
ids = pipe.execute()
assert ids == sorted(set(ids)) and len(ids) == 100
ids = r.execute_command("FIRN.NEXT", "orders", "COUNT", 1000)
assert ids == sorted(set(ids)) and len(ids) == 1000
(text,) = r.execute_command("FIRN.NEXT", "uid")
assert len(text) == 36 and isinstance(text, bytes)
fields = r.execute_command("FIRN.DECODE", "orders", ids[0])
fields = dict(zip(fields[::2], fields[1::2]))
assert fields[b"id"] == str(ids[0]).encode(), fields
try:
    r.incr("nothere")
    raise SystemExit("no error")
except redis.ResponseError as e:
    assert str(e).startswith("FIRN unknown_namespace: "), e
try:
    r.get("items")
    raise SystemExit("no error")
except redis.ResponseError as e:
    assert "unsupported" in str(e) and "INCR items" in str(e), e
assert r.client_setname("till") and r.client_getname() == "till"
assert r.config_get("save") == {"save": ""}
assert r.info()["role"] == "master"
print("ok")
