import java.util.concurrent.*;
import java.util.*;

class Main {
    record Job(int prio, long seq, int value, CompletableFuture<Integer> done) implements Comparable<Job> {
        public int compareTo(Job o) { return prio != o.prio ? Integer.compare(prio, o.prio) : Long.compare(seq, o.seq); }
    }
    static final BlockingQueue<Job> jobs = new PriorityBlockingQueue<>();
    static long seq;

    static Future<Integer> submit(int prio, int value) throws Exception {
        Job j = new Job(prio, seq++, value, new CompletableFuture<>());
        jobs.put(j);
        return j.done;
    }

    static Job next() throws Exception {
        return jobs.take();
    }

    static void work() {
        try {
            for (;;) {
                Job j = next();
                if (j.value < 0) { j.done.complete(0); return; }
                long x = j.value;
                for (int i = 0; i < 100_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
                j.done.complete((int) (x >>> 50));
            }
        } catch (Exception e) { e.printStackTrace(); }
    }

    public static void main(String[] a) throws Exception {
        Thread t = new Thread(Main::work);
        t.start();
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < 24; i++) out.append(i).append(' ').append(submit(i % 9 == 4 ? 0 : 1, i).get()).append('\n');
        submit(1, -1).get();
        t.join();
        System.out.print(out);
    }
}
