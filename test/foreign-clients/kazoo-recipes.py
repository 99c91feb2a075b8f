"""kazoo's recipes, unmodified, on the server given as argument. One line per check: ok or FAILED, then what."""
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

SERVERS = sys.argv[1]
CLIENTS = 3
ROUNDS = 15
WAIT_S = 20
failed = False


def check(body):
    global failed
    clients = []
    try:
        for _ in range(CLIENTS):
            client = KazooClient(hosts=SERVERS, timeout=10)
            clients.append(client)
            client.start(timeout=10)
        body(clients)
        print("ok\t" + body.__doc__, flush=True)
    except BaseException as error:
        failed = True
        print("FAILED\t%s: %r" % (body.__doc__, error), flush=True)
        traceback.print_exc()
    finally:
        for client in clients:
            client.stop()
            client.close()


def all_at_once(clients, body):
    errors = []

    def guarded(client):
        try:
            body(client)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive(), "blocked"
    if errors:
        raise errors[0]


def until(condition, what):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, what + " did not come true"
        time.sleep(0.01)


class Crowd:
    """How many are inside at once, now and at most."""

    def __init__(self):
        self.guard = threading.Lock()
        self.inside = 0
        self.most = 0

    def __enter__(self):
        with self.guard:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_):
        with self.guard:
            self.inside -= 1


def lock(clients):
    """lock excludes"""
    crowd = Crowd()

    def contend(client):
        for _ in range(ROUNDS):
            with client.Lock("/kazoo/lock", "contender"), crowd:
                time.sleep(0.001)

    all_at_once(clients, contend)
    assert crowd.most == 1, crowd.most
    assert clients[0].get_children("/kazoo/lock") == []


def lock_timeout(clients):
    """lock gives up in time and lists its contenders"""
    held = clients[0].Lock("/kazoo/timeout", "holder")
    assert held.acquire()
    waiting = clients[1].Lock("/kazoo/timeout", "waiter")
    try:
        waiting.acquire(timeout=0.2)
        raise AssertionError("acquired what is held")
    except LockTimeout:
        pass
    assert held.contenders() == ["holder"], held.contenders()
    held.release()


def read_write(clients):
    """read locks are shared, write locks are not"""
    path = "/kazoo/read-write"
    together = threading.Barrier(2)

    def read(client):
        with client.ReadLock(path):
            together.wait(WAIT_S)
            assert not client.WriteLock(path).acquire(blocking=False)
            together.wait(WAIT_S)

    all_at_once(clients[:2], read)
    with clients[2].WriteLock(path):
        assert not clients[0].ReadLock(path).acquire(blocking=False)


def semaphore(clients):
    """semaphore admits as many as it has leases"""
    crowd = Crowd()

    def contend(client):
        for _ in range(ROUNDS):
            with client.Semaphore("/kazoo/semaphore", max_leases=2), crowd:
                # Until the second is in beside the first, however long that takes it; then for a moment.
                until = time.monotonic() + 10
                while crowd.most < 2 and time.monotonic() < until:
                    time.sleep(0.005)
                time.sleep(0.005)

    all_at_once(clients, contend)
    assert crowd.most == 2, crowd.most


def election(clients):
    """election has one leader at a time, and each in turn"""
    crowd = Crowd()
    led = []

    def lead(client):
        with crowd:
            led.append(client)
            time.sleep(0.02)

    all_at_once(clients, lambda client: client.Election("/kazoo/election").run(lead, client))
    assert crowd.most == 1 and len(led) == CLIENTS, (crowd.most, len(led))


def watchers(clients):
    """data and children watchers follow every change"""
    writer, reader = clients[:2]
    writer.ensure_path("/kazoo/watched")
    values, names = [], []
    reader.DataWatch("/kazoo/watched", lambda data, stat: values.append(data))
    reader.ChildrenWatch("/kazoo/watched", lambda children: names.append(sorted(children)))
    for number in range(5):
        writer.set("/kazoo/watched", b"%d" % number)
        until(lambda: values[-1] == b"%d" % number, "value %d" % number)
        writer.create("/kazoo/watched/%d" % number)
        until(lambda: len(names[-1]) == number + 1, "child %d" % number)
    writer.delete("/kazoo/watched", recursive=True)
    until(lambda: values[-1] is None, "the delete")


def session_end(clients):
    """ephemeral nodes go with their session"""
    clients[0].create("/kazoo/ephemeral", ephemeral=True, makepath=True)
    gone = threading.Event()
    assert clients[1].exists("/kazoo/ephemeral", watch=lambda event: gone.set())
    clients[0].stop()
    assert gone.wait(WAIT_S)


for each in [lock, lock_timeout, read_write, semaphore, election, watchers, session_end]:
    check(each)
sys.exit(1 if failed else 0)
