import java.nio.file.*;
import java.security.*;

class Main {
    static boolean flag; static int asked;
    static boolean maintenance() {
        if (asked++ % 1000 == 0) flag =
            Files.exists(Path.of("maintenance.flag"));
        return flag;
    }

    static int route(byte[] path, MessageDigest d) {
        int h = 17;
        for (int k = 0; k < 60; k++) for (byte b : path) h = h * 31 + b;
        d.update(path);
        for (int k = 0; k < 30; k++) { d.update((byte) h); h ^= d.digest()[k % 20]; d.update(path); }
        return h & 0xff;
    }

    public static void main(String[] a) throws Exception {
        MessageDigest d = MessageDigest.getInstance("SHA-1");
        int[] served = new int[4];
        int refused = 0;
        for (int i = 0; i < 20_000; i++) {
            if (maintenance()) { refused++; continue; }
            served[route(("/shop/item/" + i + "?ref=" + i % 97).getBytes(), d) & 3]++;
        }
        System.out.println(java.util.Arrays.toString(served) + " " + refused);
    }
}
