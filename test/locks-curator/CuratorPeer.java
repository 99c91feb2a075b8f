import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * Takes Curator's locks, unmodified, when told to. A line asks: number, client, verb, arguments. A line answers: the
 * number, ok or error, what. A client is one session and one thread, since Curator's locks belong to threads.
 */
public class CuratorPeer {
  /** More than it takes the next one to come in: those who may hold together do. */
  private static final int LOOKS = 12;
  private static final Map<String, CuratorPeer> clients = new ConcurrentHashMap<>();

  private final ExecutorService thread = Executors.newSingleThreadExecutor();
  private final Map<String, Held> held = new HashMap<>();
  private final Map<String, InterProcessReadWriteLock> readWriteLocks = new HashMap<>();
  private final CompletableFuture<Void> revoked = new CompletableFuture<>();
  private CuratorFramework curator;
  private LeaderLatch latch;

  private interface Held {
    void release() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      CuratorPeer client = clients.computeIfAbsent(words[1], name -> new CuratorPeer());
      client.thread.execute(() -> answer(words[0], client, Arrays.copyOfRange(words, 2, words.length)));
    }
    System.exit(0);
  }

  private static void answer(String number, CuratorPeer client, String[] words) {
    String answer;
    try {
      answer = "ok " + client.execute(words);
    } catch (Throwable error) {
      answer = "error " + error.toString().replace('\n', ' ');
    }
    synchronized (System.out) {
      System.out.println(number + " " + answer);
      System.out.flush();
    }
  }

  private Object execute(String[] words) throws Exception {
    switch (words[0]) {
      case "clock":
        return System.nanoTime();
      case "connect":
        return connect(words[1], Integer.parseInt(words[2]), words.length > 3 ? words[3] : null);
      case "acquire":
        return acquire(words[1], words[2], words.length > 3 ? words[3] : "");
      case "release":
        return release(words[1]);
      case "cycle":
        return cycle(words[1], words[2], words[3], Integer.parseInt(words[4]), words[5]);
      case "participants":
        return String.join(",", new InterProcessMutex(curator, words[1]).getParticipantNodes());
      case "revoke":
        Revoker.attemptRevoke(curator, words[1]);
        return "";
      case "await-revocation":
        revoked.get();
        return "";
      case "latch":
        latch = new LeaderLatch(curator, words[1], words[2]);
        latch.start();
        return "";
      case "await-leadership":
        latch.await();
        return System.nanoTime();
      case "candidates":
        return latch.getParticipants().stream().map(Participant::getId).collect(Collectors.joining(","));
      case "leader":
        return latch.getLeader().getId();
      case "leads":
        return latch.hasLeadership();
      case "resign":
        long leftNs = System.nanoTime();
        latch.close();
        return leftNs;
      case "close":
        curator.close();
        return "";
      default:
        throw new IllegalArgumentException("no such verb: " + words[0]);
    }
  }

  private long connect(String servers, int sessionTimeoutMs, String namespace) throws Exception {
    curator =
        CuratorFrameworkFactory.builder()
            .connectString(servers)
            .sessionTimeoutMs(sessionTimeoutMs)
            .connectionTimeoutMs(10_000)
            .retryPolicy(new RetryOneTime(100))
            .namespace(namespace)
            .build();
    curator.start();
    curator.blockUntilConnected();
    return sessionId();
  }

  private long sessionId() throws Exception {
    return curator.getZookeeperClient().getZooKeeper().getSessionId();
  }

  /** When it was granted, the transaction that made the node, and the node's name. */
  private String acquire(String kind, String path, String argument) throws Exception {
    held.put(kind, take(kind, path, argument));
    long enteredNs = System.nanoTime();
    return enteredNs + " " + ownNode(kind, path);
  }

  private long release(String kind) throws Exception {
    long leftNs = System.nanoTime();
    held.remove(kind).release();
    return leftNs;
  }

  private Held take(String kind, String path, String argument) throws Exception {
    switch (kind) {
      case "mutex":
        return lock(new InterProcessMutex(curator, path));
      case "revocable":
        InterProcessMutex revocable = new InterProcessMutex(curator, path);
        revocable.makeRevocable(lock -> revoked.complete(null));
        return lock(revocable);
      case "read":
        return lock(readWriteLock(path).readLock());
      case "write":
        return lock(readWriteLock(path).writeLock());
      case "semaphore":
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(curator, path, Integer.parseInt(argument));
        Lease lease = semaphore.acquire();
        return () -> semaphore.returnLease(lease);
      case "semaphore-mutex":
        return lock(new InterProcessSemaphoreMutex(curator, path));
      case "multi":
        return lock(new InterProcessMultiLock(curator, List.of(path, argument)));
      case "write-lock":
        WriteLock recipe =
            new WriteLock(curator.getZookeeperClient().getZooKeeper(), path, ZooDefs.Ids.OPEN_ACL_UNSAFE);
        if (!recipe.lock()) throw new IllegalStateException("the lock is not free");
        return recipe::unlock;
      default:
        throw new IllegalArgumentException("no such kind: " + kind);
    }
  }

  private static Held lock(InterProcessLock lock) throws Exception {
    lock.acquire();
    return lock::release;
  }

  private InterProcessReadWriteLock readWriteLock(String path) {
    return readWriteLocks.computeIfAbsent(path, each -> new InterProcessReadWriteLock(curator, each));
  }

  /** The node of this session that is the lock: its transaction and its name. */
  private String ownNode(String kind, String path) throws Exception {
    String folder = kind.startsWith("semaphore") ? path + "/leases" : path;
    String marker = kind.equals("read") ? "__READ__" : kind.equals("write") ? "__WRIT__" : "";
    for (String name : curator.getChildren().forPath(folder)) {
      if (!name.contains(marker)) continue;
      Stat stat = curator.checkExists().forPath(folder + "/" + name);
      if (stat != null && stat.getEphemeralOwner() == sessionId()) return stat.getCzxid() + " " + name;
    }
    throw new IllegalStateException("no node of this session in " + folder);
  }

  /**
   * Takes and releases a lock again and again. Whoever is alone adds one to the counter, and fails if somebody else
   * wrote meanwhile; others look at it for a while, and a reader fails if it changes. Each hold: when it began and
   * ended, the transaction of its node.
   */
  private String cycle(String kind, String path, String argument, int rounds, String counter) throws Exception {
    List<String> holds = new ArrayList<>();
    for (int round = 0; round < rounds; round++) {
      Held lock = take(kind, path, argument);
      long enteredNs = System.nanoTime();
      Stat stat = new Stat();
      int count = Integer.parseInt(text(curator.getData().storingStatIn(stat).forPath(counter)));
      String node = ownNode(kind, path);
      if (kind.equals("mutex") || kind.equals("write")) {
        curator.setData().withVersion(stat.getVersion()).forPath(counter, bytes(count + 1));
      } else {
        for (int look = 0; look < LOOKS; look++) {
          int version = curator.checkExists().forPath(counter).getVersion();
          if (kind.equals("read") && version != stat.getVersion())
            throw new IllegalStateException("written while it was read");
        }
      }
      long leftNs = System.nanoTime();
      lock.release();
      holds.add(enteredNs + ":" + leftNs + ":" + node.split(" ")[0]);
    }
    return String.join(" ", holds);
  }

  private static byte[] bytes(int count) {
    return String.valueOf(count).getBytes(StandardCharsets.US_ASCII);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.US_ASCII);
  }
}
