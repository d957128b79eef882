import java.util.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.LockSupport;

/** Twelve senders serve a queue of mails that come in one by one. */
public class Main {
    static class MailQueue {
        private final Deque<String> mails = new ArrayDeque<>();
        private boolean closed;

        synchronized void put(String mail) {
            mails.add(mail);
            notifyAll(); // mail
        }

        synchronized void close() {
            closed = true;
            notifyAll();
        }

        /** waits for a mail; null at the end */
        synchronized String take() throws InterruptedException {
            while (mails.isEmpty()) {
                if (closed) return null;
                wait();
            }
            return mails.poll();
        }
    }

    static final AtomicLong sent = new AtomicLong(), check = new AtomicLong();

    static void sender(MailQueue q) {
        try {
            for (String m; (m = q.take()) != null; ) {
                int h = 0;
                for (int i = 0; i < m.length(); i++) h = h * 31 + m.charAt(i);
                check.addAndGet(h & 0xffff);
                sent.incrementAndGet();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] a) throws Exception {
        MailQueue q = new MailQueue();
        List<Thread> senders = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            Thread t = new Thread(() -> sender(q), "sender-" + i);
            t.start();
            senders.add(t);
        }
        for (int i = 0; i < 1500; i++) {
            LockSupport.parkNanos(300_000); // the next mail arrives
            q.put("mail " + i + " to user" + i * 7 % 101 + "@example.org");
        }
        q.close();
        for (Thread t : senders) t.join();
        System.out.println("sent " + sent + ", check " + check);
    }
}
