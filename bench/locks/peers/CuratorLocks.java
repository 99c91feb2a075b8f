import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's locks, told over standard input what to measure as every peer is: see bench/locks/orders.ts. */
public final class CuratorLocks {
  private static final int SEMAPHORE_PERMITS = 4;
  private static final int FIVE = 5;
  private static final long STACK_BYTES = 256 * 1024;

  private static BufferedReader in;
  private static String servers;

  /** What lets go of a lock. */
  private interface LetGo {
    void run() throws Exception;
  }

  /** What takes a lock in a cycle. */
  private interface TakeLock {
    LetGo run(int cycle) throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    servers = arguments[0];
    in = new BufferedReader(new InputStreamReader(System.in));
    List<CuratorFramework> sessions = new ArrayList<>();
    System.out.println("\"ready\"");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Map<String, String> order = new HashMap<>();
      for (String word : line.trim().split(" ")) {
        String[] parts = word.split("=");
        order.put(parts[0], parts[1]);
      }
      if (order.get("order").equals("queue")) {
        serveQueue(order);
        continue;
      }
      while (sessions.size() < count(order, "sessions")) sessions.add(open());
      System.out.println(order.get("order").equals("hand-overs") ? handOvers(sessions, order) : cycles(sessions, order));
    }
    System.exit(0);
  }

  private static int count(Map<String, String> order, String word) {
    return Integer.parseInt(order.get(word));
  }

  private static CuratorFramework open() throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(servers, 30_000, 15_000, new ExponentialBackoffRetry(100, 5));
    client.start();
    client.blockUntilConnected();
    return client;
  }

  private static TakeLock lock(CuratorFramework client, String kind, String name, int task) {
    String path = "/curator/" + name;
    switch (kind) {
      case "read-write":
        InterProcessReadWriteLock pages = new InterProcessReadWriteLock(client, path + "-pages");
        return cycle -> taken((task + cycle) % 10 == 0 ? pages.writeLock() : pages.readLock());
      case "semaphore":
        InterProcessSemaphoreV2 permits = new InterProcessSemaphoreV2(client, path + "-permits", SEMAPHORE_PERMITS);
        return cycle -> {
          Lease lease = permits.acquire();
          return () -> permits.returnLease(lease);
        };
      case "five-locks":
        List<String> paths = new ArrayList<>();
        for (int index = 0; index < FIVE; index++) paths.add(path + "-" + index);
        InterProcessLock five = new InterProcessMultiLock(client, paths);
        return cycle -> taken(five);
      default:
        InterProcessLock mutex = new InterProcessMutex(client, path);
        return cycle -> taken(mutex);
    }
  }

  private static LetGo taken(InterProcessLock lock) throws Exception {
    lock.acquire();
    return lock::release;
  }

  private static String cycles(List<CuratorFramework> sessions, Map<String, String> order) throws Exception {
    int tasks = count(order, "tasks");
    int sessionCount = count(order, "sessions");
    CountDownLatch start = new CountDownLatch(1);
    CountDownLatch done = new CountDownLatch(tasks);
    AtomicLong endsAtNs = new AtomicLong();
    List<Long> latenciesNs = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      int index = task;
      TakeLock lock = lock(
          sessions.get(task % sessionCount),
          order.get("lock"),
          order.get("name") + "-" + task % count(order, "locks"),
          task / sessionCount);
      thread(() -> {
        List<Long> own = new ArrayList<>();
        start.await();
        for (int cycle = index; own.isEmpty() || System.nanoTime() < endsAtNs.get(); cycle++) { // Once at least, as everybody.
          long askedAtNs = System.nanoTime();
          LetGo letGo = lock.run(cycle);
          own.add(System.nanoTime() - askedAtNs);
          letGo.run();
        }
        synchronized (latenciesNs) {
          latenciesNs.addAll(own);
        }
        done.countDown();
      });
    }
    long begunNs = System.nanoTime();
    endsAtNs.set(begunNs + TimeUnit.MILLISECONDS.toNanos(count(order, "sliceMs")));
    start.countDown();
    done.await();
    return answer(latenciesNs, System.nanoTime() - begunNs);
  }

  /** A thread that ends the process if it fails: a peer that measured half of it must not answer. */
  private static void thread(LetGo body) {
    new Thread(null, () -> {
      try {
        body.run();
      } catch (Exception error) {
        error.printStackTrace();
        System.exit(1);
      }
    }, "task", STACK_BYTES).start();
  }

  /** A mutex of Curator belongs to a thread, so each side has one thread of its own for all samples. */
  private static String handOvers(List<CuratorFramework> sessions, Map<String, String> order) throws Exception {
    int samples = count(order, "samples");
    long settleMs = count(order, "settleMs");
    List<Long> latenciesNs = new ArrayList<>();
    AtomicLong letGoAtNs = new AtomicLong();
    CountDownLatch done = new CountDownLatch(2);
    CountDownLatch firstHeld = new CountDownLatch(1);
    long begunNs = System.nanoTime();
    for (int side = 0; side < 2; side++) {
      int self = side;
      InterProcessMutex mutex = new InterProcessMutex(sessions.get(side), "/curator/" + order.get("name") + "-0");
      thread(() -> {
        if (self == 1) firstHeld.await();
        for (int sample = self; sample <= samples; sample += 2) {
          mutex.acquire();
          long heldAtNs = System.nanoTime();
          if (sample > 0) latenciesNs.add(heldAtNs - letGoAtNs.get());
          if (sample == 0) firstHeld.countDown();
          if (sample < samples) Thread.sleep(settleMs); // The other one waits for its turn by then.
          letGoAtNs.set(System.nanoTime());
          mutex.release();
        }
        done.countDown();
      });
    }
    done.await();
    return answer(latenciesNs, System.nanoTime() - begunNs);
  }

  private static void serveQueue(Map<String, String> order) throws Exception {
    List<CuratorFramework> sessions = new ArrayList<>();
    while (sessions.size() < count(order, "sessions")) sessions.add(open());
    String path = "/curator/" + order.get("name") + "-0";
    int waiters = count(order, "waiters");
    int handOvers = count(order, "handOvers");
    AtomicInteger passed = new AtomicInteger();
    AtomicLong endedAtNs = new AtomicLong();
    CountDownLatch ended = new CountDownLatch(1);
    InterProcessMutex holder = new InterProcessMutex(sessions.get(0), path);
    holder.acquire();
    for (int waiter = 0; waiter < waiters; waiter++) {
      InterProcessMutex mutex = new InterProcessMutex(sessions.get(waiter % sessions.size()), path);
      new Thread(null, () -> {
        try {
          mutex.acquire();
          if (passed.incrementAndGet() == handOvers) {
            endedAtNs.set(System.nanoTime());
            ended.countDown();
          } else {
            mutex.release();
          }
        } catch (Exception closed) {
          // Its session is closed below, while it waits.
        }
      }, "waiter", STACK_BYTES).start();
    }
    System.out.println("{\"queued\":" + waiters + "}");
    in.readLine();
    long letGoAtNs = System.nanoTime();
    holder.release();
    ended.await();
    System.out.println(
        "{\"cycles\":" + handOvers + ",\"elapsedMs\":" + (endedAtNs.get() - letGoAtNs) / 1e6 + ",\"acquireUs\":[]}");
    in.readLine();
    for (CuratorFramework session : sessions) session.close();
    System.out.println("{\"cycles\":0,\"elapsedMs\":0,\"acquireUs\":[]}");
  }

  private static String answer(List<Long> latenciesNs, long elapsedNs) {
    StringBuilder text = new StringBuilder();
    text.append("{\"cycles\":").append(latenciesNs.size());
    text.append(",\"elapsedMs\":").append(elapsedNs / 1e6);
    text.append(",\"acquireUs\":[");
    for (int index = 0; index < latenciesNs.size(); index++) {
      text.append(index == 0 ? "" : ",").append(latenciesNs.get(index) / 1000);
    }
    return text.append("]}").toString();
  }
}
