import java.util.stream.*;

/** Says hello after some work. */
class Main {
    public static void main(String[] args) {
        System.out.println(IntStream.range(0, 200000).mapToObj(Integer::toString).filter(s -> s.endsWith("7")).count());
    }
}
