package kimage

import (
	"fmt"
	"slices"
)

// Sites are the places that ftrace patches: what
// available_filter_functions_addrs (v6.5) lists, and a few more.
type Sites struct {
	// Addrs are the addresses, rising. Unlike the list of a running kernel they
	// have the functions of .init.text too, which that gives up when it has
	// started, and what is left of weak functions that were replaced, which it
	// shows as __ftrace_invalid_address__.
	Addrs []uint64
	// Dropped counts records of replaced weak functions that the kernel's build
	// has cleared (since v6.15, and where that was taken over).
	Dropped int
}

// Sites returns the sites of vmlinux, by the symbols around __mcount_loc. It
// fails with [ErrAbsent] without them: the kernel has no dynamic ftrace, or
// lists functions only (CONFIG_KALLSYMS_ALL=n).
func (im *Image) Sites() (Sites, error) { return im.sites() }

func (im *Image) readSites() (Sites, error) {
	marks, err := im.marks()
	if err != nil {
		return Sites{}, err
	}
	from, to, ok := marks.bounds("__start_mcount_loc", "__stop_mcount_loc")
	if !ok {
		return Sites{}, fmt.Errorf("symbols __start_mcount_loc, __stop_mcount_loc: %w (CONFIG_DYNAMIC_FTRACE or CONFIG_KALLSYMS_ALL is off)", ErrAbsent)
	}
	words, err := im.file.space.words(from, to)
	if err != nil {
		return Sites{}, fmt.Errorf("ftrace sites: %w", err)
	}
	list := Sites{Addrs: slices.DeleteFunc(words, func(a uint64) bool { return a == 0 })}
	list.Dropped = int((to-from)/8) - len(list.Addrs)
	if im.file.arch == "arm64" {
		im.file.space.adjustARM64(list.Addrs)
	}
	if !slices.IsSorted(list.Addrs) {
		slices.Sort(list.Addrs)
	}
	return list, nil
}

// Instructions of arm64.
const (
	arm64NOP = 0xd503201f
	arm64BTI = 0xd503245f // bti c
)

// adjustARM64 makes sites of what the compiler noted, as ftrace_call_adjust()
// in arch/arm64/kernel/ftrace.c does. It noted the first of the NOPs that it
// left: two behind the entry and its BTI, the second of which is patched, and
// with CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS (v6.3) two more in front of the
// entry, then noted instead.
func (s *space) adjustARM64(addrs []uint64) {
	before := 0
	for _, a := range addrs {
		if op := s.opcode(a + 8); op == arm64NOP || op == arm64BTI {
			before++
		}
	}
	// What follows two NOPs behind an entry is hardly ever a NOP.
	inFront := before > len(addrs)/2
	for i := range addrs {
		if inFront {
			addrs[i] += 8
			if s.opcode(addrs[i]) == arm64BTI {
				addrs[i] += 4
			}
		}
		addrs[i] += 4
	}
}

// opcode returns the instruction at addr, zero if the file has none there.
func (s *space) opcode(addr uint64) uint32 {
	b, err := s.bytes(addr, addr+4)
	if err != nil {
		return 0
	}
	return s.order.Uint32(b)
}
