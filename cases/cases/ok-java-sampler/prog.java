import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

/** Samples the load of this machine ten times a second, for 1.2 s. */
class Main {
    public static void main(String[] args) throws Exception {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        List<Double> samples = new ArrayList<>();
        CountDownLatch full = new CountDownLatch(12);
        clock.scheduleAtFixedRate(() -> {
            try {
                String load = Files.readString(Path.of("/proc/loadavg"));
                samples.add(Double.parseDouble(load.split(" ")[0]));
            } catch (Exception e) {
                samples.add(-1.0);
            }
            full.countDown();
        }, 100, 100, TimeUnit.MILLISECONDS);
        full.await();
        clock.shutdownNow();
        clock.awaitTermination(1, TimeUnit.SECONDS);
        System.out.println("samples: " + samples.size());
        System.out.println("bad: " + samples.stream().filter(v -> v < 0).count());
    }
}
