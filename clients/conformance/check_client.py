"""Checks a client of leases (docs/leases.md) against a server that behaves badly in each way that a real one may.

    python3 check_client.py [--fork] [--signals] [--only TEXT] COMMAND ARGS…

The command gets three more arguments: the servers' URLs with commas between them, the pool and the token. Every half second it
makes 1,000 ids, some of them many at a time, and prints each as soon as it is made, one a line in decimal. It prints nothing
instead of an id while it has none: a call waits for half a second at most. It ends with its input.

--fork: at the line "fork" it forks, and both processes go on until the input ends (where a language cannot fork, it changes the
process id that the client sees); at "child" it forks, and the child makes some ids and exits as a program does; at "block" it
computes for 7.5 seconds.

--signals: at SIGUSR1, if it is in a call, its handler forks, and the child prints what the call returns and ends; at SIGUSR2 its
handler makes an id, and prints it if there is one; after the line "busy" it makes its ids every 20 milliseconds.

Each check starts the command again. Eight run at a time. A check that may have failed because the machine was busy is repeated alone.
"""
import concurrent.futures, http.server, itertools, json, signal, socket, subprocess, sys, threading, time, traceback, urllib.parse

POOL, TOKEN, LOOK, HOUR = "a pool/é", "firn_secret", 0.2, 3600.0
START = time.monotonic()


class Layout:
    def __init__(self, start, unit, bits, workers, sequence_first=False):
        self.start, self.unit, self.bits, self.workers = start, unit, bits, workers  # the unit is in seconds
        self.shift, self.worker_shift = (workers, 0) if sequence_first else (0, bits)
        self.time_shift = bits + workers

    def ticks(self, seconds):
        return round(seconds / self.unit)

    def parts(self, id):
        """The worker and the position of an id."""
        sequence, worker = id >> self.shift & (1 << self.bits) - 1, id >> self.worker_shift & (1 << self.workers) - 1
        return worker, id >> self.time_shift << self.bits | sequence


USUAL, SECONDS = Layout(10**9, 0.001, 6, 8), Layout(2**33, 1.0, 20, 8)
LAYOUTS = [("milliseconds", USUAL), ("ticks above 2^40", Layout(2**40 + 12345, 0.001, 12, 10)), ("positions near 2^62", Layout(2**30 - 10**6, 0.001, 32, 1)),
           ("sequence first, 10 ms", Layout(2**38, 0.01, 8, 16, True)), ("seconds", SECONDS)]


class Server:
    """One pool of one store. Each listener is a server of it, and has how it answers to grants and to renewals: None is well."""

    def __init__(self, layout=USUAL, servers=1, window=2.0, first=1.0):
        self.layout, self.window, self.first = layout, window, first
        self.lock, self.grants, self.requests, self.onces, self.wrong, self.jump, self.ahead = threading.RLock(), {}, [], [], [], 0.0, 0
        self.listeners = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(servers)]
        for n, l in enumerate(self.listeners):
            l.daemon_threads, l.store, l.number, l.grant, l.renew, l.handle_error = True, self, n, None, None, self.failed
            threading.Thread(target=l.serve_forever, args=(0.05,), daemon=True).start()
        self.urls = ",".join("http://127.0.0.1:%d/" % l.server_port for l in self.listeners)

    def tick(self):
        return self.layout.start + int((time.monotonic() - START + self.jump) / self.layout.unit)

    def fails(self, grant, renew):
        for l in self.listeners:
            l.grant, l.renew = grant, renew

    def failed(self, *_):
        if not isinstance(sys.exc_info()[1], OSError):  # the client may close its connection
            traceback.print_exc()

    def complain(self, what):
        with self.lock:
            self.wrong.append(what)

    def renewals(self):
        return [r for r in list(self.requests) if r[2]]

    def advance(self, clock):
        """A clock that is ahead allows ids ahead of the present."""
        self.ahead = max(self.ahead, (clock >> self.layout.bits) - self.tick())
        return str(clock)


def failure(code):
    return {"error": {"code": code, "message": "as the check wants"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.store.complain("it sends a %s request" % self.command)
        self.answer(405, {})

    do_PUT = do_HEAD = do_DELETE = do_GET

    def do_POST(self):
        s, l = self.server.store, self.server
        path, _, query = self.path.partition("?")
        what, known = path.rpartition("/")[2], ("renew", urllib.parse.quote(POOL, ""))
        if path not in ("/v1/leases/" + known[1], "/v1/leases/%s/renew" % known[1]) or self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            s.complain("it asks for %s with %s bytes" % (self.path, self.headers.get("Content-Length")))
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            s.complain("its Authorization is %r" % self.headers.get("Authorization"))
        renew, asked = what == "renew", dict(urllib.parse.parse_qsl(query))
        once = asked.pop("once", "")
        with s.lock:
            if not 16 <= len(once) <= 64 or not (once.isascii() and once.isalnum()) or once in s.onces:
                s.complain("its once is %r; it must be 16 to 64 letters and digits, others in each request" % once)
            s.onces.append(once)
            g = s.grants.get(self.headers.get("Firn-Lease")) if renew else None
            s.requests.append((time.monotonic(), l.number, renew, g))
            if asked != ({"end": str(g["known"])} if renew and g else {}) or renew and g is None:
                s.complain("it asks for lease %r with %s; it knows %s" % (self.headers.get("Firn-Lease"), query, g and g["known"]))
                return self.fail(400, "bad_lease")
        mode, slow = l.renew if renew else l.grant, 0.0
        if isinstance(mode, itertools.cycle):
            with s.lock:
                mode = next(mode)
        if isinstance(mode, float):
            mode, slow = None, mode
        elif isinstance(mode, str):
            return self.misbehave(mode)
        elif isinstance(mode, tuple):
            if mode == (410, "lease_lost") and g and not g["over"]:
                g["over"] = time.monotonic()
            return self.fail(*mode)
        with s.lock:
            answer = self.renew(s, g, mode, once) if renew else self.grant(s, mode, once)
        time.sleep(slow)  # on its way
        self.answer(*answer)

    def grant(self, s, change, once):
        n, now, layout = len(s.grants) + 1, s.tick(), s.layout
        worker = n % (1 << layout.workers)
        first = now + (3 if layout.unit < 0.1 else 0) << layout.bits | 5
        end = now + layout.ticks(max(s.first, 2 * layout.unit)) << layout.bits | 3
        answer = {"lease": "L%d.%d" % (n, first), "pool": POOL, "clock": s.advance(now << layout.bits), "first": str(first), "end": str(end), "look_ms": int(LOOK * 1000),
                  "worker": worker, "layout": "a layout", "unit_ns": str(int(layout.unit * 10**9)), "sequence_bits": layout.bits, "time_shift": layout.time_shift,
                  "sequence_shift": layout.shift, "base": str(worker << layout.worker_shift), "once": once}
        answer, good = change(answer) if change else (answer, True)
        if good:
            s.grants[answer["lease"]] = {"worker": worker, "first": first, "known": end, "fence": end, "over": None, "at": time.monotonic()}
        return 200, answer

    def renew(self, s, g, change, once):
        now, bits = s.tick(), s.layout.bits
        if g["over"] or g["fence"] >> bits < now:
            g["over"] = g["over"] or time.monotonic()
            return 410, failure("lease_lost")
        if (g["fence"] >> bits) - now < s.layout.ticks(s.window) / 2:
            g["fence"] = now + s.layout.ticks(s.window) << bits | 3
        lease = next(name for name, other in s.grants.items() if other is g)
        answer = {"lease": lease, "pool": POOL, "clock": str(now << bits), "end": str(g["fence"]), "once": once}
        answer, good = change(answer) if change else (answer, True)
        if good:
            g["known"] = max(g["known"], int(answer["end"]))
            s.advance(int(answer["clock"]))
        return 200, answer

    def misbehave(self, mode):
        self.close_connection = True
        if mode == "garbage":
            return self.answer(200, b"<html>{\"lease\":")
        if mode == "nested":
            return self.answer(200, b"[" * 60000)
        if mode == "redirect":
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if mode == "trickled answer":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        elif mode == "trickled header":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for n in range(300 if mode != "closed" else 0):
            time.sleep(0.2)
            if mode != "silent":
                try:
                    self.wfile.write(b" " if mode == "trickled answer" else b"X-Header-%d: x\r\n" % n)
                except OSError:
                    return

    def fail(self, status, code):
        self.answer(status, failure(code))

    def answer(self, status, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 429:
            self.send_header("Retry-After", "60")
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass


class Client:
    """A process that makes ids, each of which is looked at."""

    def __init__(self, command, server):
        self.server, self.made, self.seen, self.late = server, [], {}, []
        self.process = subprocess.Popen(command + [server.urls, POOL, TOKEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=lambda: [self.look(line) for line in self.process.stdout], daemon=True)
        self.reader.start()

    def look(self, line):
        s, layout, now = self.server, self.server.layout, time.monotonic()
        id, tick = int(line.split()[-1]), self.server.tick()
        worker, p = layout.parts(id)
        if id in self.seen:
            s.complain("id %d was made twice: %r, %r" % (id, self.seen[id], line))
        self.seen[id] = line
        with s.lock:
            g = next((g for g in reversed(list(s.grants.values())) if g["worker"] == worker and g["first"] <= p < g["known"]), None)
            self.made.append((now, g, p))
            if g is None:
                s.complain("id %d of worker %d with position %d is in none of %s" % (id, worker, p, [(g["worker"], g["first"], g["known"]) for g in s.grants.values()][-3:]))
            elif g["over"] and now > g["over"] + 0.5:
                self.late.append("it makes ids under a lost lease, after %.1f s" % (now - g["over"]))
            if (p >> layout.bits) - tick > s.ahead:
                s.complain("position %d is %d ticks ahead of the clock" % (p, (p >> layout.bits) - tick))
            if tick - (p >> layout.bits) > layout.ticks(3.0) + 1 and not s.jump:
                self.late.append("position %d is %d ticks behind the clock" % (p, tick - (p >> layout.bits)))

    def wait(self, seconds):
        """Waits, and returns how many ids were made meanwhile."""
        before = len(self.made)
        time.sleep(seconds)
        return len(self.made) - before

    def resumes(self, within=15.0, after=0.5):
        """Waits until ids are made again, and for some more of them."""
        before, until = len(self.made), time.monotonic() + within
        while len(self.made) == before and time.monotonic() < until:
            time.sleep(0.05)
        return len(self.made) > before and (self.wait(after) >= 0)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


def run(command, check):
    """Returns what was wrong, and whether it may be because the machine is busy."""
    _, options, script = check
    s = Server(**options)
    setup = getattr(script, "setup", None)
    if setup:
        setup(s)
    c = Client(command, s)
    slow = []
    try:
        if not setup and not c.resumes(30.0, 0.7):
            slow.append("it makes no ids")
        else:
            slow += list(script(s, c))
    finally:
        try:
            c.process.stdin.close()
            c.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            c.process.kill()
            slow.append("it does not end with its input")
        c.reader.join(5)
        for l in s.listeners:
            l.shutdown()
            l.server_close()
    times = [t for t, _, _, _ in s.requests]
    most = 12 + 2 * len(s.listeners) + 100 * hasattr(script, "forks")
    if any(b - a < 1 for a, b in zip(times, times[most:])):
        slow.append("it asks more than %d times a second" % most)
    slow += ["it renews a lost lease"] * any(g and g["over"] and t > g["over"] + 0.3 for t, _, _, g in s.requests)
    if not s.wrong and c.process.returncode not in (0, -9):
        slow.append("it ends with status %s" % c.process.returncode)
    return list(dict.fromkeys(s.wrong + slow + c.late))[:4], not s.wrong


def usual(s, c):
    if c.wait(3) == 0:
        yield "it makes no ids"
    times = [t for t, _, _, _ in s.renewals()]
    if len(times) < 2 or not LOOK * 0.7 < (times[-1] - times[0]) / (len(times) - 1) < LOOK * 2.5:  # a busy machine may take that long
        yield "it renewed %d times, and must every %.1f s" % (len(times), LOOK)
    if len(s.grants) > 1:
        yield "it takes %d leases, and needs one" % len(s.grants)


def outage(*modes):
    """All requests fail. The lease is used up to its end."""
    def script(s, c):
        s.fails(itertools.cycle(modes), itertools.cycle(modes))
        if c.wait(0.8) == 0:
            yield "it stops before its end"
        c.wait(4)
        if c.wait(1):
            yield "it goes on after its end"
        s.fails(None, None)
        if not c.resumes(60.0):
            yield "it does not recover"
    return script


def silence(s, c):
    """No server answers for a time that is shorter than the lease."""
    s.fails("silent", "silent")
    for _ in range(12):
        if c.wait(0.9) == 0:
            yield "it stops before its end"
            break


def survived(modes):
    """Renewals fail, each in another way, within the window. The lease stays."""
    def script(s, c):
        renewals = len(s.renewals())
        s.fails((503, "store_unavailable"), itertools.cycle(modes))
        for _ in range(8 + 2 * len(modes)):
            if c.wait(0.6) == 0:
                yield "it stops before its end"
                break
            if len(s.renewals()) - renewals > len(modes):
                break
        else:
            yield "it asks %d times in all this time" % (len(s.renewals()) - renewals)
        s.fails((503, "store_unavailable"), None)
        if c.wait(2) == 0 or len(s.grants) > 1:
            yield "it does not go on with its lease"
    return script


def failover(seconds, *modes, connects=True):
    """Each server but the last fails in another way when it is asked for a lease."""
    def script(s, c):
        if not c.resumes(seconds, 0.5):
            yield "it makes no ids within %d s" % seconds
        if {n for _, n, renew, _ in s.requests if renew} - {len(modes)}:
            yield "it does not stay with the server that answers"

    def setup(s):
        for l, mode in zip(s.listeners, modes):
            l.grant = mode
        if not connects:
            full(s)
    script.setup = setup
    return script


def full(s):
    """The first server accepts no connection: its queue of connections is full."""
    s.queue = [socket.socket() for _ in range(5)]
    s.queue[0].bind(("127.0.0.1", 0))
    s.queue[0].listen(0)
    for c in s.queue[1:]:
        c.setblocking(False)
        c.connect_ex(s.queue[0].getsockname())
    s.urls = "http://127.0.0.1:%d,%s" % (s.queue[0].getsockname()[1], s.urls)


def refused(s, c):
    """All grants fail, each in another way."""
    for _ in range(60):
        if c.wait(0.5):
            yield "it makes ids without a lease"
        if len(s.requests) > len(GRANTS):
            break
    else:
        yield "it asks %d times in half a minute" % len(s.requests)
    s.fails(None, None)
    if not c.resumes():
        yield "it does not recover"


refused.setup = lambda s: s.fails(itertools.cycle(GRANTS), None)


def away(mode):
    """One of two servers stops answering. The other one renews the lease."""
    def script(s, c):
        n = s.requests[-1][1]
        s.listeners[n].grant = s.listeners[n].renew = mode
        for _ in range(10):
            if c.wait(0.8) == 0:
                yield "it stops"
        if len(s.grants) > 1 or s.renewals()[-1][1] == n:
            yield "it does not renew at the other server"
    return script


def lost(s, c):
    s.fails(None, (410, "lease_lost"))
    g = c.made[-1][1]
    while not g["over"]:
        time.sleep(0.02)
    s.fails(None, None)
    if not c.resumes() or c.made[-1][1] is g:
        yield "it makes no ids of another lease"
    taken = next(iter([other["at"] for other in s.grants.values() if other["at"] > g["over"]]), g["over"] + HOUR)
    if taken - g["over"] > 0.6:
        yield "it takes another lease after %.1f s" % (taken - g["over"])


def lost_first(s, c):
    while not s.requests:
        c.wait(0.1)
    c.wait(6)
    s.fails(None, None)
    if not 2 <= len(s.grants) <= 8:
        yield "it takes %d leases in 6 s, each of which is lost at once" % len(s.grants)
    if not c.resumes():
        yield "it does not recover"


lost_first.setup = lambda s: s.fails(None, (410, "lease_lost"))


def lost_for_good(s, c):
    s.fails((503, "pool_full"), (410, "lease_lost"))
    c.wait(1)
    if c.wait(1):
        yield "it does not stop when its lease is lost"
    s.fails(None, None)
    if not c.resumes():
        yield "it does not recover"


def clock(seconds, leases):
    """One answer has another clock."""
    def script(s, c):
        s.fails(None, itertools.cycle([lambda a: (dict(a, clock=str(int(a["clock"]) + (s.layout.ticks(seconds) << s.layout.bits))), True)] + [None] * 1000))
        c.wait(2)
        if not c.resumes():
            yield "it does not recover"
        if len(s.grants) != leases:
            yield "it has %d leases, and should have %d" % (len(s.grants), leases)
    return script


def behind(s, c):
    """The clock of each answer to a renewal is 8 seconds behind. The client's clock goes slowly, and never back."""
    s.fails(None, lambda a: (dict(a, clock=str(int(a["clock"]) - (s.layout.ticks(8) << s.layout.bits))), True))
    before = len(c.made)
    if c.wait(4) == 0:
        yield "its clock stands"
    positions = [p for _, _, p in c.made[before:]]
    if any(b < a for a, b in zip(positions, positions[1:])):
        yield "its clock goes back"
    if not 0.2 < (positions[-1] - positions[0] >> s.layout.bits) / s.layout.ticks(c.made[-1][0] - c.made[before][0]) < 0.8:
        yield "its clock goes on as before while that of the server is behind"
    if len(s.grants) > 1:
        yield "it takes another lease"


def slow(s, c):
    """The clock of the server goes at nine tenths of this machine's speed."""
    began = time.monotonic()
    s.fails(None, lambda a: (dict(a, clock=str(int(a["clock"]) - (s.layout.ticks((time.monotonic() - began) / 10) << s.layout.bits))), True))
    c.wait(9)
    if (c.made[-1][2] >> s.layout.bits) > s.tick() - s.layout.ticks((c.made[-1][0] - began) / 10 - 0.5):
        yield "its clock does not follow that of the server"
    if len(s.grants) > 1:
        yield "it takes another lease"


def jumped(s, c):
    s.jump = 5.0
    c.wait(2)
    if s.tick() - (c.made[-1][2] >> s.layout.bits) > s.layout.ticks(1.5):
        yield "its clock is %d ticks behind that of the server" % (s.tick() - (c.made[-1][2] >> s.layout.bits))
    if len(s.grants) > 1:
        yield "it takes another lease"


def decoys(s, c):
    s.fails(None, lambda a: (decoyed(a), True))
    c.wait(2)
    s.fails((503, "store_unavailable"), (503, "store_unavailable"))
    c.wait(4)
    s.fails(lambda a: (decoyed(a), True), None)
    if not c.resumes():
        yield "it does not recover"


decoys.setup = lambda s: s.fails(lambda a: (decoyed(a), True), lambda a: (decoyed(a), True))


def forked(s, c):
    c.say("fork")
    c.wait(3)
    if len({g["worker"] for _, g, _ in c.made if g}) < 2:
        yield "its fork makes no ids of its own lease"


def child(s, c):
    for _ in range(4):
        c.say("child")
        c.wait(0.7)
    if len(s.grants) < 3:
        yield "its children take %d leases" % (len(s.grants) - 1)
    first = [t for t, _, _, g in s.requests if g is c.made[0][1]]
    if (first[-1] - first[0]) / len(first) < LOOK * 0.7 or c.made[0][1]["over"]:
        yield "its children use the parent's lease"


def blocked(s, c):
    """The lease is lost while the program computes."""
    g = c.made[-1][1]
    c.say("block")
    c.wait(1)
    s.fails(None, (410, "lease_lost"))
    yield from unused(s, c, g, time.monotonic())


def unused(s, c, g, since):
    """No id of g is made any more, and the client goes on with another lease."""
    until = time.monotonic() + 10
    while not g["over"] and time.monotonic() < until:
        c.wait(0.02)
    s.fails(None, None)
    if not c.resumes():
        yield "it does not recover"
    if any(other is g for t, other, _ in c.made if t > since):
        yield "it uses its lease after a time in which it did not renew it"


def stopped(s, c):
    """The lease is lost while the process is stopped, and the first requests after that fail."""
    g = c.made[-1][1]
    c.process.send_signal(signal.SIGSTOP)
    c.wait(0.5)  # what it has made is read
    s.fails(None, (503, "store_unavailable"))
    since = time.monotonic()
    c.wait(6.5)
    c.process.send_signal(signal.SIGCONT)
    c.wait(2.5)
    s.fails(None, (410, "lease_lost"))
    yield from unused(s, c, g, since)


def stopped_again(s, c):
    """It is stopped twice, each time as it asks, so that the requests fail."""
    g = c.made[-1][1]
    s.fails(None, "silent")
    since = None
    for seconds in (3.0, 5.0):
        asked = len(s.renewals())
        while len(s.renewals()) == asked:
            c.wait(0.01)
        since = since or time.monotonic() + 7
        c.process.send_signal(signal.SIGSTOP)
        c.wait(seconds)
        c.process.send_signal(signal.SIGCONT)
    c.wait(2)
    s.fails(None, (410, "lease_lost"))
    yield from unused(s, c, g, since)


def handler(number, times, pause):
    def script(s, c):
        c.say("busy")
        for _ in range(times):
            c.process.send_signal(number)
            time.sleep(pause)
        if c.wait(1) == 0:
            yield "it does not go on"
    script.forks = True
    return script


def decoyed(a):
    """The answer with fields in other places, which are none."""
    inner = {name: "5" if name == "first" else str(2**62 + 2**61) if isinstance(value, str) else 1 for name, value in a.items()}
    text = json.dumps(inner)
    return {"peer": inner, "text": text, "list": [inner, text], **a, "later": {"x": inner}, "n": 1.5e300, "none": None, "t\"{": "}\\"}


def without(name):
    return lambda a: ({k: v for k, v in a.items() if k != name}, False)


def other(name, value):
    return lambda a: (dict(a, **{name: value(a[name]) if callable(value) else value}), False)


def bad(name):
    """Answers in which a field is not the text of a number below 2^63."""
    far = 2**62 + 2**61
    return [without(name)] + [other(name, v) for v in (
        far, float(far), 1.5, str(far) + ".0", "1e18", str(2**63), str(2**64 + far), "9" * 40, "-5", "+%d" % far, " %d" % far, "%d " % far, "%d\n" % far, "4_611_686_018_427_387_904",
        "٤٦١١٦٨٦٠١٨٤٢٧٣٨٧٩٠٤", "0x7000000000000000", "", None, True, [], {"end": str(far)})]


OTHERS = [without("once")] + [other("once", v) for v in (lambda once: "0" + once[1:] if once[0] != "0" else "1" + once[1:], "", None, 1, lambda once: [once])]
FAILURES = [(400, "bad_lease"), (401, "unauthorized"), (403, "forbidden"), (404, "unknown_pool"), (405, "bad_method"), (409, "conflict"), (410, "gone"), (418, "lease_lost"),
            (429, "too_many_leases"), (500, "internal"), (502, "lease_lost"), (503, "pool_full"), "garbage", "nested", "redirect", "closed"]
RENEWALS = FAILURES + bad("end") + bad("clock")[:12] + [without("lease"), other("lease", "L0"), other("lease", None), other("lease", str.lower)] + OTHERS
GRANTS = FAILURES + [(410, "lease_lost")] + [bad(name)[i] for i, name in enumerate(["end", "clock", "first", "base", "unit_ns"] * 3)] + [
    change for name in ("sequence_bits", "time_shift", "sequence_shift", "look_ms") for change in (without(name), other(name, 12.5), other(name, "x"), other(name, -1))] + [
    other("unit_ns", "0"), other("sequence_bits", 64), without("lease"), other("lease", ""), other("lease", 5)] + OTHERS

DOWN = (503, "store_unavailable")
CHECKS = [("a server that is silent from the start", {"servers": 2}, failover(45, "silent"))] + [(name, {"layout": layout}, usual) for name, layout in LAYOUTS] + [
    ("the store is away", {}, outage(DOWN)), ("servers are silent", {}, outage("silent")), ("and answer before the end", {"window": 40.0, "first": 40.0}, silence), ("an unknown pool", {}, outage((404, "unknown_pool"))), ("an end within a second", {"layout": SECONDS, "window": 3.0}, outage(DOWN)),
    ("renewals that fail", {"servers": 8, "window": 20.0, "first": 20.0}, survived(RENEWALS)), ("and the lease ends", {"servers": 8}, outage(*RENEWALS)),
    ("grants that fail", {"servers": 8}, refused), ("another server grants", {"servers": len(FAILURES) + 2}, failover(10, *FAILURES, (410, "lease_lost"))),
    ("a server that accepts no connection", {}, failover(20, connects=False))] + [
    ("one of two servers: " + mode, {"servers": 2, "window": 7.0, "first": 7.0}, away(mode)) for mode in ("silent", "trickled answer", "trickled header", "closed")] + [
    ("the lease is lost", {"window": 10.0, "first": 10.0}, lost), ("each lease is lost", {}, lost_first), ("no lease after one that is lost", {"window": 20.0, "first": 20.0}, lost_for_good),
    ("a clock an hour ahead, once", {"window": 20.0}, clock(HOUR, 2)), ("a clock an hour behind, once", {"window": 20.0}, clock(-HOUR, 2)),
    ("clocks 8 seconds behind", {"window": 20.0}, behind), ("clocks 9.5 seconds behind", {"window": 20.0}, clock(-9.5, 2)), ("a slow clock", {"window": 20.0}, slow), ("the server's clock jumps", {"window": 30.0, "first": 30.0}, jumped),
    ("answers after 1.5 seconds", {"window": 20.0, "first": 20.0}, survived([1.5])), ("fields in other places", {}, decoys),
    ("the process is stopped", {"window": 30.0, "first": 30.0}, stopped), ("the process is stopped twice", {"window": 30.0, "first": 30.0}, stopped_again)]
FORK = [("a fork", {"window": 10.0}, forked), ("a program that computes", {"window": 30.0, "first": 30.0}, blocked), ("children that exit", {"window": 10.0}, child)]
FAST = Layout(2**34, 0.001, 20, 7)  # so that it does not wait for ticks
SIGNALS = [("forks in a signal handler", {"layout": FAST, "window": 20.0, "first": 20.0}, handler(signal.SIGUSR1, 100, 0.05)),
           ("calls in a signal handler", {"layout": FAST, "window": 20.0, "first": 20.0}, handler(signal.SIGUSR2, 1500, 0.002))]

if __name__ == "__main__":
    command, checks = sys.argv[1:], CHECKS
    while command[:1] and command[0].startswith("--"):
        option, *command = command
        if option == "--only":
            checks = [check for check in checks if command[0] in check[0]]
            command = command[1:]
        else:
            checks = checks + {"--fork": FORK, "--signals": SIGNALS}[option]
    if not command:
        sys.exit(__doc__)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda check: run(command, check), checks))
    for check, (wrong, again) in zip(checks, results):
        if wrong and again:
            wrong, _ = run(command, check)
        failed += bool(wrong)
        print("%-40s %s" % (check[0], "; ".join(wrong) or "ok"), flush=True)
    sys.exit(failed > 0)
