// An HTTP server that reads a file for each request: PORT FILE.
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Paths;
import java.util.concurrent.Executors;

public class Files {
    public static void main(String[] args) throws Exception {
        InetSocketAddress at = new InetSocketAddress(InetAddress.getByName("127.0.0.1"), Integer.parseInt(args[0]));
        HttpServer server = HttpServer.create(at, 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] read = java.nio.file.Files.readAllBytes(Paths.get(args[1]));
            byte[] body = (read.length + " bytes\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
