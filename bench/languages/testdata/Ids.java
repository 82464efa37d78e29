import firn.Lease;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/** Prints ids of two threads, each once it is made. With "speed": prints how many a second one makes. */
public class Ids {
    private static volatile boolean ended;

    public static void main(String[] args) throws Exception {
        try (var ids = new Lease(List.of(args[0].split(",")), args[1], null, Duration.ofSeconds(1))) {
            if (args.length > 2) {
                long n = 0;
                for (long start = System.nanoTime(); System.nanoTime() - start < 3_000_000_000L; n += 1000) {
                    for (int i = 0; i < 1000; i++) ids.next();
                }
                System.out.println(n / 3);
                return;
            }
            var main = Thread.currentThread();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                ended = true;
                try {
                    main.join();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }));
            var other = new Thread(() -> print(ids));
            other.start();
            print(ids);
            other.join();
        }
    }

    private static void print(Lease ids) {
        try (var out = new FileOutputStream(FileDescriptor.out)) {
            while (!ended) {
                try {
                    var text = new StringBuilder().append(ids.next()).append('\n');
                    for (long id : ids.take(20)) text.append(id).append('\n');
                    out.write(text.toString().getBytes(StandardCharsets.US_ASCII)); // less than 4,096 bytes: in one piece
                } catch (Lease.LeaseException e) {
                    System.err.println(e.getMessage());
                }
                Thread.sleep(20);
            }
        } catch (java.io.IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
