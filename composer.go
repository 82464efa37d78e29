package firn

// A composer turns a position into an id of one worker. It computes the shifts once. It has no
// more than four fields, so that the compiler can keep it in registers. A position is tick << sequenceBits | sequence: the number a generator counts.
type composer struct {
	machine   uint64 // datacenter and worker in place
	seqBits   uint8
	timeShift uint8
	seqShift  uint8
}

// newComposer expects a datacenter and a worker that fit their fields.
func newComposer(l Layout, datacenter, worker int64) composer {
	c := composer{
		seqBits:   l.sequence,
		timeShift: l.datacenter + l.worker + l.sequence,
	}
	machine := uint64(datacenter)<<l.worker | uint64(worker)
	if l.sequenceFirst {
		c.machine, c.seqShift = machine, l.datacenter+l.worker
	} else {
		c.machine = machine << l.sequence
	}
	return c
}

// id composes the id at a position. The shift counts are below 64 anyway; masking
// them makes the compiler omit its check for that.
func (c composer) id(position uint64) ID {
	return ID(position>>(c.seqBits&63)<<(c.timeShift&63) |
		(position&c.seqMask())<<(c.seqShift&63) |
		c.machine)
}

// seqMask returns the greatest sequence.
func (c composer) seqMask() uint64 { return 1<<(c.seqBits&63) - 1 }
