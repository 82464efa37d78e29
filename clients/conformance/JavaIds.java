// Prints ids, for check_client.py: javac -d OUT ../java/firn/Lease.java JavaIds.java; python3 check_client.py java -cp OUT JavaIds
import firn.Lease;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

public class JavaIds {
    public static void main(String[] args) throws Exception {
        var ids = new Lease(List.of(args[0].split(",")), args[1], args.length > 2 ? args[2] : null, Duration.ofMillis(500));
        var input = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (java.io.IOException e) {
                e.printStackTrace();
            }
            Runtime.getRuntime().halt(0);
        });
        input.start();
        var out = new FileOutputStream(FileDescriptor.out);
        while (true) {
            for (int i = 0; i < 510; i++) {
                try {
                    var text = new StringBuilder();
                    for (long id : i < 500 ? new long[] {ids.next()} : ids.take(50)) text.append(id).append('\n');
                    out.write(text.toString().getBytes(StandardCharsets.US_ASCII));
                } catch (Lease.LeaseException e) {
                    // nothing instead of an id
                }
            }
            Thread.sleep(500);
        }
    }
}
