// Package registrar assigns machine numbers as CosId's proxy does. An instance gets
// the number it had, else a returned number, else an unused number, else one whose
// holder has been silent for longer than its safe-guard time. All state is in a
// store, so any number of servers may work on it at the same time, and a restarted
// server continues with the current state.
//
// # What the store contains
//
// One register for each machine number, firn/cosid:NAMESPACE/machine/00000007:
//
//	{"instance":"10.0.0.1:8080","held":true,"guard":300000,"stamp":1795260245263}
//
// Only this register says who holds the number. Compare-and-swap orders all its
// changes, so two instances never hold the same number; this depends on no clock and
// no time-out. Each number has a register of its own: a guard then rewrites a hundred
// bytes that no other instance writes, and the 65,536 machines of a namespace would
// not fit into one value.
//
// And 1,024 registers, called buckets, firn/cosid:NAMESPACE/instance/03ff, that say
// which number an instance has. The hash of its name selects the bucket. A store cannot
// delete, and instances are named after containers, which come and go. So the number of
// buckets is fixed, and entries of instances that are gone are dropped.
//
//	{"machines":{"10.0.0.1:8080":7}}
//
// # Why an instance has one number
//
// An instance's bucket is written before its machine, and again after it; the number
// is assigned once the second write is confirmed. Several servers may serve the same
// instance at the same time, for example when a client retries. All of them must write the
// same bucket, from the revision they have read. Those that lose read again, find what was
// written, and return the extra number if they hold one. A server that ends between the
// writes leaves a bucket that lists a machine held or free, and the next call continues
// from there.
//
// # Confirmed writes
//
// Only a write that the store has confirmed counts. A read alone decides nothing, because
// it may show a write that the store is about to lose. A number is assigned only after its
// machine and its bucket were both written and confirmed, over the revisions that were read.
// Before one register is changed because of the content of another, the other is rewritten
// unchanged, so that its content is confirmed: a number is freed because the bucket lists
// another number; an instance is dropped from a bucket, or gets another number, because it
// does not hold the one it had. Answers that assign nothing, such as [ErrOverflow], need no write.
//
// # Clocks
//
// Stamps are read from the store's clock if it has one, else from the server's; never from
// the client's. So a client whose clock is wrong neither takes a number that is in use
// nor loses its own. Stamps only decide when a silent holder has lost its number. A server
// whose clock differs from the store's by more than the tolerance returns an error
// that names both, and changes nothing.
//
// One danger remains: a client that was paused for longer than its safe-guard time issues
// ids before it learns that its number is lost. CosId's protocol has no fence against
// that; package lease has.
package registrar
