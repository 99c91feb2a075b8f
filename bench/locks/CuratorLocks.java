import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's mutex, told over standard input what to measure: `tasks locks sessions cycles`, one line each. */
public final class CuratorLocks {
  public static void main(String[] arguments) throws Exception {
    List<CuratorFramework> clients = new ArrayList<>();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    int run = 0;
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      int tasks = Integer.parseInt(words[0]);
      int locks = Integer.parseInt(words[1]);
      int sessions = Integer.parseInt(words[2]);
      int cycles = Integer.parseInt(words[3]);
      while (clients.size() < sessions) {
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(arguments[0], 30_000, 15_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
        clients.add(client);
      }
      System.out.println(measure(clients, tasks, locks, sessions, cycles, run++));
    }
    System.exit(0);
  }

  /** Milliseconds for that many acquire and release cycles of all tasks together. */
  private static double measure(
      List<CuratorFramework> clients, int tasks, int locks, int sessions, int cycles, int run) throws Exception {
    CountDownLatch start = new CountDownLatch(1);
    CountDownLatch done = new CountDownLatch(tasks);
    AtomicInteger left = new AtomicInteger(cycles);
    for (int task = 0; task < tasks; task++) {
      InterProcessMutex lock = new InterProcessMutex(clients.get(task % sessions), "/locks/curator-" + task % locks);
      new Thread(() -> {
        try {
          start.await();
          while (left.getAndDecrement() > 0) {
            lock.acquire();
            lock.release();
          }
        } catch (Exception error) {
          error.printStackTrace();
          System.exit(1);
        }
        done.countDown();
      }).start();
    }
    long begun = System.nanoTime();
    start.countDown();
    done.await();
    return (System.nanoTime() - begun) / 1e6;
  }
}
