package id.firn.shop;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.IntegerListOutput;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import org.springframework.dao.DataAccessException;
import org.springframework.dao.QueryTimeoutException;
import org.springframework.data.redis.RedisConnectionFailureException;
import org.springframework.data.redis.connection.lettuce.LettuceConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Ids of a namespace of Firn, fetched in batches. Threads may share it.
 *
 * <p>A call that fails may have taken ids. They are skipped, so it is repeated without harm.
 */
public class Ids {
    private static final int ATTEMPTS = 5;

    private final LettuceConnectionFactory firn;
    private final byte[] namespace;
    private final int batch;
    private final ArrayDeque<Long> left = new ArrayDeque<>();

    public Ids(LettuceConnectionFactory firn, String namespace, int batch) {
        this.firn = firn;
        this.namespace = bytes(namespace);
        this.batch = batch;
    }

    public synchronized long next() {
        for (int attempt = 1; left.isEmpty(); attempt++) {
            try {
                left.addAll(fetch());
            } catch (DataAccessException e) {
                if (attempt == ATTEMPTS || !mayPass(e)) throw e;
                if (e instanceof QueryTimeoutException) firn.resetConnection(); // Lettuce keeps one that does not answer
                pause((long) (50 * Math.random() * (1 << attempt)));
            }
        }
        return left.remove();
    }

    @SuppressWarnings("unchecked") // execute returns an Object
    private List<Long> fetch() {
        try (var connection = (LettuceConnection) firn.getConnection()) {
            return (List<Long>) connection.execute("FIRN.NEXT", new IntegerListOutput<>(ByteArrayCodec.INSTANCE),
                namespace, bytes("COUNT"), bytes("" + batch));
        }
    }

    private static boolean mayPass(DataAccessException e) {
        return e instanceof QueryTimeoutException || e instanceof RedisConnectionFailureException
            || e.getMostSpecificCause().getMessage().startsWith("TRYAGAIN");
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for ids", e);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
