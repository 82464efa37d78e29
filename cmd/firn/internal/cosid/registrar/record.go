package registrar

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

const (
	keyPrefix = "firn/cosid:"
	// buckets is the number of buckets. It is part of the format: with another value,
	// instances would be looked up in the wrong bucket.
	buckets = 1024
)

// A machine is the record of a machine number.
type machine struct {
	Instance string `json:"instance"` // its holder, or the last one
	Held     bool   `json:"held"`
	Stable   bool   `json:"stable,omitempty"` // reserved for this instance until returned as not stable
	Guard    int64  `json:"guard,omitempty"`  // the holder's safe-guard time in milliseconds; 0: for ever
	Stamp    int64  `json:"stamp"`            // when the holder last called, Unix milliseconds; never decreases

	revision store.Revision // 0: the number was never used
}

// A bucket lists the numbers of the instances whose names hash to it.
type bucket struct {
	Machines map[string]int `json:"machines"`

	revision store.Revision
}

func machinePrefix(namespace string) string { return keyPrefix + namespace + "/machine/" }

func machineKey(namespace string, id int) string {
	return fmt.Sprintf("%s%08d", machinePrefix(namespace), id)
}

func bucketKey(namespace, instance string) string {
	sum := sha256.Sum256([]byte(instance))
	return fmt.Sprintf("%s%s/instance/%04x", keyPrefix, namespace, binary.BigEndian.Uint64(sum[:])%buckets)
}

// machineOf returns the machine number in a key that begins with machinePrefix.
func machineOf(namespace, key string) (int, error) {
	digits := strings.TrimPrefix(key, machinePrefix(namespace))
	id, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || len(digits) != 8 {
		return 0, register.Foreign(key, "namespace", errors.New("its key does not end in a machine number of 8 digits"))
	}
	return int(id), nil
}

func readMachine(e store.Entry) (machine, error) {
	m := machine{revision: e.Revision}
	if err := json.Unmarshal(e.Value, &m); err != nil {
		return machine{}, register.Foreign(e.Key, "namespace", err)
	}
	if m.Instance == "" || m.Stamp < 0 || m.Guard < 0 {
		return machine{}, register.Foreign(e.Key, "namespace", fmt.Errorf("invalid machine: instance %q, stamp %d, guard %d", m.Instance, m.Stamp, m.Guard))
	}
	return m, nil
}

func readBucket(e store.Entry) (bucket, error) {
	b := bucket{revision: e.Revision}
	if err := json.Unmarshal(e.Value, &b); err != nil {
		return bucket{}, register.Foreign(e.Key, "namespace", err)
	}
	for instance, id := range b.Machines {
		if instance == "" || id < 0 {
			return bucket{}, register.Foreign(e.Key, "namespace", fmt.Errorf("invalid entry: instance %q has machine number %d", instance, id))
		}
	}
	return b, nil
}

// machine reads the record of a number; its revision is 0 if the number was never used.
func (r *Registrar) machine(ctx context.Context, namespace string, id int) (machine, error) {
	e, err := r.cfg.Store.Get(ctx, machineKey(namespace, id))
	if errors.Is(err, store.ErrNotFound) {
		return machine{}, nil
	}
	if err != nil {
		return machine{}, err
	}
	return readMachine(e)
}

// bucket reads the bucket of an instance; its revision is 0 if it was never written.
func (r *Registrar) bucket(ctx context.Context, namespace, instance string) (bucket, error) {
	e, err := r.cfg.Store.Get(ctx, bucketKey(namespace, instance))
	if errors.Is(err, store.ErrNotFound) {
		return bucket{}, nil
	}
	if err != nil {
		return bucket{}, err
	}
	return readBucket(e)
}

// lookUp reads the bucket of an instance and the machine listed for it, which another instance
// may have by now. If no machine is listed, the error is [ErrNotFound].
func (r *Registrar) lookUp(ctx context.Context, of Instance) (bucket, int, machine, error) {
	b, err := r.bucket(ctx, of.Namespace, of.Name)
	if err != nil {
		return b, 0, machine{}, err
	}
	id, ok := b.Machines[of.Name]
	if !ok {
		return b, 0, machine{}, notFound(of)
	}
	m, err := r.machine(ctx, of.Namespace, id)
	return b, id, m, err
}

// setMachine writes m over the revision it was read with, and returns it with the new revision.
func (r *Registrar) setMachine(ctx context.Context, namespace string, id int, m machine) (machine, error) {
	var err error
	m.revision, err = r.write(ctx, machineKey(namespace, id), m.revision, m)
	return m, err
}

func (r *Registrar) setBucket(ctx context.Context, namespace, instance string, b bucket) (bucket, error) {
	if value, err := json.Marshal(b); err == nil && len(value) > store.MaxValueBytes {
		r.warn("an instance gets no machine number: the record of its name is full", "namespace", namespace, "instance", instance, "instances", len(b.Machines))
		return b, refuse(ErrOverflow, "no machine number for instance %q of %q: its record is full of %d other instances; return the numbers of instances that are gone, or use another instance name",
			instance, namespace, len(b.Machines)-1)
	}
	var err error
	b.revision, err = r.write(ctx, bucketKey(namespace, instance), b.revision, b)
	return b, err
}

// write writes a register once, and returns its new revision after the store has confirmed it.
// After an error the caller must start over and read again. It may find its own write or
// another's, and must rewrite that before relying on it.
func (r *Registrar) write(ctx context.Context, key string, old store.Revision, v any) (store.Revision, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode %q: %w", key, err)
	}
	reg := register.Register{Store: r.cfg.Store, Key: key, Time: r.cfg.Time, Random: r.cfg.Random}
	reg.Known(store.Entry{Key: key, Revision: old})
	written, err := reg.Write(ctx, value)
	return written.Revision, err
}

// with returns a copy of the bucket that lists the number of an instance.
func (b bucket) with(instance string, id int) bucket {
	machines := map[string]int{instance: id}
	for other, has := range b.Machines {
		if other != instance {
			machines[other] = has
		}
	}
	return bucket{Machines: machines, revision: b.revision}
}

// without returns a copy of the bucket without an instance.
func (b bucket) without(instance string) bucket {
	q := b.with(instance, 0)
	delete(q.Machines, instance)
	return q
}
