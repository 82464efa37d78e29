"""Prints ids, each once it is made; forks all the time, and parent and child go on. With "speed": prints how many a second."""
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import firn_lease

ids = firn_lease.Lease(sys.argv[2].split(","), pool=sys.argv[3], timeout=1.0)
if sys.argv[4:]:
    until, n = time.monotonic() + 3, 0
    while time.monotonic() < until:
        for _ in range(1000):
            ids.next()
        n += 1000
    print(n / 3)
    ids.close()
    sys.exit()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
sys.stdout.reconfigure(line_buffering=False)


def some():
    try:
        made = [ids.next()] + ids.take(20)
    except firn_lease.LeaseError as e:
        print(e, file=sys.stderr, flush=True)
        return
    os.write(1, "".join("%d\n" % i for i in made).encode())  # less than 4,096 bytes: in one piece


child = None
try:
    for n in range(1 << 60):
        some()
        time.sleep(0.01)
        if n % 600 == 100 and child is None:
            child = os.fork()
            if child == 0:
                for _ in range(160):
                    some()
                    time.sleep(0.01)
                ids.close()
                os._exit(0)
        if child and os.waitpid(child, os.WNOHANG)[0]:
            child = None
finally:
    ids.close()
