package id.firn.shop;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/orders")
public class OrderController {
    record New(String what) {}

    private final Orders orders;

    public OrderController(Orders orders) {
        this.orders = orders;
    }

    @PostMapping
    @ResponseStatus(HttpStatus.CREATED)
    Order add(@RequestBody New order) {
        return orders.save(new Order(null, order.what()));
    }

    @GetMapping("/{id}")
    ResponseEntity<Order> get(@PathVariable long id) {
        return ResponseEntity.of(orders.findById(id));
    }
}
