"""kazoo's locks, told over standard input what to measure as every peer is: see bench/locks/orders.ts."""
import json
import sys
import threading
import time

from kazoo.client import KazooClient

SEMAPHORE_PERMITS = 4
FIVE = 5
STACK_BYTES = 256 * 1024

threading.stack_size(STACK_BYTES)


def main(servers):
    sessions = []
    say("ready")
    for line in sys.stdin:
        order = dict(word.split("=") for word in line.split())
        if order["order"] == "queue":
            serve_queue(servers, order)
            continue
        while len(sessions) < int(order["sessions"]):
            sessions.append(open_session(servers))
        say(hand_overs(sessions, order) if order["order"] == "hand-overs" else cycles(sessions, order))


def say(answer):
    print(json.dumps(answer), flush=True)


def open_session(servers):
    client = KazooClient(hosts=servers, timeout=30)
    client.start(timeout=30)
    return client


class OneByOne:
    """It has no lock of several: in one order for all, let go of in the reverse one."""

    def __init__(self, locks):
        self.locks = locks

    def acquire(self):
        for lock in self.locks:
            lock.acquire()

    def release(self):
        for lock in reversed(self.locks):
            lock.release()


def lock_of(client, kind, name):
    path = "/kazoo/" + name
    if kind == "semaphore":
        return client.Semaphore(path + "-permits", max_leases=SEMAPHORE_PERMITS)
    if kind == "five-locks":
        return OneByOne([client.Lock("%s-%d" % (path, index)) for index in range(FIVE)])
    return client.Lock(path)


def cycles(sessions, order):
    latencies = []
    start = threading.Event()
    ends = [0.0]

    def task(index):
        client = sessions[index % int(order["sessions"])]
        lock = lock_of(client, order["lock"], "%s-%d" % (order["name"], index % int(order["locks"])))
        own = []
        start.wait()
        while not own or time.perf_counter() < ends[0]:  # Once at least, as everybody.
            asked_at = time.perf_counter()
            lock.acquire()
            own.append(time.perf_counter() - asked_at)
            lock.release()
        latencies.extend(own)

    threads = [threading.Thread(target=task, args=(index,)) for index in range(int(order["tasks"]))]
    for thread in threads:
        thread.start()
    started_at = time.perf_counter()
    ends[0] = started_at + int(order["sliceMs"]) / 1000
    start.set()
    for thread in threads:
        thread.join()
    return answer(latencies, time.perf_counter() - started_at)


def hand_overs(sessions, order):
    path = "/kazoo/%s-0" % order["name"]
    locks = [client.Lock(path) for client in sessions[:2]]
    latencies = []
    held_at = [0.0]
    started_at = time.perf_counter()
    locks[0].acquire()
    for sample in range(1, int(order["samples"]) + 1):
        taker, holder = locks[sample % 2], locks[(sample + 1) % 2]

        def take():
            taker.acquire()
            held_at[0] = time.perf_counter()

        thread = threading.Thread(target=take)
        thread.start()
        time.sleep(int(order["settleMs"]) / 1000)
        let_go_at = time.perf_counter()
        holder.release()
        thread.join()
        latencies.append(held_at[0] - let_go_at)
    locks[int(order["samples"]) % 2].release()
    return answer(latencies, time.perf_counter() - started_at)


def serve_queue(servers, order):
    sessions = [open_session(servers) for _ in range(int(order["sessions"]))]
    path = "/kazoo/%s-0" % order["name"]
    hand_over_count = int(order["handOvers"])
    passed = [0]
    ended = threading.Event()
    ended_at = [0.0]
    holder = sessions[0].Lock(path)
    holder.acquire()

    def wait(client):
        lock = client.Lock(path)
        try:
            lock.acquire()
            passed[0] += 1  # Only a holder comes here.
            if passed[0] == hand_over_count:
                ended_at[0] = time.perf_counter()
                ended.set()
            else:
                lock.release()
        except Exception:  # Its session is closed below, while it waits.
            pass

    for index in range(int(order["waiters"])):
        threading.Thread(target=wait, args=(sessions[index % len(sessions)],), daemon=True).start()
    say({"queued": int(order["waiters"])})
    sys.stdin.readline()
    let_go_at = time.perf_counter()
    holder.release()
    ended.wait()
    say({"cycles": hand_over_count, "elapsedMs": (ended_at[0] - let_go_at) * 1000, "acquireUs": []})
    sys.stdin.readline()
    for client in sessions:
        client.stop()
    say({"cycles": 0, "elapsedMs": 0, "acquireUs": []})


def answer(latencies, elapsed):
    return {
        "cycles": len(latencies),
        "elapsedMs": elapsed * 1000,
        "acquireUs": [round(latency * 1e6) for latency in latencies],
    }


main(sys.argv[1])
