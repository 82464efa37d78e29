// Package registrar hands out machine numbers, as CosId's proxy does: to an
// instance the number it had, else one that was given back, else one never used,
// else one whose holder has been silent for longer than its safe-guard time.
// All state is in a store; any number of servers may work on it at once, and
// one that is restarted continues where others are.
//
// # What the store has
//
// One register for each machine number, firn/cosid:NAMESPACE/machine/00000007:
//
//	{"instance":"10.0.0.1:8080","held":true,"guard":300000,"stamp":1795260245263}
//
// It alone says who holds the number. Compare-and-swap orders all changes of it, so
// no two instances ever hold one number: in that no clock and no time-out takes
// part. A register for each number, not one for all of them: a guard then changes
// a hundred bytes that nobody else changes, also with 65,536 machines in a namespace,
// which would not fit a value.
//
// And 1,024 registers, firn/cosid:NAMESPACE/instance/03ff, that say which number an
// instance has, each for the instances whose names hash to it. A store
// has no deletion, and instances are named after containers, which come and go: so
// their number is fixed, and what they say of instances that are gone is dropped.
//
//	{"machines":{"10.0.0.1:8080":7}}
//
// # Why an instance has one number
//
// An instance's place is written before its machine, and once more after it; the
// second write is what makes the answer true. Servers that serve the same instance at
// once, a client's second try beside its first, all have to write that one register,
// from the revision they began with: those who lose look again, find what was
// written, and give the number back that they hold besides, if any. A server that ends
// between leaves a place that points to a machine held or free, and the
// next call goes on from there.
//
// # What counts
//
// A write counts once the store has confirmed it; a read decides nothing by itself, since
// it may show a write that the store is about to lose. A number is given only after its
// machine and its place were both written and confirmed, over what was read. Where what
// one register says has another one changed, the first is written again, as it is, before:
// a number is freed because the place says another, an instance is dropped from a place or
// moved to another number because it does not hold the one it had. Answers that give nothing,
// as that no number is left, need no write.
//
// # Clocks
//
// Stamps are the store's clock, where it has one, else the server's; never the
// client's. So a client whose clock is wrong neither takes a number that is in use
// nor loses its own. They decide only when a silent holder has lost its
// number. A server whose clock and the store's differ by more than the tolerance
// gives an error that names both and changes nothing.
//
// What is not seen here: a client that was stopped for longer than its safe-guard
// time and goes on before it has heard that its number is lost. CosId's protocol has
// no fence against that; see package lease for one that has.
package registrar
