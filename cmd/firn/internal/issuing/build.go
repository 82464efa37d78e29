package issuing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/veil"
)

// A builder makes a snapshot from settings. It reuses the parts of the old snapshot that
// have not changed.
type builder struct {
	service *Service
	old     *snapshot
	made    *snapshot
	ciphers map[string]*veil.Cipher // of the namespaces with a veil
}

func (b *builder) build(ctx context.Context, cfg settings.Config) error {
	if len(cfg.Namespaces) == 0 {
		b.onFirstUse(ctx)
		return nil
	}
	if err := b.checkForgetful(cfg); err != nil {
		return err
	}
	if err := b.joinPools(ctx, cfg.Namespaces); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		err := b.add(ctx, cfg, name)
		if _, placed := errors.AsType[*settings.PlaceError](err); err != nil && !placed {
			return errors.Join(append(errs, fmt.Errorf("namespace %s: %w", name, err))...) // the store may be away: do not wait for it again
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkForgetful returns an error about settings that a store which ends with this process cannot keep.
func (b *builder) checkForgetful(cfg settings.Config) error {
	if !b.service.forgetful {
		return nil
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		if cfg.Namespaces[name].MustExist {
			errs = append(errs, cfg.At(errors.New("it needs a store that keeps counters: memory: has none when a process starts. Use file:FOLDER or another store, or leave it out"),
				"namespaces", name, "must_exist"))
		}
		if cfg.Namespaces[name].ClockFrom != "" {
			errs = append(errs, cfg.At(errors.New("it needs a store that keeps fences: over memory: each process would repeat the ids from that time on. Use file:FOLDER or another store, or leave it out"),
				"namespaces", name, "clock_from"))
		}
	}
	return errors.Join(errs...)
}

// onFirstUse prepares for namespaces that are made on first use.
func (b *builder) onFirstUse(ctx context.Context) {
	p := b.old.dynamic
	if p == nil {
		p = b.service.join(ctx, "", b.service.base)
	}
	b.made.dynamic = p
	b.made.pools[p.name] = p
}

func (b *builder) add(ctx context.Context, cfg settings.Config, name string) error {
	set := cfg.Namespaces[name]
	cipher := b.ciphers[name]
	var ciphers []*veil.Cipher
	if was := b.old.namespaces[name]; was != nil && cipher != nil {
		ciphers = was.ciphers
		if slices.ContainsFunc(ciphers, cipher.Repeats) {
			return errRepeats
		}
	}
	form := b.form(name)
	made, err := b.base(ctx, name, set, form)
	if err != nil {
		return err
	}
	ns := b.service.namespace(name, set, made, b.made.limits)
	ns.form = form
	b.made.namespaces[name] = ns // from here on it is closed if building fails
	if format := set.Of().Format; format != nil {
		write, err := format(set)
		if err != nil {
			return err
		}
		ns.texts = &written{ns.numbers, write}
		return nil
	}
	if cipher != nil {
		if !slices.ContainsFunc(ciphers, func(c *veil.Cipher) bool { return c.String() == cipher.String() }) {
			ciphers = append(slices.Clip(ciphers), cipher)
		}
		ns.ciphers = ciphers
		ns.numbers = veiled{ns.numbers, cipher}
		ns.cipher = cipher
	}
	if set.Prefix != "" {
		prefix, err := prefixed.New(set.Prefix)
		if err != nil {
			return err
		}
		ns.setPrefix(prefix)
	}
	return nil
}

// form returns what a counter's record has about the veil of a namespace.
func (b *builder) form(name string) (form store.Form) {
	if cipher := b.ciphers[name]; cipher != nil {
		form = cipher.Form()
	}
	return form
}

// CheckKeys reads the keys of all veils.
func CheckKeys(cfg settings.Config) error {
	_, err := ciphersOf(cfg)
	return err
}

// ciphersOf returns the veils of a configuration by namespace.
func ciphersOf(cfg settings.Config) (map[string]*veil.Cipher, error) {
	all := map[string]*veil.Cipher{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		set := cfg.Namespaces[name].Veil
		if set == nil {
			continue
		}
		cipher, err := set.Cipher(name)
		switch {
		case err == nil:
			all[name] = cipher
		case set.KeyFile != "":
			errs = append(errs, cfg.At(err, "namespaces", name, "veil", "key_file"))
		default:
			errs = append(errs, cfg.At(err, "namespaces", name, "veil", "key_env"))
		}
	}
	return all, errors.Join(errs...)
}

// base returns the source of a namespace's ids, before they are veiled or formatted. A counter's record has
// the form before it makes an id for it.
func (b *builder) base(ctx context.Context, name string, set settings.Namespace, form store.Form) (base, error) {
	if set.Generated() {
		return leased{b.made.pools[set.PoolName()]}, nil
	}
	was := b.old.namespaces[name]
	if was != nil && reflect.DeepEqual(sourceSettings(was.settings), sourceSettings(set)) && reflect.DeepEqual(was.form, form) {
		return was.base, nil
	}
	switch set.Of().Source {
	case settings.Ranges:
		return b.segments(ctx, was, name, set, form)
	case settings.Counter:
		return b.sequence(name, set, form)
	case settings.Template:
		return b.number(name, set)
	default:
		next, err := set.Of().Wide(set)
		return &local{next, func(_ []byte, text string) string { return text }}, err
	}
}

// log returns the log of a namespace.
func (b *builder) log(name string) *slog.Logger { return b.service.log.With("namespace", name) }

// sourceSettings returns the settings that the source of a namespace depends on.
func sourceSettings(set settings.Namespace) settings.Namespace {
	set.Veil, set.Prefix = nil, ""
	return set
}
