import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

class Main {
    /** Renders the pages of a chapter on a pool of its own. */
    static long chapter(int n) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        AtomicLong glyphs = new AtomicLong();
        for (int p = 0; p < 6; p++) {
            final int page = p;
            pool.submit(() -> {
                long g = 0;
                for (int i = 0; i < 5000; i++)
                    g += (n * 31L + page * 7L + i) % 13;
                glyphs.addAndGet(g);
            });
        }
        pool.awaitTermination(400, TimeUnit.MILLISECONDS);
        pool.shutdown();
        return glyphs.get();
    }

    public static void main(String[] args) throws Exception {
        for (int n = 1; n <= 5; n++)
            System.out.println("chapter " + n + ": " + chapter(n));
    }
}
