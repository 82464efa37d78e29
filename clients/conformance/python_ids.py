"""Prints ids, for check_client.py: python3 check_client.py --fork --signals python3 python_ids.py"""
import os, queue, signal, sys, threading, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import firn_lease

ids = firn_lease.Lease(sys.argv[1].split(","), sys.argv[2], (sys.argv[3:] or [None])[0], timeout=0.5)
said = queue.SimpleQueue()
ended, end = os.pipe()  # a child cannot read the input too
child = False


def listen():
    for line in sys.stdin:
        said.put(line.strip())
    os._exit(0)


def until_parent_ends():
    os.read(ended, 1)
    os._exit(0)


def show(make, *n):
    try:
        made = make(*n)
    except firn_lease.LeaseError:
        return  # nothing instead of an id
    os.write(1, "".join("%s%d\n" % ("child " * child, i) for i in (made if n else [made])).encode())  # in one piece


def fork(_, frame):
    global child
    if frame.f_code.co_filename != firn_lease.__file__ or child:
        return  # it has returned: the program itself would copy its id
    if os.fork() == 0:
        child = True


signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, fork)
signal.signal(signal.SIGUSR2, lambda *_: show(ids.next))
threading.Thread(target=listen, daemon=True).start()
pause = 0.5
while True:
    line = "" if said.empty() else said.get()
    if line == "fork" and os.fork() == 0:
        os.close(end)
        threading.Thread(target=until_parent_ends, daemon=True).start()
    if line == "block":
        time.sleep(7.5)
    if line == "busy":
        pause = 0.02
    if line == "child" and os.fork() == 0:
        for _ in range(10):
            show(ids.next)
        ids.close()
        sys.exit()
    for _ in range(500):
        show(ids.next)
        if child:
            os._exit(0)
    for _ in range(10):
        show(ids.take, 50)
        if child:
            os._exit(0)
    time.sleep(pause)
