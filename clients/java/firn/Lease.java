package firn;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Makes Firn's ids in this process, under a lease of a worker, as docs/leases.md specifies: Java 17, no dependencies.
 *
 * <pre>{@code
 * try (var ids = new firn.Lease(List.of("http://10.0.0.1:7070", "http://10.0.0.2:7070"), "default", token)) {
 *     long id = ids.next();          // no other process makes it
 *     long[] more = ids.take(1000);  // faster
 * }
 * }</pre>
 *
 * All threads may share a Lease. Nothing is kept on disk. Java cannot fork; after a checkpoint (CRaC) make another Lease.
 */
public final class Lease implements AutoCloseable {
    /** No id can be made: the message says why. */
    public static final class LeaseException extends RuntimeException {
        private static final long serialVersionUID = 1;

        private LeaseException(String message) { super(message); }
    }

    private static final class Lost extends Exception {
        private static final long serialVersionUID = 1;

        Lost(String message) { super(message); }
    }

    private final List<String> servers;
    private final String pool, token;
    private final Duration timeout; // null: the default
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
        .followRedirects(HttpClient.Redirect.NEVER).connectTimeout(Duration.ofSeconds(2)).build();
    private final SecureRandom random = new SecureRandom();
    private final Thread background = new Thread(this::run, "firn lease");

    private final ReentrantLock lock = new ReentrantLock(); // guards what a grant has
    private final Condition changed = lock.newCondition();
    private volatile Grant grant;
    private volatile String why; // null: no server has answered yet
    private volatile boolean asking; // for a lease
    private volatile boolean closed;

    /** Asks for a lease at once. The token may be null. */
    public Lease(List<String> servers, String pool, String token) { this(servers, pool, token, null); }

    /**
     * The servers share one store. The timeout is how long a call waits for an id. If it is null, that is 10 seconds, and 40 while
     * a server is asked for a lease: for up to 24 seconds after its store was restarted it waits before it answers.
     */
    public Lease(List<String> servers, String pool, String token, Duration timeout) {
        if (servers.isEmpty()) throw new IllegalArgumentException("servers is empty: name one, as http://127.0.0.1:7070");
        for (String s : servers) {
            if (!s.matches("https?://.+") || URI.create(s).getHost() == null) throw new IllegalArgumentException("server " + s + " must be a URL, as http://127.0.0.1:7070");
        }
        this.servers = servers.stream().map(s -> s.replaceAll("/+$", "")).toList();
        this.pool = URLEncoder.encode(pool, StandardCharsets.UTF_8).replace("+", "%20");
        this.token = token;
        this.timeout = timeout;
        background.setDaemon(true);
        background.start();
    }

    /** An id. Waits for one if it must. */
    public long next() { return take(1)[0]; }

    /** So many ids. */
    public long[] take(int n) {
        long[] ids = new long[n];
        long began = System.nanoTime();
        lock.lock();
        try {
            Grant used = null;
            for (int made = 0; made < n; ) {
                if (closed) throw new LeaseException("the lease is closed");
                if (grant != used) made = 0; // never those of a lost lease
                used = grant;
                long now = System.nanoTime();
                int more = used == null ? 0 : used.make(ids, made, now);
                made += more;
                if (more > 0) continue;
                long left = (timeout != null ? timeout : Duration.ofSeconds(asking || used != null && !used.late(now) ? 40 : 10)).toNanos() - (now - began);
                if (left <= 0) throw new LeaseException("no lease of pool " + pool + " allows an id now: "
                    + (used != null && used.late(now) ? "the background of this process has not run in time: does something block it?" : why == null ? "no server has answered yet" : why));
                changed.awaitNanos(Math.min(left, used == null ? 1_000_000_000 : used.pause(now)));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LeaseException("interrupted while it waited for an id of pool " + pool);
        } finally {
            lock.unlock();
        }
        return ids;
    }

    /** Makes no more ids. Others get the worker when the lease has ended. */
    @Override
    public void close() {
        closed = true;
        background.interrupt();
    }

    private void run() {
        while (!closed) {
            try {
                renew();
            } catch (Throwable e) { // there was no memory even for the text of a failure: the thread must go on
                LockSupport.parkNanos(1_000_000_000);
            }
        }
    }

    /** Takes a lease and renews it. After any failure it asks the next server, after a round of all in a second. */
    private void renew() {
        for (int at = 0, failed = 0; !closed; ) {
            String server = servers.get(at);
            long asked = System.nanoTime(), pause = TimeUnit.SECONDS.toNanos(1);
            if (grant != null && grant.clock(asked) >= grant.end) grant = null;
            Grant g = grant;
            boolean counts = true;
            asking = g == null;
            try {
                Map<String, String> answer = ask(server, g);
                lock.lock();
                try {
                    if (g == null) grant = g = new Grant(answer);
                    else g.renew(answer, asked);
                } finally {
                    lock.unlock();
                }
                why = "its server allows none yet";
                failed = 0;
                pause = g.look - (System.nanoTime() - asked);
            } catch (Lost e) {
                grant = null;
                why = server + ": " + e.getMessage();
                if (g.renewed) pause = 0;
            } catch (Throwable e) { // whatever it is: the thread must go on
                why = server + ": " + (e instanceof LeaseException ? e.getMessage() : e);
                at = (at + 1) % servers.size();
                if (++failed % servers.size() != 0) pause = 0;
                counts = g == null || !g.late(System.nanoTime());
            }
            asking = g == null && pause == 0; // at once, the next server
            lock.lock();
            try {
                if (g != null && counts && asked - g.asked > 0) g.asked = asked;
                changed.signalAll();
            } finally {
                lock.unlock();
            }
            try {
                TimeUnit.NANOSECONDS.sleep(pause);
            } catch (InterruptedException e) {
                // it is closed
            }
        }
    }

    private Map<String, String> ask(String server, Grant g) throws Exception {
        String once = HexFormat.of().toHexDigits(random.nextLong()), query = g == null ? "?once=" + once : "/renew?end=" + g.end + "&once=" + once;
        var request = HttpRequest.newBuilder(URI.create(server + "/v1/leases/" + pool + query)).POST(BodyPublishers.noBody());
        if (token != null) request.header("Authorization", "Bearer " + token);
        if (g != null) request.header("Firn-Lease", g.lease);
        var sent = http.sendAsync(request.build(), BodyHandlers.ofString());
        HttpResponse<String> r;
        try {
            r = sent.get(g == null ? 35 : 2, TimeUnit.SECONDS); // it bounds all of the request
        } finally {
            sent.cancel(true);
        }
        Map<String, String> a = fields(r.body()), error = fields(a.getOrDefault("error", ""));
        String lease = a.getOrDefault("lease", "");
        if (r.statusCode() == 200 && lease.matches("\"[!#-\\[\\]-~]+\"") && (g == null || lease.equals('"' + g.lease + '"'))) {
            if (!a.getOrDefault("once", "").equals('"' + once + '"')) throw new LeaseException("its answer is to another request: is there a cache in front of it?");
            return a;
        }
        if (g != null && r.statusCode() == 410 && error.getOrDefault("code", "").equals("\"lease_lost\"")) throw new Lost(error.get("message"));
        throw new LeaseException(error.getOrDefault("message", "status " + r.statusCode() + ", and no answer to this request"));
    }

    private static final Pattern TOKEN = Pattern.compile("\\s*(\"[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+\"|[-+.\\w]++|[{}\\[\\]:,])\\s*");

    /** The fields of a JSON object, each as it is written. It is empty for other texts. */
    static Map<String, String> fields(String json) {
        Map<String, String> fields = new HashMap<>();
        Matcher m = TOKEN.matcher(json);
        String name = null, last = "";
        int depth = 0, begin = 0, end = 0;
        for (; end < json.length() && m.region(end, json.length()).lookingAt(); end = m.end()) {
            String token = m.group(1);
            if (end > 0 && depth == 0) return Map.of(); // something follows
            if (depth == 1 && token.equals(":")) {
                name = last;
                begin = m.end();
            }
            if (token.equals("{") || token.equals("[")) depth++;
            boolean closes = token.equals("}") || token.equals("]");
            if (name != null && depth == 1 && (closes || token.equals(","))) {
                fields.put(name.substring(1, Math.max(1, name.length() - 1)), json.substring(begin, m.start()).strip());
                name = null;
            }
            if (closes) depth--;
            last = token;
        }
        return depth == 0 && end == json.length() && json.strip().startsWith("{") ? fields : Map.of();
    }

    private static long number(Map<String, String> a, String name, String form, long least) {
        String text = a.getOrDefault(name, "nothing");
        if (!text.matches(form)) throw new LeaseException("its answer has " + name + " " + text + ", which must match " + form);
        long n = Long.parseLong(text.replace("\"", "")); // below 2^63
        if (n < least) throw new LeaseException("its answer has " + name + " " + n + ", which must be " + least + " or more");
        return n;
    }

    private static long position(Map<String, String> a, String name) { return number(a, name, "\"(0|[1-9][0-9]{0,18})\"", 0); }

    private static int bits(Map<String, String> a, String name) { return (int) number(a, name, "[0-9]|[1-5][0-9]|6[0-2]", 0); }

    /** The positions [p + 1, end) of one worker, and a clock that never goes back. */
    private static final class Grant {
        final String lease;
        final long look;
        private final int bits, time, sequence;
        private final long unit, base;
        // Two requests without an answer and the pause between them take 5 seconds, and threads are late.
        private final long patience;
        volatile long asked; // when the last request that counts began: see docs/leases.md
        private long p, shown, held, at;
        volatile long end;
        boolean renewed;

        Grant(Map<String, String> a) {
            lease = a.get("lease").replace("\"", "");
            look = number(a, "look_ms", "[0-9]{1,9}", 1) * 1_000_000;
            p = position(a, "first") - 1;
            end = position(a, "end");
            shown = held = position(a, "clock");
            at = System.nanoTime();
            unit = number(a, "unit_ns", "\"[0-9]{1,18}\"", 1);
            bits = bits(a, "sequence_bits");
            time = bits(a, "time_shift");
            sequence = bits(a, "sequence_shift");
            base = position(a, "base");
            asked = at;
            patience = Math.max(look, 3_000_000_000L) + 3_500_000_000L;
        }

        /** Whether the background did not run, as after a pause: the lease may be lost. */
        private boolean late(long now) { return now - asked > patience; }

        /** The server's clock, but while that is behind, this clock's own at half its speed. */
        private long clock(long now) { return Math.max(shown + ticks(now - at), held + ticks((now - at) / 2)); }

        private long ticks(long elapsed) { return elapsed / unit << bits; }

        void renew(Map<String, String> a, long asked) throws Lost {
            long clock = position(a, "clock"), last = position(a, "end"), now = System.nanoTime();
            renewed = true;
            end = Math.max(end, last);
            if (clock(asked) - clock > ticks(9_000_000_000L + unit)) throw new Lost("the server's clock is more than 9 seconds behind this client's");
            long own = clock(now), latest = clock + ticks(now - asked + unit);
            if (own >= clock && own <= latest) return;
            held = own;
            shown = Math.min(Math.max(own, clock), latest);
            at = now;
        }

        /** Writes ids of the clock's tick from ids[made] on, and returns how many. */
        int make(long[] ids, int made, long now) {
            if (late(now)) return 0;
            long clock = clock(now), q = Math.max(p + 1, clock);
            long stop = Math.min(Math.min(q + ids.length - made, end), (clock >> bits) + 1 << bits);
            if (q >= stop) return 0;
            p = stop - 1;
            for (long each = q; each < stop; each++) ids[made++] = each >> bits << time | (each & (1L << bits) - 1) << sequence | base;
            return (int) (stop - q);
        }

        /** The nanoseconds to the next tick; when the lease has ended, to a look for a renewal. */
        long pause(long now) { return late(now) || Math.max(p + 1, clock(now)) >= end ? 1_000_000_000 : unit - (now - at) % unit; }
    }
}
