import java.io.*;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import static java.nio.file.StandardOpenOption.*;

class Main {
    static void checkpoint(int step) throws IOException {
        Path next = Path.of("restart.new");
        try (FileChannel c = FileChannel.open(next, CREATE, WRITE, TRUNCATE_EXISTING)) {
            c.write(ByteBuffer.wrap(("step " + step + "\n").getBytes()));
            c.force(true);
        }
        Files.move(next, Path.of("restart"), StandardCopyOption.ATOMIC_MOVE);
    }

    public static void main(String[] a) throws Exception {
        Process printer = new ProcessBuilder("sh", "-c", "n=0; while read -r label; do n=$((n + 1)); echo \"printed $label\"; done").redirectErrorStream(true).start();
        BufferedReader in = printer.inputReader();
        Writer out = printer.outputWriter();
        for (int step = 0; step < 80; step++) {
            checkpoint(step);                   // before the label leaves us
            out.write("label-" + step * 7919 % 1009 + "\n");
            out.flush();
            String answer = in.readLine();
            if (step % 8 == 0) System.out.println(answer);
        }
        out.close();
        printer.waitFor();
        System.out.print(Files.readString(Path.of("restart")));
    }
}
