import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.*;

/** A print spooler: jobs come from a counter every now and then, four printers take them. */
public class Main {
    record Job(int number, int pages) {}

    static final Job END = new Job(-1, 0);

    static class Printer extends Thread {
        final BlockingQueue<Job> queue;
        final AtomicLong pages;
        int jobs;

        Printer(int i, BlockingQueue<Job> queue, AtomicLong pages) {
            super("printer-" + i);
            this.queue = queue;
            this.pages = pages;
        }

        @Override
        public void run() {
            try {
                while (true) {
                    Job j = queue.take();
                    if (j == END) return;
                    jobs++;
                    long h = j.number;
                    for (int i = 0; i < j.pages * 2000; i++) h = h * 6364136223846793005L + 1;
                    pages.addAndGet(j.pages + (h == 42 ? 1 : 0));
                }
            } catch (InterruptedException e) {
                interrupt();
            }
        }
    }

    public static void main(String[] a) throws Exception {
        BlockingQueue<Job> queue = new LinkedBlockingQueue<>();
        AtomicLong pages = new AtomicLong();
        List<Printer> printers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Printer p = new Printer(i, queue, pages);
            p.start();
            printers.add(p);
        }
        for (int n = 0; n < 300; n++) {
            Thread.sleep(2); // the next customer
            queue.put(new Job(n, 1 + n % 9));
        }
        for (int i = 0; i < 4; i++) queue.put(END);
        int jobs = 0;
        for (Printer p : printers) {
            p.join();
            jobs += p.jobs;
        }
        System.out.println("jobs " + jobs + ", pages " + pages);
    }
}
