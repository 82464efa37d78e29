package wallclock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Supported reports whether clocks can be moved on this system.
func Supported() bool { return true }

// routine takes the place of clock_gettime(edi: clock, rsi: where the time goes). It
// goes to the unused end of the vDSO's last page, with the seconds and nanoseconds to
// add behind it. The function itself gets a jump to it and is otherwise left as it is,
// since a thread that a signal interrupted there returns to it.
var routine = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, //              mov  $228, %eax        clock_gettime
	0x0f, 0x05, //                                syscall
	0x85, 0xc0, //                                test %eax, %eax
	0x75, 0x35, //                                jne  done
	0x85, 0xff, //                                test %edi, %edi        CLOCK_REALTIME
	0x74, 0x05, //                                je   add
	0x83, 0xff, 0x05, //                          cmp  $5, %edi          CLOCK_REALTIME_COARSE
	0x75, 0x2c, //                                jne  done
	0x48, 0x8b, 0x0d, 0x2d, 0x00, 0x00, 0x00, // add:  mov  seconds(%rip), %rcx
	0x48, 0x01, 0x0e, //                          add  %rcx, (%rsi)
	0x48, 0x8b, 0x0d, 0x2b, 0x00, 0x00, 0x00, //  mov  nanoseconds(%rip), %rcx
	0x48, 0x03, 0x4e, 0x08, //                    add  8(%rsi), %rcx
	0x48, 0x81, 0xf9, 0x00, 0xca, 0x9a, 0x3b, //  cmp  $1000000000, %rcx
	0x7c, 0x0a, //                                jl   store
	0x48, 0x81, 0xe9, 0x00, 0xca, 0x9a, 0x3b, //  sub  $1000000000, %rcx
	0x48, 0xff, 0x06, //                          incq (%rsi)
	0x48, 0x89, 0x4e, 0x08, //             store: mov  %rcx, 8(%rsi)
	0xc3,                                     // done:  ret
	0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00, // align 8
}

const (
	// A thread between these has read the seconds and not yet the nanoseconds.
	readSeconds = 0x1b
	readBoth    = 0x25

	jumpSize = 5
)

// patch is the routine with an offset behind it.
func patch(offset time.Duration) []byte {
	seconds, rest := offset/time.Second, offset%time.Second
	if rest < 0 {
		seconds, rest = seconds-1, rest+time.Second
	}
	p := binary.LittleEndian.AppendUint64(bytes.Clone(routine), uint64(seconds))
	return binary.LittleEndian.AppendUint64(p, uint64(rest))
}

// Move sets by how much the wall clock of a running process is ahead of this
// machine's; 0 puts it right. The process stands still for that moment.
func Move(pid int, offset time.Duration) (err error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("wallclock: %w", err)
	}
	defer func() { err = errors.Join(err, mem.Close()) }()
	v, err := find(pid, mem)
	if err != nil {
		return fmt.Errorf("wallclock: process %d: %w", pid, err)
	}
	if err := stopOutside(pid, v); err != nil {
		return errors.Join(fmt.Errorf("wallclock: process %d: %w", pid, err), resume(pid))
	}
	_, err = mem.WriteAt(patch(offset), v.routine)
	if err == nil {
		jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(v.routine-v.function-jumpSize))
		_, err = mem.WriteAt(jump, v.function)
	}
	return errors.Join(err, resume(pid))
}

// A vdso is where a process has clock_gettime, and where its replacement goes.
type vdso struct{ function, routine int64 }

// busy reports whether a thread that stands at an address stands in the way.
func (v vdso) busy(at int64) bool {
	return at > v.function && at < v.function+jumpSize || at >= v.routine+readSeconds && at < v.routine+readBoth
}

// find finds the vDSO in the memory map of a process.
func find(pid int, mem io.ReaderAt) (v vdso, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return v, err
	}
	var from, to int64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				return v, fmt.Errorf("memory map: %q: %w", line, err)
			}
		}
	}
	if to == 0 {
		return v, errors.New("it has no vDSO")
	}
	image := make([]byte, to-from)
	if _, err := mem.ReadAt(image, from); err != nil {
		return v, fmt.Errorf("read the vDSO: %w", err)
	}
	function, err := clockGettime(image)
	if err != nil {
		return v, fmt.Errorf("the vDSO: %w", err)
	}
	end := image[len(image)-len(patch(0)):]
	if !bytes.HasPrefix(end, routine) && !bytes.Equal(end, make([]byte, len(end))) {
		return v, errors.New("the vDSO has no room at its end")
	}
	return vdso{function: from + function, routine: to - int64(len(end))}, nil
}

// clockGettime finds the function in the image of a vDSO.
func clockGettime(image []byte) (int64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return int64(s.Value), nil
		}
	}
	return 0, errors.New("no clock_gettime")
}

// tries bounds how often a process is stopped until no thread stands in the way.
const tries = 100

// stopOutside stops a process while no thread executes what is to be replaced.
func stopOutside(pid int, v vdso) error {
	for range tries {
		if err := Stop(pid); err != nil {
			return err
		}
		inside, err := anyThread(pid, "syscall", func(text string) (bool, error) {
			fields := strings.Fields(text)
			last := fields[len(fields)-1] // the instruction it stands at
			if last == "running" {        // it has not come to a halt
				return true, nil
			}
			at, err := strconv.ParseInt(strings.TrimPrefix(last, "0x"), 16, 64)
			return v.busy(at), err
		})
		if err != nil || !inside {
			return err
		}
		if err := resume(pid); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("a thread stood in the way each time of %d", tries)
}
