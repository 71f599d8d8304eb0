package kallsyms

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
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

// TestGenerated reads the list once, from front to back, however many names are
// looked up then, and allocates for pieces of it, not for lines.
func TestGenerated(t *testing.T) {
	text := generate(bigList{symbols: 300_000, modules: 400, bpf: 5000})
	r := &countingReader{r: bytes.NewReader(text)}
	table, err := Read(r, Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(table.Len(), bytes.Count(text, []byte{'\n'})))
	qt.Assert(t, qt.Equals(r.n, len(text)))
	found := 0
	for i := 0; i < table.Len(); i += 5 {
		found += len(table.ByName(table.Name(i)))
	}
	qt.Assert(t, qt.IsTrue(found >= table.Len()/5))
	qt.Assert(t, qt.Equals(r.n, len(text)))
	allocs := testing.AllocsPerRun(1, func() {
		if _, err := Parse(text, Options{}); err != nil {
			t.Fatal(err)
		}
	})
	qt.Assert(t, qt.IsTrue(allocs < float64(table.Len())/50), qt.Commentf("%v allocations", allocs))
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}
