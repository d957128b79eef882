import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.zip.CRC32;

/** Verifies a pack file against its index of (offset, length, crc). */
public class Main {
    static final int ENTRIES = 1500;

    static void write(Path pack, Path index) throws IOException {
        byte[] data = new byte[1 << 20];
        for (int i = 0; i < data.length; i++) data[i] = (byte) (i * 31 + (i >> 8));
        Files.write(pack, data);
        ByteBuffer b = ByteBuffer.allocate(ENTRIES * 12);
        for (int i = 0; i < ENTRIES; i++) {
            int off = (i * 7919) % (data.length / 2), len = 45_000 + i % 5000;
            b.putInt(off).putInt(len).putInt(checksum(data, off, len));
        }
        Files.write(index, b.array());
    }

    static int checksum(byte[] d, int off, int len) {
        CRC32 c = new CRC32();
        c.update(d, off, len);
        int h = (int) c.getValue();
        for (int i = 0; i < len; i++) h = (h ^ d[off + i]) * 16777619;
        return h;
    }

    static int verify(Path pack, Path index) throws IOException {
        byte[] data = Files.readAllBytes(pack);
        int bad = 0;
        try (RandomAccessFile f = new RandomAccessFile(index.toFile(), "r")) {
            for (int i = 0; i < ENTRIES; i++) {
                int offset = f.readInt();
                int length = f.readInt();
                if (f.readInt() != checksum(data, offset, length)) bad++;
            }
        }
        return bad;
    }

    public static void main(String[] a) throws IOException {
        Path pack = Path.of("objects.pack"), index = Path.of("objects.idx");
        try {
            write(pack, index);
            System.out.println(ENTRIES + " entries, bad: " + verify(pack, index));
        } finally {
            Files.deleteIfExists(pack);
            Files.deleteIfExists(index);
        }
    }
}
