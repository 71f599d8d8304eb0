// Package count counts calls per target with one BPF program and one mapped
// array of counters, which is read without a system call.
package count

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/bpf"
	"github.com/kallscope/kallscope/internal/feature"
	"github.com/kallscope/kallscope/internal/observe/slots"
)

// Options choose what is counted.
type Options struct {
	// PID restricts counting to the threads of one process, by its number in
	// the pid namespace of this process; 0 counts all.
	PID int
}

// A Counter holds the maps of one count. It is made before attaching, and
// closed after detaching.
type Counter struct {
	targets int
	cpus    int
	stride  int

	entry    *ebpf.ProgramSpec
	session  *ebpf.ProgramSpec
	coll     *ebpf.Collection
	counters []uint64 // mapped: [cpu][target], 0 for hits of unknown target
	memory   []byte
}

// MaxTargets is the largest plan that can be counted.
const MaxTargets = 1 << 17

// New makes the maps for a plan: 8 bytes a target and possible CPU, rounded up
// to pages, and with many targets in vmlinux the table of slots, about 4 MiB.
func New(plan *kallscope.Plan, o Options) (_ *Counter, err error) {
	if len(plan.Targets) > MaxTargets {
		return nil, fmt.Errorf("count: %d targets are more than %d; narrow the patterns", len(plan.Targets), MaxTargets)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	c := &Counter{targets: len(plan.Targets), cpus: cpus, stride: strideOf(len(plan.Targets))}
	spec, err := loadCount()
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	c.entry, c.session = spec.Programs["kallscope_entry"], spec.Programs["kallscope_session"]
	spec.Programs = nil
	table := slots.New(plan.Targets)
	set := settings{table: table, reentrant: slices.ContainsFunc(plan.Targets, isReentrant), pid: o.PID}
	if err := c.configure(spec, set); err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	if c.coll, err = bpf.Charged(func() (*ebpf.Collection, error) { return ebpf.NewCollection(spec) }); err != nil {
		return nil, fmt.Errorf("count: %w", mapError(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := table.Fill(c.coll.Maps["slots"]); err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	return c, c.mapCounters()
}

// strideOf returns the counters of one CPU: one for each target and one for
// hits whose target is not known, up to whole pages, so that no two CPUs
// share a cache line or a page.
func strideOf(targets int) int {
	perPage := os.Getpagesize() / 8
	return (targets + 1 + perPage - 1) / perPage * perPage
}

// settings are what the program knows when it loads.
type settings struct {
	table     *slots.Table
	reentrant bool
	pid       int
}

// isReentrant reports whether a target's program may interrupt itself on the
// kernels that have its mechanism.
func isReentrant(t kallscope.Target) bool { return t.Mechanism.ByBTF() && t.Mechanism.PerFunction() }

func (c *Counter) configure(spec *ebpf.CollectionSpec, s settings) error {
	spec.Maps["counts"].MaxEntries = uint32(c.cpus * c.stride)
	spec.Maps["slots"].ValueSize = uint32(max(s.table.Len(), 1)) * 4
	set := map[string]any{
		"stride":     uint32(c.stride),
		"reentrant":  s.reentrant,
		"text_base":  s.table.Base,
		"slot_count": uint32(s.table.Len()),
		"slot_shift": uint32(slots.Shift),
		"tgid":       uint32(s.pid),
	}
	if s.pid != 0 {
		dev, ino, err := pidNamespace()
		if err != nil {
			return err
		}
		set["pidns_dev"], set["pidns_ino"] = dev, ino
	}
	for name, value := range set {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// initPIDNamespace is PROC_PID_INIT_INO in include/linux/proc_ns.h.
const initPIDNamespace = 0xEFFFFFFC

// pidNamespace returns what bpf_get_ns_current_pid_tgid() wants to know, or
// zeros in the initial namespace, where the global number is the right one.
func pidNamespace() (dev, ino uint64, err error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, 0, fmt.Errorf("pid namespace: %w", err)
	}
	if st.Ino == initPIDNamespace {
		return 0, 0, nil
	}
	return uint64(st.Dev), st.Ino, nil
}

// mapError puts right what cilium/ebpf says of EPERM, and says what is short.
func mapError(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("create maps: %w (EPERM); %s", unix.EPERM, feature.WhyDenied("/"))
	}
	if errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("create maps: %w: not enough memory, or not in this process's cgroup; narrow the patterns", unix.ENOMEM)
	}
	return err
}

func (c *Counter) mapCounters() error {
	size := c.cpus * c.stride * 8
	mem, err := unix.Mmap(c.coll.Maps["counts"].FD(), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("count: map counters: %w", err)
	}
	c.memory = mem
	c.counters = unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), size/8)
	return nil
}

// Programs returns what to attach.
func (c *Counter) Programs() attach.Programs {
	return attach.Programs{Entry: c.entry, Return: c.entry, Session: c.session, Maps: c.coll.Maps}
}

// Start makes the program count.
func (c *Counter) Start() error { return c.coll.Variables["ready"].Set(true) }

// Stop makes the program stop counting; the counts stay.
func (c *Counter) Stop() error { return c.coll.Variables["ready"].Set(false) }

// Counts adds up the calls of each target over all CPUs, by index in the plan,
// into dst, which is grown as needed. It makes no system call: 40,000 targets
// on 8 CPUs are 2.6 MB to read. CPUs go on counting meanwhile.
func (c *Counter) Counts(dst []uint64) []uint64 {
	dst = append(dst[:0], make([]uint64, c.targets)...)
	for cpu := range c.cpus {
		row := c.counters[cpu*c.stride+1:][:c.targets]
		for i, n := range row {
			dst[i] += n
		}
	}
	return dst
}

// Unknown returns the hits whose target could not be told.
func (c *Counter) Unknown() uint64 {
	var n uint64
	for cpu := range c.cpus {
		n += c.counters[cpu*c.stride]
	}
	return n
}

// Close releases the maps. Counts must not be called afterwards.
func (c *Counter) Close() error {
	var err error
	if c.memory != nil {
		err = unix.Munmap(c.memory)
		c.memory, c.counters = nil, nil
	}
	c.coll.Close()
	return err
}
