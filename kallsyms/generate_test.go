package kallsyms

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// bigList describes a synthetic symbol list: modules that are not sorted, long
// names, bpf programs, half a percent of duplicate names.
type bigList struct {
	symbols, modules, bpf int
	vmlinuxOnly           bool
}

// generate returns the text of l, the same every time.
func generate(l bigList) []byte {
	var w bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	vmlinux := l.symbols * 2 / 3
	if l.vmlinuxOnly {
		vmlinux = l.symbols
	}
	addr := uint64(0xffffffff81000000)
	for i := range vmlinux {
		addr += []uint64{16, 32, 64, 240}[r.IntN(4)]
		name := fmt.Sprintf("fn_%d_%s", i, strings.Repeat("x", 1+r.IntN(39)))
		if r.IntN(200) == 0 {
			name = fmt.Sprintf("dup_%d", i%97)
		}
		fmt.Fprintf(&w, "%016x %c %s\n", addr, "tTtTtTdDrRW"[r.IntN(11)], name)
	}
	for m := range l.modules {
		base := 0xffffffffc0000000 + uint64(r.IntN(1<<24))*64
		for i := range (l.symbols - vmlinux) / l.modules {
			fmt.Fprintf(&w, "%016x t m%d_fn_%d\t[mod_%d]\n", base+uint64(r.IntN(1<<16))*16, m, i, m)
		}
	}
	for i := range l.bpf {
		fmt.Fprintf(&w, "%016x t bpf_prog_%016x_p%d\t[bpf]\n",
			0xffffffffd0000000+uint64(r.IntN(1<<20))*64, r.Uint64(), i)
	}
	return w.Bytes()
}

// kernelList returns /proc/kallsyms if its addresses can be read, and else
// something of its size.
func kernelList(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile("/proc/kallsyms")
	if err == nil {
		if t, err := Parse(b, Options{}); err == nil && t.State() == Visible {
			return b
		}
	}
	return generate(bigList{symbols: 120_000, vmlinuxOnly: true})
}
