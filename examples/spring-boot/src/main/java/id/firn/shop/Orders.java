package id.firn.shop;

import org.springframework.data.repository.CrudRepository;

public interface Orders extends CrudRepository<Order, Long> {}
