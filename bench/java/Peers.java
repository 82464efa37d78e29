import com.xfvape.uid.impl.CachedUidGenerator;
import com.xfvape.uid.impl.DefaultUidGenerator;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/**
 * Measures generators of the Java world as the report for Go does: single calls in short slices, all in
 * turn, by one thread and by two; only slices count in which each thread ran for 0.93 of the time.
 */
public final class Peers {
    static final long SLICE = 2_000_000; // ns
    static final double RAN = 0.93;
    static final int FEW = 10;
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final long[] kept = new long[64]; // so that no call is left out

    static final class Subject {
        final LongSupplier call;
        final int[] calls = {64, 64};
        final List<List<Double>> perId = List.of(new ArrayList<>(), new ArrayList<>());

        Subject(LongSupplier call) {
            this.call = call;
        }

        /** Returns the wall time of a slice, and the processor time of the thread that had the least. */
        long[] slice(int threads, int calls) throws Exception {
            long[] begun = new long[threads], ended = new long[threads], used = new long[threads];
            CyclicBarrier start = new CyclicBarrier(threads);
            Thread[] all = new Thread[threads];
            for (int t = 0; t < threads; t++) {
                int me = t;
                all[t] = new Thread(() -> {
                    try {
                        start.await();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                    long before = THREADS.getCurrentThreadCpuTime();
                    begun[me] = System.nanoTime();
                    long sum = 0;
                    for (int i = 0; i < calls; i++) {
                        sum += call.getAsLong();
                    }
                    ended[me] = System.nanoTime();
                    used[me] = THREADS.getCurrentThreadCpuTime() - before;
                    kept[32 * me] = sum;
                });
                all[t].setUncaughtExceptionHandler((thread, e) -> {
                    e.printStackTrace();
                    System.exit(1);
                });
                all[t].start();
            }
            long wall = 0, busy = Long.MAX_VALUE;
            for (int t = 0; t < threads; t++) {
                all[t].join();
                busy = Math.min(busy, used[t]);
            }
            for (int a = 0; a < threads; a++) {
                for (int b = 0; b < threads; b++) {
                    wall = Math.max(wall, ended[a] - begun[b]);
                }
            }
            return new long[] {wall, busy};
        }

        String median(int threads) {
            List<Double> all = perId.get(threads - 1);
            if (all.size() < FEW) {
                return "–"; // they never ran in parallel
            }
            Collections.sort(all);
            return String.format("%.1f", all.get(all.size() / 2));
        }
    }

    public static void main(String[] args) throws Exception {
        long seconds = args.length > 0 ? Long.parseLong(args[0]) : 120;
        Map<String, Subject> all = new LinkedHashMap<>();
        AtomicLong counter = new AtomicLong();
        all.put("AtomicLong", new Subject(counter::incrementAndGet));
        all.put("System.nanoTime", new Subject(System::nanoTime));
        all.put("System.currentTimeMillis", new Subject(System::currentTimeMillis));
        all.put("CosId, snowflake, 21-bit sequence", new Subject(new MillisecondSnowflakeId(1577203200000L, 41, 1, 21, 0)::generate));
        all.put("CosId, segment chain, step 1,000,000 in memory", new Subject(new SegmentChainId(new IdSegmentDistributor.Atomic(1_000_000))::generate));
        DefaultUidGenerator plain = new DefaultUidGenerator();
        plain.setWorkerIdAssigner(() -> 0);
        plain.setEpochStr("2026-01-01"); // its own has ended: 28 bits of seconds since 2016
        plain.setWorkerBits(1);
        plain.setSeqBits(34);
        plain.afterPropertiesSet();
        all.put("uid-generator, default, 34-bit sequence", new Subject(plain::getUID));
        CachedUidGenerator cached = new CachedUidGenerator();
        cached.setWorkerIdAssigner(() -> 0);
        cached.setEpochStr("2026-01-01");
        cached.setBoostPower(6);
        cached.afterPropertiesSet();
        all.put("uid-generator, cached", new Subject(() -> {
            while (true) {
                try {
                    return cached.getUID();
                } catch (com.xfvape.uid.exception.UidGenerateException e) { // its buffer is empty
                    Thread.onSpinWait();
                }
            }
        }));
        for (Subject s : all.values()) {
            for (int threads = 1; threads <= 2; threads++) {
                for (int warm = 0; warm < 200; warm++) {
                    s.slice(threads, 20_000);
                }
                while (s.slice(threads, s.calls[threads - 1])[0] < SLICE / 2) {
                    s.calls[threads - 1] *= 2;
                }
            }
        }
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            for (Subject s : all.values()) {
                for (int threads = 1; threads <= 2; threads++) {
                    int calls = s.calls[threads - 1];
                    long[] took = s.slice(threads, calls);
                    if (took[1] >= RAN * took[0]) {
                        s.perId.get(threads - 1).add((double) took[0] / calls / threads);
                    }
                }
            }
        }
        System.out.println("| Java " + System.getProperty("java.version") + " | ns an id | two in parallel |\n| --- | --: | --: |");
        all.forEach((name, s) -> System.out.printf("| %s | %s | %s |%n", name, s.median(1), s.median(2)));
        cached.destroy();
    }
}
