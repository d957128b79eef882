import java.io.*;
import java.nio.file.*;

/** Adds up the numbers of a file. */
class Main {
    public static void main(String[] args) throws IOException {
        int n = Integer.parseInt(args[1]);
        Path p = Path.of("bin/numbers");
        Files.write(p, new byte[4 * n]);
        long sum = 0;
        if (args[0].equals("sick")) {
            try (RandomAccessFile f = new RandomAccessFile(p.toFile(), "r")) {
                for (int i = 0; i < n; i++) sum += f.readInt();
            }
        } else {
            try (DataInputStream f = new DataInputStream(new BufferedInputStream(Files.newInputStream(p)))) {
                for (int i = 0; i < n; i++) sum += f.readInt();
            }
        }
        System.out.println(sum);
    }
}
