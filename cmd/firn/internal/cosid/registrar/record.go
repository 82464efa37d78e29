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
	// places is how many registers there are for the places of instances. It is
	// part of the format: with another number no instance would be found.
	places = 1024
)

// A machine is what the store has of a machine number.
type machine struct {
	Instance string `json:"instance"` // its holder, or the last one
	Held     bool   `json:"held"`
	Stable   bool   `json:"stable,omitempty"` // reserved for this instance until given back as not stable
	Guard    int64  `json:"guard,omitempty"`  // the holder's safe-guard time in milliseconds; none: for ever
	Stamp    int64  `json:"stamp"`            // when it was last heard of, Unix milliseconds; never decreases

	revision store.Revision // 0: the number was never used
}

// A place is which instances, of those whose names hash to it, have which number.
type place struct {
	Machines map[string]int `json:"machines"`

	revision store.Revision
}

func machinePrefix(namespace string) string { return keyPrefix + namespace + "/machine/" }

func machineKey(namespace string, id int) string {
	return fmt.Sprintf("%s%08d", machinePrefix(namespace), id)
}

func placeKey(namespace, instance string) string {
	sum := sha256.Sum256([]byte(instance))
	return fmt.Sprintf("%s%s/instance/%04x", keyPrefix, namespace, binary.BigEndian.Uint64(sum[:])%places)
}

// machineOf returns the number that a key of machinePrefix is of.
func machineOf(namespace, key string) (int, error) {
	digits := strings.TrimPrefix(key, machinePrefix(namespace))
	id, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || len(digits) != 8 {
		return 0, register.Foreign(key, "namespace", errors.New("its name does not end in a machine number of 8 digits"))
	}
	return int(id), nil
}

func readMachine(e store.Entry) (machine, error) {
	m := machine{revision: e.Revision}
	if err := json.Unmarshal(e.Value, &m); err != nil {
		return machine{}, register.Foreign(e.Key, "namespace", err)
	}
	if m.Instance == "" || m.Stamp < 0 || m.Guard < 0 {
		return machine{}, register.Foreign(e.Key, "namespace", fmt.Errorf("instance %q, stamp %d and guard %d are no machine", m.Instance, m.Stamp, m.Guard))
	}
	return m, nil
}

func readPlace(e store.Entry) (place, error) {
	p := place{revision: e.Revision}
	if err := json.Unmarshal(e.Value, &p); err != nil {
		return place{}, register.Foreign(e.Key, "namespace", err)
	}
	for instance, id := range p.Machines {
		if instance == "" || id < 0 {
			return place{}, register.Foreign(e.Key, "namespace", fmt.Errorf("instance %q with machine %d is no place", instance, id))
		}
	}
	return p, nil
}

// machine returns what the store has of a number; revision 0 if nothing.
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

// place returns where an instance is written; revision 0 if nothing is there yet.
func (r *Registrar) place(ctx context.Context, namespace, instance string) (place, error) {
	e, err := r.cfg.Store.Get(ctx, placeKey(namespace, instance))
	if errors.Is(err, store.ErrNotFound) {
		return place{}, nil
	}
	if err != nil {
		return place{}, err
	}
	return readPlace(e)
}

// pointedTo reads the place of an instance, and the machine that it points to, which may
// be another's by now. Where it points to none that is a *[NotFoundError].
func (r *Registrar) pointedTo(ctx context.Context, of Instance) (place, int, machine, error) {
	p, err := r.place(ctx, of.Namespace, of.Name)
	if err != nil {
		return p, 0, machine{}, err
	}
	id, ok := p.Machines[of.Name]
	if !ok {
		return p, 0, machine{}, &NotFoundError{Namespace: of.Namespace, Instance: of.Name}
	}
	m, err := r.machine(ctx, of.Namespace, id)
	return p, id, m, err
}

// setMachine writes m over the revision it was read with, and returns it with its new one.
func (r *Registrar) setMachine(ctx context.Context, namespace string, id int, m machine) (machine, error) {
	var err error
	m.revision, err = r.write(ctx, machineKey(namespace, id), m.revision, m)
	return m, err
}

func (r *Registrar) setPlace(ctx context.Context, namespace, instance string, p place) (place, error) {
	var err error
	p.revision, err = r.write(ctx, placeKey(namespace, instance), p.revision, p)
	return p, err
}

// write writes a register once, and returns its revision when the store has confirmed it.
// After any error the call starts over, by reading: what it finds then, its own write or
// another's, it writes again before anything follows from it.
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

// with returns the place with an instance's number in it.
func (p place) with(instance string, id int) place {
	machines := map[string]int{instance: id}
	for other, has := range p.Machines {
		if other != instance {
			machines[other] = has
		}
	}
	return place{Machines: machines, revision: p.revision}
}

// without returns the place without an instance.
func (p place) without(instance string) place {
	q := p.with(instance, 0)
	delete(q.Machines, instance)
	return q
}
