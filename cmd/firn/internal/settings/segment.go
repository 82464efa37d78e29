package settings

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/segment"
)

// segments makes numbers from ranges of a counter.
var segments = &Kind{
	Name: "segment", Source: Ranges, Numeric: true, fixed: []string{"offset", "stride"}, settings: []any{Segment{}, Counted{}, Veiled{}, Prefixed{}},
	Makes: func(n Namespace) string {
		if n.Stride > 1 {
			return fmt.Sprintf("%s with remainder %d modulo %d", countedNumbers, n.Offset, n.Stride)
		}
		return countedNumbers
	},
	Number: func(n Namespace) func(firn.ID) (decode.Contents, error) {
		return func(id firn.ID) (decode.Contents, error) {
			stride := firn.ID(max(n.Stride, 1))
			if id%stride != firn.ID(n.Offset) {
				return decode.Contents{}, fmt.Errorf("%d has remainder %d modulo %d: a namespace with another offset made it", id, id%stride, stride)
			}
			return counted(n, id)
		}
	},
	check: func(n Namespace, found Mistakes) { found.place(n.Of(), n.SegmentConfig().Check()) },
}

// Segment has the settings of segments.
type Segment struct {
	MinStep int64    `yaml:"min_step" unset:"1000, or max_step if that is less" example:"1000" allowed:"1 to 1099511627776" help:"how many ids a range has at least"`
	MaxStep int64    `yaml:"max_step" unset:"1000000, or min_step if that is more" example:"1000000" allowed:"min_step to 1099511627776" help:"how many ids a range has at most"`
	Target  Duration `yaml:"target" default:"15m" is:"duration" allowed:"1ms to 720h" example:"15m" help:"how long a range should last: ranges grow and shrink with demand"`
	Stride  int64    `yaml:"stride" flag:"stride" default:"1" is:"stride" allowed:"1 to 1048576" example:"2" help:"distance between ids, if several independent stores serve one name"`
	Offset  int64    `yaml:"offset" flag:"offset" default:"0" is:"offset" allowed:"whole numbers below the stride" example:"1" help:"remainder of ids modulo stride, different on each store"`
}

// SegmentConfig returns the configuration of a segment without its store.
func (n Namespace) SegmentConfig() segment.Config {
	n = n.filled()
	return segment.Config{
		MinStep: n.MinStep, MaxStep: n.MaxStep, Target: time.Duration(n.Target), Start: n.From, MustExist: n.MustExist, Max: n.Veil.most(), Offset: n.Offset, Stride: n.Stride,
	}
}
