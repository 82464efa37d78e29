package console

import "github.com/firn-id/firn"

// idBits are the bits of an id beside the sign.
const idBits = 63

// A preset is a layout as the page knows it: what takes an id apart, and says what a layout can do.
type preset struct {
	Name          string `json:"name"`
	Text          string `json:"text"` // what ParseLayout reads
	Bits          string `json:"bits"`
	Time          int    `json:"time"` // without the sign's place
	Datacenter    int    `json:"datacenter"`
	Worker        int    `json:"worker"`
	Sequence      int    `json:"sequence"`
	SequenceFirst bool   `json:"sequence_first"`
	Unit          int64  `json:"unit_ns,string"`
	Epoch         int64  `json:"epoch_ms"`
	Remark        string `json:"remark"`
}

func presets() []preset {
	var all []preset
	for _, p := range firn.Presets() {
		c := p.Layout.Config()
		all = append(all, preset{
			Name: p.Name, Text: p.Layout.String(), Bits: p.Layout.Bits(),
			Time:       min(c.TimeBits, idBits-c.DatacenterBits-c.WorkerBits-c.SequenceBits),
			Datacenter: c.DatacenterBits, Worker: c.WorkerBits, Sequence: c.SequenceBits, SequenceFirst: c.SequenceFirst,
			Unit: int64(c.Unit), Epoch: c.Epoch.UnixMilli(), Remark: p.Remark,
		})
	}
	return all
}
