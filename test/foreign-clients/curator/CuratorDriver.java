import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.data.Stat;

/** Curator's recipes, unmodified, on the server given as argument. One line per check: ok or FAILED, then what. */
public class CuratorDriver {
  private static final int CLIENTS = 3;
  private static final int ROUNDS = 15;
  private static final long WAIT_SECONDS = 20;

  private static String servers;
  private static final ExecutorService threads = Executors.newCachedThreadPool();
  private static boolean failed = false;

  private interface Check {
    void run(List<CuratorFramework> clients) throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    servers = arguments[0];
    check("mutex excludes", CuratorDriver::mutex);
    check("mutex is re-entrant and leaves no node behind", CuratorDriver::reentrantMutex);
    check("mutex gives up in time", CuratorDriver::mutexTimeout);
    check("read-write lock excludes writers, admits readers together", CuratorDriver::readWriteLock);
    check("semaphore admits as many as it has leases", CuratorDriver::semaphore);
    check("leader latch has one leader, and the next when that one leaves", CuratorDriver::leaderLatch);
    check("cache follows creates, changes and deletes", CuratorDriver::cache);
    check("transaction is all or nothing", CuratorDriver::transaction);
    check("containers are made as parents, and again once they are empty", CuratorDriver::containers);
    threads.shutdownNow();
    System.exit(failed ? 1 : 0);
  }

  private static void check(String name, Check body) {
    List<CuratorFramework> clients = new ArrayList<>();
    long startedAt = System.nanoTime();
    String outcome = "ok";
    String detail = "";
    try {
      for (int i = 0; i < CLIENTS; i++) {
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(servers, 10_000, 5_000, new RetryOneTime(100));
        client.start();
        clients.add(client);
        if (!client.blockUntilConnected(10, TimeUnit.SECONDS)) throw new AssertionError("no connection");
      }
      body.run(clients);
    } catch (Throwable error) {
      outcome = "FAILED";
      detail = ": " + error;
      failed = true;
    }
    for (CuratorFramework client : clients) client.close();
    System.out.printf("%s\t%s%s\t%d ms%n", outcome, name, detail, (System.nanoTime() - startedAt) / 1_000_000);
  }

  private static void expect(boolean condition, String what) {
    if (!condition) throw new AssertionError(what);
  }

  private static <T> void all(List<Callable<T>> tasks) throws Exception {
    List<Future<T>> running = new ArrayList<>();
    for (Callable<T> task : tasks) running.add(threads.submit(task));
    for (Future<T> each : running) each.get(WAIT_SECONDS, TimeUnit.SECONDS);
  }

  private static void until(Callable<Boolean> condition, String what) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    while (!condition.call()) {
      expect(System.nanoTime() < deadline, what + " did not come true");
      Thread.sleep(10);
    }
  }

  private static int childCount(CuratorFramework client, String path) throws Exception {
    Stat stat = client.checkExists().forPath(path);
    return stat == null ? 0 : stat.getNumChildren();
  }

  private static void mutex(List<CuratorFramework> clients) throws Exception {
    int[] unguarded = {0};
    AtomicInteger holders = new AtomicInteger();
    AtomicInteger violations = new AtomicInteger();
    List<Callable<Void>> tasks = new ArrayList<>();
    for (CuratorFramework client : clients) {
      tasks.add(
          () -> {
            InterProcessMutex mutex = new InterProcessMutex(client, "/curator/mutex");
            for (int round = 0; round < ROUNDS; round++) {
              expect(mutex.acquire(WAIT_SECONDS, TimeUnit.SECONDS), "not acquired");
              try {
                if (holders.incrementAndGet() != 1) violations.incrementAndGet();
                int before = unguarded[0];
                Thread.sleep(1);
                unguarded[0] = before + 1;
                holders.decrementAndGet();
              } finally {
                mutex.release();
              }
            }
            return null;
          });
    }
    all(tasks);
    expect(violations.get() == 0, violations.get() + " violations");
    expect(unguarded[0] == CLIENTS * ROUNDS, "counted " + unguarded[0]);
    expect(childCount(clients.get(0), "/curator/mutex") == 0, "nodes left behind");
  }

  private static void reentrantMutex(List<CuratorFramework> clients) throws Exception {
    InterProcessMutex mutex = new InterProcessMutex(clients.get(0), "/curator/reentrant");
    mutex.acquire();
    mutex.acquire();
    expect(mutex.getParticipantNodes().size() == 1, "one participant");
    mutex.release();
    expect(mutex.isAcquiredInThisProcess(), "still held");
    mutex.release();
    expect(childCount(clients.get(0), "/curator/reentrant") == 0, "nodes left behind");
  }

  private static void mutexTimeout(List<CuratorFramework> clients) throws Exception {
    InterProcessMutex holder = new InterProcessMutex(clients.get(0), "/curator/timeout");
    InterProcessMutex waiter = new InterProcessMutex(clients.get(1), "/curator/timeout");
    holder.acquire();
    boolean acquired = threads.submit(() -> waiter.acquire(200, TimeUnit.MILLISECONDS)).get();
    expect(!acquired, "acquired what is held");
    until(() -> childCount(clients.get(0), "/curator/timeout") == 1, "the waiter leaving");
    holder.release();
  }

  private static void readWriteLock(List<CuratorFramework> clients) throws Exception {
    String path = "/curator/read-write";
    CountDownLatch readersInside = new CountDownLatch(2);
    List<Callable<Void>> readers = new ArrayList<>();
    for (CuratorFramework client : clients.subList(0, 2)) {
      readers.add(
          () -> {
            InterProcessMutex lock = new InterProcessReadWriteLock(client, path).readLock();
            lock.acquire();
            readersInside.countDown();
            // Only if both hold at the same time do both come through here.
            expect(readersInside.await(WAIT_SECONDS, TimeUnit.SECONDS), "readers do not share");
            boolean writes =
                threads
                    .submit(
                        () ->
                            new InterProcessReadWriteLock(clients.get(2), path)
                                .writeLock()
                                .acquire(100, TimeUnit.MILLISECONDS))
                    .get();
            expect(!writes, "a writer came in among readers");
            lock.release();
            return null;
          });
    }
    all(readers);

    AtomicInteger writers = new AtomicInteger();
    AtomicInteger readersNow = new AtomicInteger();
    AtomicInteger violations = new AtomicInteger();
    List<Callable<Void>> mixed = new ArrayList<>();
    for (int i = 0; i < CLIENTS; i++) {
      InterProcessReadWriteLock lock = new InterProcessReadWriteLock(clients.get(i), path);
      boolean writes = i == 0;
      mixed.add(
          () -> {
            for (int round = 0; round < ROUNDS; round++) {
              InterProcessMutex side = writes ? lock.writeLock() : lock.readLock();
              side.acquire();
              int others = writes ? writers.incrementAndGet() - 1 + readersNow.get() : writers.get();
              if (!writes) readersNow.incrementAndGet();
              if (others != 0) violations.incrementAndGet();
              Thread.sleep(1);
              if (writes) writers.decrementAndGet();
              else readersNow.decrementAndGet();
              side.release();
            }
            return null;
          });
    }
    all(mixed);
    expect(violations.get() == 0, violations.get() + " violations");
  }

  private static void semaphore(List<CuratorFramework> clients) throws Exception {
    int leases = 2;
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    List<Callable<Void>> tasks = new ArrayList<>();
    for (CuratorFramework client : clients) {
      tasks.add(
          () -> {
            InterProcessSemaphoreV2 semaphore =
                new InterProcessSemaphoreV2(client, "/curator/semaphore", leases);
            for (int round = 0; round < ROUNDS; round++) {
              Lease lease = semaphore.acquire(WAIT_SECONDS, TimeUnit.SECONDS);
              expect(lease != null, "no lease");
              most.accumulateAndGet(inside.incrementAndGet(), Math::max);
              // Until all leases are out at once, however long that takes; then for a moment.
              long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
              while (most.get() < leases && System.nanoTime() < until) Thread.sleep(5);
              Thread.sleep(5);
              inside.decrementAndGet();
              semaphore.returnLease(lease);
            }
            return null;
          });
    }
    all(tasks);
    expect(most.get() == leases, "at most " + most.get() + " at once");
  }

  private static void leaderLatch(List<CuratorFramework> clients) throws Exception {
    List<LeaderLatch> latches = new ArrayList<>();
    for (int i = 0; i < CLIENTS; i++) {
      LeaderLatch latch = new LeaderLatch(clients.get(i), "/curator/leader", "candidate-" + i);
      latch.start();
      latches.add(latch);
      // In order of arrival, as candidates are numbered.
      int expected = i + 1;
      until(() -> latch.getParticipants().size() == expected, "participant " + expected);
    }
    for (int i = 0; i < CLIENTS; i++) {
      LeaderLatch next = latches.get(i);
      expect(next.await(WAIT_SECONDS, TimeUnit.SECONDS), "no leader");
      expect(latches.stream().filter(LeaderLatch::hasLeadership).count() == 1, "not one leader");
      expect(next.getLeader().getId().equals("candidate-" + i), "leader is not candidate-" + i);
      next.close();
    }
  }

  private static void cache(List<CuratorFramework> clients) throws Exception {
    CuratorFramework writer = clients.get(0);
    writer.create().creatingParentsIfNeeded().forPath("/curator/cache/early", bytes("1"));
    Map<String, String> seen = new ConcurrentHashMap<>();
    CuratorCache cache = CuratorCache.build(clients.get(1), "/curator/cache");
    CountDownLatch initialized = new CountDownLatch(1);
    cache
        .listenable()
        .addListener(
            CuratorCacheListener.builder()
                .forCreates(node -> seen.put(node.getPath(), text(node.getData())))
                .forChanges((before, node) -> seen.put(node.getPath(), text(node.getData())))
                .forDeletes(node -> seen.remove(node.getPath()))
                .forInitialized(initialized::countDown)
                .build());
    cache.start();
    expect(initialized.await(WAIT_SECONDS, TimeUnit.SECONDS), "not initialized");
    expect("1".equals(seen.get("/curator/cache/early")), "what was there is seen");
    writer.create().creatingParentsIfNeeded().forPath("/curator/cache/a/b/c", bytes("2"));
    until(() -> "2".equals(seen.get("/curator/cache/a/b/c")), "the create");
    writer.setData().forPath("/curator/cache/a/b/c", bytes("3"));
    until(() -> "3".equals(seen.get("/curator/cache/a/b/c")), "the change");
    writer.delete().deletingChildrenIfNeeded().forPath("/curator/cache/a");
    until(() -> seen.keySet().stream().noneMatch(path -> path.startsWith("/curator/cache/a")), "the delete");
    cache.close();
  }

  private static void transaction(List<CuratorFramework> clients) throws Exception {
    CuratorFramework client = clients.get(0);
    client
        .transaction()
        .forOperations(
            client.transactionOp().create().forPath("/transaction", bytes("1")),
            client.transactionOp().check().withVersion(0).forPath("/transaction"),
            client.transactionOp().setData().forPath("/transaction", bytes("2")));
    expect("2".equals(text(client.getData().forPath("/transaction"))), "not applied");
    try {
      client
          .transaction()
          .forOperations(
              client.transactionOp().delete().forPath("/transaction"),
              client.transactionOp().delete().forPath("/nothing-here"));
      throw new AssertionError("a transaction that cannot be was accepted");
    } catch (org.apache.zookeeper.KeeperException.NoNodeException expected) {
      expect(client.checkExists().forPath("/transaction") != null, "half of it was applied");
    }
  }

  private static void containers(List<CuratorFramework> clients) throws Exception {
    CuratorFramework client = clients.get(0);
    client.create().creatingParentContainersIfNeeded().forPath("/containers/of/mine", bytes(""));
    expect(client.checkExists().forPath("/containers/of").getEphemeralOwner() == 0, "a container has no owner");
    client.delete().forPath("/containers/of/mine");
    // The server may have removed the empty ones by now, or not: it must do in either case.
    client.create().creatingParentContainersIfNeeded().forPath("/containers/of/mine", bytes(""));
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String text(byte[] bytes) {
    return bytes == null ? "" : new String(bytes, StandardCharsets.UTF_8);
  }
}
