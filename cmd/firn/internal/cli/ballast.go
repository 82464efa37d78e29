package cli

import "os"

// ballastBytes is the size of the ballast. With it the garbage collector runs about fifteen times less often at full
// load.
const ballastBytes = 32 << 20

// ballast returns memory to keep while the process serves. The collector runs when the heap has doubled. Without
// ballast, a server's heap of a few megabytes was collected a hundred times a second at full load, which cost 6 % of
// the throughput. The memory is never written, so the system does not allocate it. If the operator has configured the
// collector, ballast returns nil.
func ballast() []byte {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return nil
		}
	}
	return make([]byte, ballastBytes)
}
