import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A price service and its client, which speak length-prefixed messages. */
public class Main {
    static void serve(ServerSocket ss) {
        try (Socket s = ss.accept()) {
            s.setTcpNoDelay(true);
            DataInputStream in = new DataInputStream(new BufferedInputStream(s.getInputStream()));
            OutputStream out = s.getOutputStream();
            while (true) {
                int n = in.readInt();
                if (n == 0) return;
                byte[] b = new byte[n];
                in.readFully(b);
                int price = 0;
                for (byte x : b) price = (price * 31 + x) & 0xffff;
                out.write(ByteBuffer.allocate(4).putInt(price).array());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static class Client implements Closeable {
        final Socket s;
        final OutputStream out;
        final DataInputStream in;

        Client(int port) throws IOException {
            s = new Socket("127.0.0.1", port);
            out = s.getOutputStream();
            in = new DataInputStream(new BufferedInputStream(s.getInputStream()));
        }

        int price(String article) throws IOException {
            byte[] body = article.getBytes(StandardCharsets.UTF_8);
            byte[] head = ByteBuffer.allocate(4).putInt(body.length).array();
            byte[] frame = new byte[4 + body.length];
            System.arraycopy(head, 0, frame, 0, 4);
            System.arraycopy(body, 0, frame, 4, body.length);
            out.write(frame);
            return in.readInt();
        }

        public void close() throws IOException {
            out.write(new byte[4]);
            s.close();
        }
    }

    public static void main(String[] a) throws Exception {
        ServerSocket ss = new ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"));
        Thread t = new Thread(() -> serve(ss));
        t.start();
        long sum = 0;
        try (Client c = new Client(ss.getLocalPort())) {
            for (int i = 0; i < 40; i++) sum += c.price("article-" + i);
        }
        t.join();
        System.out.println("sum of 40 prices: " + sum);
    }
}
