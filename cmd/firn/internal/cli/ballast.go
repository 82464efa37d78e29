package cli

import "os"

// ballastBytes is so much that the collector runs some fifteen times less often at full load.
const ballastBytes = 32 << 20

// ballast returns memory to be kept while the process serves. It is never written, so
// that the system never has to find it; but the collector, which runs when the heap has
// doubled, waits until as much has been used. A heap of a few megabytes, as a server's
// is, would else be collected a hundred times a second at full load, which took 6 % of
// the throughput. Where the operator has set how the collector is to run, there is none.
func ballast() []byte {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return nil
		}
	}
	return make([]byte, ballastBytes)
}
