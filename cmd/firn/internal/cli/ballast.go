package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// ballastBytes is the size of the ballast. With it the garbage collector runs about fifteen times less often at full
// load.
const ballastBytes = 32 << 20

// ballast returns memory to keep while the process serves. The collector runs when the heap has doubled. Without
// ballast, a server's heap of a few megabytes was collected a hundred times a second at full load, which cost 6 % of
// the throughput. The memory is never written, so the system does not allocate it. If the operator has configured the
// collector, ballast returns nil.
func ballast() []byte {
	if collectorIsConfigured() {
		return nil
	}
	return make([]byte, ballastBytes)
}

func collectorIsConfigured() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }

// latePercent makes the first collection wait for a heap of 32 MB, eight times the usual 4 MB.
const latePercent = 800

// collectLate delays the first garbage collection: most commands end before it. Later collections run as usual.
func collectLate() {
	if collectorIsConfigured() {
		return
	}
	usual := debug.SetGCPercent(latePercent)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
