package id.firn.shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.relational.core.mapping.event.BeforeConvertCallback;

@SpringBootApplication
public class Shop {
    public static void main(String[] args) {
        SpringApplication.run(Shop.class, args);
    }

    @Bean
    Ids orderIds(LettuceConnectionFactory firn) {
        return new Ids(firn, "orders", 100);
    }

    /** Fills the key of each new order before the insert. */
    @Bean
    BeforeConvertCallback<Order> orderKeys(Ids orderIds) {
        return order -> order.id() == null ? new Order(orderIds.next(), order.what()) : order;
    }
}
