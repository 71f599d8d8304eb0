package kallscope_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/container"
	"github.com/kallscope/kallscope/internal/tracefs"
	"github.com/kallscope/kallscope/kallsyms"
)

// A format is a kind of file that comes from outside.
type format struct {
	name  string
	magic string // what a random file must begin with to get past the first check
	good  []byte // a real one
	parse func([]byte) error
	// wholeOnly: a file that is cut is an error wherever the cut is.
	wholeOnly bool
	// checked: one changed bit is an error wherever it is.
	checked bool
}

// formats makes real files of a real kernel.
func formats(t *testing.T) []format {
	t.Helper()
	snapshot, err := os.ReadFile("testdata/snapshots/6.12.ksnap")
	qt.Assert(t, qt.IsNil(err))
	section := func(name string) []byte {
		f, err := container.Open(bytes.NewReader(snapshot), int64(len(snapshot)), container.Options{Kind: "snapshot", Version: 1})
		qt.Assert(t, qt.IsNil(err))
		data, err := f.Section(name).Bytes(64 << 20)
		qt.Assert(t, qt.IsNil(err))
		return data
	}
	k, err := kallscope.OpenBytes(snapshot)
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(query("tcp_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	var plan, sites, names bytes.Buffer
	qt.Assert(t, qt.IsNil(p.Encode(&plan)))
	for _, target := range p.Targets {
		fmt.Fprintf(&sites, "%016x %s\n", target.Addr+4, target.Name)
		fmt.Fprintf(&names, "%s\n", target.Name)
	}
	symbols := func(o kallsyms.Options) func([]byte) error {
		return func(b []byte) error {
			_, err := kallsyms.Read(bytes.NewReader(b), o)
			return err
		}
	}
	return []format{
		{name: "kallsyms", good: section("symbols.vmlinux"), parse: symbols(kallsyms.Options{})},
		{name: "copied kallsyms", good: section("symbols.vmlinux"), parse: symbols(kallsyms.Options{Lenient: true})},
		{name: "BTF", magic: "\x9f\xeb\x01\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x05\x00\x00\xf0\x05\x00\x00\x01\x00", good: section("btf:vmlinux"), parse: parseBTF, wholeOnly: true},
		{name: "snapshot", magic: string(snapshot[:16]), good: snapshot, parse: parseSnapshot, wholeOnly: true, checked: true},
		{name: "sites", good: sites.Bytes(), parse: parseSites(true)},
		{name: "names of sites", good: names.Bytes(), parse: parseSites(false)},
		{name: "kprobe blacklist", good: section("kprobe-blacklist"), parse: func(b []byte) error {
			_, err := tracefs.ReadBlacklist(bytes.NewReader(b))
			return err
		}},
		{name: "plan", magic: `{"schema":"kallscope.plan/1","targets":[`, good: plan.Bytes(), wholeOnly: true, parse: func(b []byte) error {
			_, err := kallscope.DecodePlan(bytes.NewReader(b))
			return err
		}},
	}
}

// parseBTF also asks what a plan asks of some functions.
func parseBTF(data []byte) error {
	b, err := btfscan.Parse(data, nil)
	if err != nil {
		return err
	}
	for i := range min(b.FuncCount(), 50) {
		_, _ = b.Prototype(b.Func(i))
		_, _ = b.Shape(b.Func(i).Proto)
	}
	if p := b.Partial(); p != nil {
		return p
	}
	return nil
}

func parseSnapshot(data []byte) error {
	k, err := kallscope.OpenBytes(data)
	if err != nil {
		return err
	}
	_, err = k.Plan(query("vfs_*"), kallscope.PlanOptions{})
	return err
}

func parseSites(withAddrs bool) func([]byte) error {
	return func(b []byte) error {
		return tracefs.ReadSites(bytes.NewReader(b), withAddrs, func(tracefs.Site) bool { return true })
	}
}

// allocated returns what f allocates in all, which is no less than its peak.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRandomFiles: 100 MB of random bytes are an error, and cost little memory: what is
// allocated in all is most of it for messages about lines.
func TestRandomFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 100 MB eight times")
	}
	noise := make([]byte, 100<<20)
	_, err := rand.NewChaCha8([32]byte{1}).Read(noise)
	qt.Assert(t, qt.IsNil(err))
	for _, f := range formats(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, magic := range slices.Compact([]string{"", f.magic}) {
				data := slices.Concat([]byte(magic), noise[len(magic):])
				var err error
				n := allocated(func() { err = f.parse(data) })
				qt.Check(t, qt.IsNotNil(err))
				qt.Check(t, qt.IsTrue(n < uint64(len(data))/3), qt.Commentf("%d bytes allocated; %.200v", n, err))
				qt.Check(t, qt.IsTrue(len(fmt.Sprint(err)) < 1000))
			}
		})
	}
}

// TestDamagedFiles: real files that are cut, and that have other bits, are read
// or are an error; a cut or a changed bit that the format can notice is one.
func TestDamagedFiles(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	for _, f := range formats(t) {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			qt.Assert(t, qt.IsNil(f.parse(f.good)))
			good := allocated(func() { _ = f.parse(f.good) })
			check := func(what string, data []byte, mustFail bool) {
				var err error
				n := allocated(func() { err = f.parse(data) })
				if err == nil && mustFail {
					t.Errorf("%s: no error", what)
				}
				if n > 4*good+16<<20 {
					t.Errorf("%s: %d bytes allocated, %d for the whole file; %v", what, n, good, err)
				}
			}
			for range rounds {
				cut := r.IntN(len(f.good))
				check(fmt.Sprintf("cut at %d", cut), f.good[:cut], f.wholeOnly && len(bytes.TrimSpace(f.good[cut:])) > 0)
				data := bytes.Clone(f.good)
				bit := r.IntN(8 * len(data))
				data[bit/8] ^= 1 << (bit % 8)
				check(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), data, f.checked)
				for range 20 {
					data[r.IntN(len(data))] ^= 1 << r.IntN(8)
				}
				check("many bits", data, false)
			}
		})
	}
}
