"""Makes Firn's ids in this process, under a lease of a worker, as docs/leases.md specifies: Python 3.8, standard library only.

    ids = firn_lease.Lease(["http://10.0.0.1:7070", "http://10.0.0.2:7070"], token="firn_…")
    ids.next()        # an int that no other process makes
    ids.take(1000)    # a list of them, faster
    ids.close()

All threads may share a Lease. After a fork, the child takes a lease of its own. Nothing is kept on disk.
"""
import contextlib, http.client, json, operator, os, re, secrets, socket, ssl, threading, time, urllib.parse, weakref

_all = weakref.WeakSet()


class LeaseError(Exception):
    """No id can be made: the text says why."""


class _Lost(Exception):
    pass


def _number(a, name, least=0):
    text = a.get(name)
    if type(text) is not str or not re.fullmatch("0|[1-9][0-9]{0,18}", text) or not least <= int(text) < 1 << 63:
        raise ValueError("its answer has %s %r, which must be the text of a number below 2^63" % (name, text))
    return int(text)


def _small(a, name, least=0, most=62):
    n = a.get(name)
    if type(n) is not int or not least <= n <= most:
        raise ValueError("its answer has %s %r, which must be a number from %d to %d" % (name, n, least, most))
    return n


class _Grant:
    """The positions [p + 1, end) of one worker, and a clock that never goes back."""

    def __init__(self, a):
        self.lease, self.p, self.end = a["lease"], _number(a, "first") - 1, _number(a, "end")
        self.shown = self.held = _number(a, "clock")
        self.at, self.unit = time.monotonic_ns(), _number(a, "unit_ns", 1)
        self.bits, self.time, self.sequence = (_small(a, name) for name in ("sequence_bits", "time_shift", "sequence_shift"))
        self.base, self.look, self.renewed = _number(a, "base"), _small(a, "look_ms", 1, 1 << 31) / 1000, False
        self.asked = self.at  # when the last request that counts began: see docs/leases.md
        # Two requests without an answer and the pause between them take 5 seconds, and threads are late.
        self.patience = int((max(self.look, 3) + 3.5) * 1e9)

    def clock(self, now):
        """The server's clock, but while that is behind, this clock's own at half its speed."""
        return max(self.shown + self.ticks(now - self.at), self.held + self.ticks((now - self.at) // 2))

    def ticks(self, elapsed):
        return elapsed // self.unit << self.bits

    def renew(self, a, asked):
        clock, end, now = _number(a, "clock"), _number(a, "end"), time.monotonic_ns()
        self.end, self.renewed = max(self.end, end), True
        if self.clock(asked) - clock > self.ticks(9 * 10**9 + self.unit):
            raise _Lost("the server's clock is more than 9 seconds behind this client's")
        own, latest = self.clock(now), clock + self.ticks(now - asked + self.unit)
        if not clock <= own <= latest:
            self.held, self.shown, self.at = own, min(max(own, clock), latest), now

    def late(self, now):
        """Whether the background did not run, as under gevent or after the process was stopped: the lease may be lost."""
        return now - self.asked > self.patience

    def make(self, n, now):
        """At most n ids, all of the clock's tick, and for how many seconds there are no more."""
        if self.late(now):
            return [], 1.0
        clock = self.clock(now)
        q = max(self.p + 1, clock)
        stop = min(q + n, self.end, ((clock >> self.bits) + 1) << self.bits)
        if q >= stop:
            return [], 1.0 if q >= self.end else (self.unit - (now - self.at) % self.unit) / 1e9
        self.p, mask = stop - 1, (1 << self.bits) - 1
        return [(p >> self.bits) << self.time | (p & mask) << self.sequence | self.base for p in range(q, stop)], 0.0


class _Server:
    """A server and its addresses. A look-up can take longer than a request may: it runs aside, and meanwhile those found before count."""

    def __init__(self, url):
        self.url, self.parts, self.addresses, self.failed, self.looking = url, urllib.parse.urlsplit(url), [], 0, None
        if self.parts.scheme not in ("http", "https") or not self.parts.hostname or self.parts.port == 0:
            raise ValueError("server %r must be a URL, as http://127.0.0.1:7070" % url)

    def look_up(self):
        with contextlib.suppress(OSError):
            found = socket.getaddrinfo(self.parts.hostname, self.parts.port or {"http": 80, "https": 443}[self.parts.scheme], type=socket.SOCK_STREAM)
            self.addresses = sorted({(family, address[:2]) for family, _, _, _, address in found})  # in one order each time

    def connect(self, until):
        """A connection to an address; to the next one after a failure."""
        if self.looking is None or not self.looking.is_alive():
            self.looking = threading.Thread(target=self.look_up, daemon=True)
            self.looking.start()
        self.looking.join(0.3 if self.addresses else 2.0)  # a name that is not found must not delay the next server
        if not self.addresses:
            raise LeaseError("its name was not found")
        _, address = self.addresses[self.failed % len(self.addresses)]
        sock = socket.create_connection(address, min(2.0, _left(until)))
        sock.settimeout(min(2.0, _left(until)))
        if self.parts.scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self.parts.hostname)
        sock.settimeout(_left(until))  # it bounds each step
        return sock


def _left(until):
    left = until - time.monotonic()
    if left <= 0:
        raise LeaseError("no answer in time")
    return left


class Lease:
    def __init__(self, servers, pool="default", token=None, timeout=None):
        """The servers share one store. The timeout is how long a call waits for an id, in seconds. By default it is 10, and
        40 while a server is asked for a lease: for up to 24 seconds after its store was restarted it waits before it answers."""
        if isinstance(servers, str) or not servers:
            raise ValueError("servers is %r; it is a list of URLs, as ['http://127.0.0.1:7070']" % (servers,))
        self._servers = [_Server(s) for s in servers]
        if timeout is not None and not timeout >= 0:
            raise ValueError("timeout is %r; it is a number of seconds" % timeout)
        self._pool, self._token, self._timeout, self._closed = pool, token, timeout, False
        self._reset()
        _all.add(self)

    def _reset(self):  # also in a forked child, whose parent's threads may have held the lock
        self._changed, self._stop, self._pid = threading.Condition(threading.RLock()), threading.Event(), os.getpid()
        self._grant, self._thread, self._why, self._asking = None, None, None, False

    def __reduce_ex__(self, _):
        raise TypeError("a lease cannot be copied, since the copy would make the same ids: make another one")

    def next(self):
        return self.take(1)[0]

    def take(self, n):
        ids, used, began, n = [], None, time.monotonic(), operator.index(n)
        while n > 0:
            if os.getpid() != self._pid:
                self._reset()
            changed = self._changed
            if changed._is_owned():
                raise LeaseError("take was called within take, as by a signal handler: let the handler set a flag instead")
            with changed:
                if self._closed:
                    raise LeaseError("the lease is closed")
                if self._thread is None:
                    thread = threading.Thread(target=self._run, args=(self._stop,), daemon=True)
                    thread.start()
                    self._thread = thread
                if self._grant is not used:
                    ids, used = [], self._grant
                now = time.monotonic_ns()
                made, pause = used.make(n - len(ids), now) if used else ([], 1.0)
                ids += made
                if not made:
                    timeout = self._timeout if self._timeout is not None else 40.0 if self._asking or used and not used.late(now) else 10.0
                    left = began + timeout - time.monotonic()
                    if left <= 0:
                        why = self._why or "no server has answered yet"
                        if used and used.late(now):
                            why = "the background of this process has not run in time: does something block it?"
                        raise LeaseError("no lease of pool %s allows an id now: %s" % (self._pool, why))
                    changed.wait(min(pause, left))
            if len(ids) == n and used is self._grant:  # else a signal handler has forked, or the lease was lost
                return ids
        return []

    def close(self):
        """Makes no more ids. Others get the worker when the lease has ended."""
        with self._changed:
            self._closed, self._grant = True, None
            self._stop.set()
            self._changed.notify_all()

    def _run(self, stop):
        """Takes a lease and renews it. After any failure it asks the next server, after a round of all in a second."""
        failed, pause = 0, 0.0
        while not stop.wait(pause):
            g, asked, server = self._grant, time.monotonic_ns(), self._servers[0]
            if g and g.clock(asked) >= g.end:
                self._grant = g = None
            counts, self._asking = True, g is None
            try:
                a = self._ask(server, g)
                with self._changed:
                    if g is None:
                        self._grant = g = _Grant(a)
                    else:
                        g.renew(a, asked)
                failed, pause, self._why = 0, g.look - (time.monotonic_ns() - asked) / 1e9, "its server allows none yet"
            except _Lost as e:
                self._grant, self._why, pause = None, "%s: %s" % (server.url, e), 0.0 if g.renewed else 1.0
            except Exception as e:  # whatever it is: the thread must go on
                self._servers, self._why = self._servers[1:] + self._servers[:1], "%s: %s" % (server.url, str(e) or repr(e))
                server.failed, failed = server.failed + 1, failed + 1
                pause, counts = 0.0 if failed % len(self._servers) else 1.0, not (g and g.late(time.monotonic_ns()))
            self._asking = g is None and not pause  # at once, the next server
            with self._changed:
                if g and counts:
                    g.asked = max(g.asked, asked)
                self._changed.notify_all()

    def _ask(self, server, g):
        limit, once = 2.0 if g else 35.0, secrets.token_hex(8)
        until = time.monotonic() + limit
        path, headers = "%s/v1/leases/%s" % (server.parts.path.rstrip("/"), urllib.parse.quote(self._pool, "")), {}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        if g is None:
            path += "?once=" + once
        else:
            headers["Firn-Lease"], path = g.lease, "%s/renew?end=%d&once=%s" % (path, g.end, once)
        with contextlib.closing(http.client.HTTPConnection(server.parts.netloc.rpartition("@")[2])) as connection:
            connection.sock = server.connect(until)
            watch = threading.Timer(_left(until), _cut, [connection.sock])
            watch.daemon = True
            watch.start()
            try:
                connection.request("POST", path, headers=headers)
                r = connection.getresponse()
                text = r.read(65536)
            finally:
                watch.cancel()
        try:
            a = json.loads(text)
        except ValueError:
            a = {}  # a proxy's page
        if r.status == 200 and re.fullmatch("[!-~]+", a.get("lease", "")) and (g is None or a["lease"] == g.lease):
            if a.get("once") != once:
                raise LeaseError("its answer is to another request: is there a cache in front of it?")
            return a
        error = a.get("error", {})
        if g is not None and r.status == 410 and error.get("code") == "lease_lost":
            raise _Lost(error.get("message"))
        raise LeaseError(error.get("message") or "status %d, and no answer to this request" % r.status)


def _cut(sock):
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _forked():
    for lease in list(_all):
        lease._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
