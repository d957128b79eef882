import java.io.*;

/** Writes a file byte by byte. */
class Main {
    public static void main(String[] args) throws IOException {
        int n = Integer.parseInt(args[1]);
        File file = new File("bin/out");
        OutputStream plain = new FileOutputStream(file);
        try (OutputStream out = args[0].equals("sick") ? plain : new BufferedOutputStream(plain)) {
            for (int i = 0; i < n; i++) out.write(i);
        }
        System.out.println(file.length());
    }
}
