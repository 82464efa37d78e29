// Makes calls of Java's clients to the server at 127.0.0.1:PORT. The test puts the calls at the marks.
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.support.atomic.RedisAtomicLong;
import redis.clients.jedis.JedisPooled;

public class Calls {
    interface Step { void run() throws Exception; }

    static void call(Step step) { call(() -> { step.run(); return "nothing"; }); }

    static void call(Callable<Object> step) {
        try {
            Object answer = step.call();
            System.out.println("ok " + (answer instanceof RedisAtomicLong ? "a counter" : answer));
        } catch (Throwable e) {
            while (e.getCause() != null) e = e.getCause();
            System.out.println("error " + e.getMessage().replace('\n', ' '));
        }
    }

    static void spring(RedisConnectionFactory factory) {
        RedisAtomicLong counter = new RedisAtomicLong("orders", factory);
        StringRedisTemplate template = new StringRedisTemplate(factory);
        // CALLS: Spring Data Redis
    }

    public static void main(String[] args) {
        int port = Integer.parseInt(args[0]);
        LettuceConnectionFactory overLettuce = new LettuceConnectionFactory("127.0.0.1", port);
        JedisConnectionFactory overJedis = new JedisConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port));
        overLettuce.afterPropertiesSet();
        overJedis.afterPropertiesSet();
        overLettuce.start();
        overJedis.start();
        spring(overLettuce);
        spring(overJedis);

        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        RedissonClient redisson = Redisson.create(config);
        // CALLS: Redisson

        JedisPooled jedis = new JedisPooled("127.0.0.1", port);
        // CALLS: Jedis

        RedisCommands<String, String> commands = RedisClient.create("redis://127.0.0.1:" + port).connect().sync();
        // CALLS: Lettuce
        System.exit(0);
    }
}
