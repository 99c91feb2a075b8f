"""Takes kazoo's locks when told to. A line asks: number, client, verb, arguments. A line answers: the number, ok or
error, what. A client is one session and one thread."""
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class CuratorNamedLock(Lock):
    """kazoo's lock with names that Curator, Go and Holdfast put in their order."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


KINDS = {"mutex": CuratorNamedLock, "default-lock": Lock}
printing = threading.Lock()


class Peer:
    def __init__(self):
        self.held = {}
        self.asked = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            number, verb, *arguments = self.asked.get()
            try:
                answer = "ok %s" % getattr(self, verb.replace("-", "_"))(*arguments)
            except BaseException as error:
                answer = "error %r" % error
            with printing:
                print(number, answer, flush=True)

    def clock(self):
        return time.monotonic_ns()

    def connect(self, servers, session_timeout_ms):
        self.client = KazooClient(hosts=servers, timeout=int(session_timeout_ms) / 1000)
        self.client.start()
        return self.client.client_id[0]

    def acquire(self, kind, path, _argument=""):
        lock = self.held[kind] = KINDS[kind](self.client, path)
        lock.acquire()
        entered_ns = time.monotonic_ns()
        return "%d %d %s" % (entered_ns, self.transaction(lock), lock.node)

    def release(self, kind):
        left_ns = time.monotonic_ns()
        self.held.pop(kind).release()
        return left_ns

    def cycle(self, kind, path, _argument, rounds, counter):
        """Adds one to the counter while it holds; fails if somebody else wrote meanwhile."""
        holds = []
        for _ in range(int(rounds)):
            lock = KINDS[kind](self.client, path)
            lock.acquire()
            entered_ns = time.monotonic_ns()
            data, stat = self.client.get(counter)
            transaction = self.transaction(lock)
            self.client.set(counter, b"%d" % (int(data) + 1), stat.version)
            left_ns = time.monotonic_ns()
            lock.release()
            holds.append("%d:%d:%d" % (entered_ns, left_ns, transaction))
        return " ".join(holds)

    def close(self):
        self.client.stop()
        return ""

    def transaction(self, lock):
        return self.client.exists(lock.path + "/" + lock.node).czxid


peers = {}
for line in sys.stdin:
    number, name, *words = line.split()
    peers.setdefault(name, Peer()).asked.put([number, *words])
