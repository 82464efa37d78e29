import os
import threading

import redis
from django.conf import settings
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

# A call that fails may have taken ids. They are skipped, so it is repeated without harm.
firn = redis.Redis(connection_pool=redis.BlockingConnectionPool.from_url(
    settings.IDS_URL,
    max_connections=8, timeout=2,  # seconds to wait for a free connection
    socket_connect_timeout=1, socket_timeout=1,
    retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1), 4),
    retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.exceptions.TryAgainError],
))


class Ids:
    """Ids of a namespace, fetched in batches. Threads may share it."""

    def __init__(self, namespace, batch=100):
        self.command = ("FIRN.NEXT", namespace, "COUNT", batch)
        self.start()
        os.register_at_fork(after_in_child=self.start)  # a child must not issue its parent's ids

    def start(self):
        self.lock, self.left = threading.Lock(), []

    def next(self):
        with self.lock:
            if not self.left:
                self.left = firn.execute_command(*self.command)[::-1]
            return self.left.pop()


orders = Ids("orders")


def next_order():
    """The default of a key. Migrations refer to it by name, so it is a function of this module."""
    return orders.next()
