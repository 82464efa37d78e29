package store

import "context"

type urgent struct{}

// Urgent returns a context whose calls do not wait for a connection behind other calls, as far as a
// store can arrange that. Leases use it: a holder must look at its slot in time, however many ranges
// and sequences are busy.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgent{}, true) }

// IsUrgent reports whether ctx comes from [Urgent]. Only stores need it.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgent{}) != nil }
