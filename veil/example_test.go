package veil_test

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/veil"
)

// The numbers that customers see of consecutive orders. Read real keys from a file or the
// environment; this makes one: echo "1:$(openssl rand -hex 32)" > orders.key
func Example() {
	keys, err := veil.ParseKeys("1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f # published: for examples only")
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, err := veil.New(veil.Config{Keys: keys, Namespace: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := firn.ID(249681087299011313); id < 249681087299011316; id++ {
		veiled, err := orders.Veil(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		back, err := orders.Unveil(veiled)
		fmt.Println(veiled, firn.Base58.Fixed(veiled), back, err)
	}
	// Output:
	// 4617743705798213745 BihMRqZxBwv 249681087299011313 <nil>
	// 819993151241957263 2uQ3Ncwd782 249681087299011314 <nil>
	// 5428362974144384681 DbqCMT2RnbJ 249681087299011315 <nil>
}

// Add a second key. The veils have had version bits from the beginning.
func ExampleConfig_rotation() {
	before, err := veil.ParseKeys("1:000102030405060708090a0b0c0d0e0f")
	if err != nil {
		fmt.Println(err)
		return
	}
	after, err := veil.ParseKeys(`
		2:f0e0d0c0b0a090807060504030201000  # since Monday
		1:000102030405060708090a0b0c0d0e0f`)
	if err != nil {
		fmt.Println(err)
		return
	}
	old, err := veil.New(veil.Config{Keys: before, VersionBits: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	now, err := veil.New(veil.Config{Keys: after, VersionBits: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	link, _ := old.Veil(249681087299011313)
	fmt.Println(now.Unveil(link))

	link, _ = now.Veil(249681087299011313)
	_, err = old.Unveil(link)
	fmt.Println(errors.Is(err, veil.ErrVersion))

	_, err = veil.New(veil.Config{Keys: after})
	fmt.Println(err)
	// Output:
	// 249681087299011313 <nil>
	// true
	// veil: unusable key: 2 keys require version bits, which identify the key of a veil: set some (in Go Config.VersionBits, for firn veil --version-bits), or use each key by itself
}
