package id.firn.shop;

import com.fasterxml.jackson.annotation.JsonFormat;
import org.springframework.data.annotation.Id;
import org.springframework.data.relational.core.mapping.Table;

/** An order. Its id is a string in JSON, since JavaScript rounds numbers above 2^53. */
@Table("ORDERS")
public record Order(@Id @JsonFormat(shape = JsonFormat.Shape.STRING) Long id, String what) {}
