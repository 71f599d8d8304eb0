package kimage_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/kcore"
	"github.com/kallscope/kallscope/internal/testutil"
	"github.com/kallscope/kallscope/internal/tracefs"
	"github.com/kallscope/kallscope/kallsyms"
	"github.com/kallscope/kallscope/kimage"
)

const (
	// gotest guest copies the kernel's own file there.
	guestImage = "/boot/vmlinuz"
	// The file that the module was loaded from.
	guestModule = "/lib/modules/*/kernel/net/netfilter/nf_conntrack.ko"
)

// readGuest opens the file of the kernel that runs, and reads that kernel's
// symbols, those of modules included: once, as it takes ten seconds under
// emulation.
var readGuest = sync.OnceValues(func() (*kimage.Image, *kallsyms.Table) {
	im, err := kimage.Open(guestImage)
	if err != nil {
		panic(err)
	}
	live, err := kallsyms.ReadFile("/proc/kallsyms", kallsyms.Options{})
	if err != nil {
		panic(err)
	}
	return im, live
})

func openGuest(t *testing.T) (*kimage.Image, *kallsyms.Table) {
	t.Helper()
	testutil.Guest(t)
	return readGuest()
}

// slideOf returns what KASLR added.
func slideOf(t *testing.T, im *kimage.Image, live *kallsyms.Table) uint64 {
	t.Helper()
	text, err := im.Text()
	qt.Assert(t, qt.IsNil(err))
	at := live.ByName("_text")
	qt.Assert(t, qt.HasLen(at, 1))
	return live.Addr(at[0]) - text
}

// TestGuestSymbols: the table in the file is that of the running kernel, line by
// line.
func TestGuestSymbols(t *testing.T) {
	im, live := openGuest(t)
	table, err := im.Symbols()
	qt.Assert(t, qt.IsNil(err))
	slide := slideOf(t, im, live)
	perCPU, wrong := 0, 0
	want := slices.Collect(live.InModule(""))
	qt.Assert(t, qt.Equals(table.Len(), len(want)))
	for i := range table.Len() {
		s := table.Symbol(i)
		if s.Addr < 1<<20 {
			perCPU++
		} else {
			s.Addr += slide
		}
		if l := live.Symbol(want[i]); s != l {
			if wrong++; wrong < 20 {
				t.Errorf("symbol %d: %v, the running kernel has %v", i, s, l)
			}
		}
	}
	fmt.Printf("%s: %d symbols equal those of the running kernel, shifted by %#x but for %d per-CPU ones\n", im.Format(), table.Len()-wrong, slide, perCPU)
}

func TestGuestIdentity(t *testing.T) {
	im, _ := openGuest(t)
	release, err := im.Release()
	qt.Assert(t, qt.IsNil(err))
	want, err := os.ReadFile("/proc/sys/kernel/osrelease")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(release, strings.TrimSpace(string(want))))
	qt.Check(t, qt.Equals(im.Arch(), "amd64"))

	id, err := im.BuildID()
	qt.Assert(t, qt.IsNil(err))
	notes, err := os.ReadFile("/sys/kernel/notes")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(id, 40))
	qt.Check(t, qt.StringContains(fmt.Sprintf("%x", notes), id))
}

func TestGuestBTF(t *testing.T) {
	im, _ := openGuest(t)
	b, err := im.BTF()
	qt.Assert(t, qt.IsNil(err))
	want, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Equal(b.Data, want)), qt.Commentf("%d bytes, the running kernel has %d", len(b.Data), len(want)))
	fmt.Printf("%d bytes of BTF\n", len(want))
}

// TestGuestSites: the running kernel has the sites of the file but for those of
// code that it gave up when it had started.
func TestGuestSites(t *testing.T) {
	im, live := openGuest(t)
	sites, err := im.Sites()
	qt.Assert(t, qt.IsNil(err))
	slide := slideOf(t, im, live)
	want := liveSites(t, live)
	in := func(a uint64, start, end string) bool {
		from, to := live.ByName(start), live.ByName(end)
		return len(from) == 1 && len(to) == 1 && live.Addr(from[0]) <= a && a < live.Addr(to[0])
	}
	started := 0
	for _, a := range sites.Addrs {
		a += slide
		if want[a] {
			delete(want, a)
			continue
		}
		if !in(a, "_sinittext", "_einittext") {
			t.Errorf("site %#x is in the file only", a)
		}
		started++
	}
	for a := range want {
		t.Errorf("site %#x is in the running kernel only", a)
	}
	fmt.Printf("%d sites: %d in the running kernel too, %d of its start; %d dropped by the build\n", len(sites.Addrs), len(sites.Addrs)-started, started, sites.Dropped)
}

// liveSites returns the sites of vmlinux: from the list, or from memory on
// kernels whose list has no addresses.
func liveSites(t *testing.T, live *kallsyms.Table) map[uint64]bool {
	t.Helper()
	sites := make(map[uint64]bool)
	f, err := os.Open("/sys/kernel/tracing/" + tracefs.SitesFile)
	if err != nil {
		testutil.NotOn(t, err, "6.12", "7.3")
		for _, a := range sitesFromMemory(t, live) {
			// Modules come before vmlinux on x86-64, where KASLR is off or on.
			if s := live.ByName("_text"); a >= live.Addr(s[0]) && a < live.Addr(live.ByName("_einittext")[0]) {
				sites[a] = true
			}
		}
		return sites
	}
	defer f.Close()
	qt.Assert(t, qt.IsNil(tracefs.ReadSites(f, true, func(s tracefs.Site) bool {
		if len(s.Module) > 0 {
			return false
		}
		sites[s.Addr] = true
		return true
	})))
	return sites
}

func sitesFromMemory(t *testing.T, live *kallsyms.Table) []uint64 {
	t.Helper()
	b, err := btfscan.Open("/sys/kernel/btf/vmlinux", nil)
	qt.Assert(t, qt.IsNil(err))
	mem, err := kcore.Open("/proc/kcore")
	qt.Assert(t, qt.IsNil(err))
	defer mem.Close()
	sites, err := mem.Sites(live.Addr(live.ByName("ftrace_pages_start")[0]), b.BTF)
	qt.Assert(t, qt.IsNil(err))
	return sites
}

// TestGuestBlacklist: the list in debugfs, as far as it is of vmlinux.
func TestGuestBlacklist(t *testing.T) {
	im, live := openGuest(t)
	list, err := im.KprobeBlacklist()
	qt.Assert(t, qt.IsNil(err))
	slide := slideOf(t, im, live)
	f, err := os.Open("/sys/kernel/debug/kprobes/blacklist")
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	all, err := tracefs.ReadBlacklist(f)
	qt.Assert(t, qt.IsNil(err))
	var want, got []string
	for _, r := range all {
		// The name is printed by address, with the module behind it.
		if !strings.Contains(r.Name, "[") {
			want = append(want, fmt.Sprintf("%#x-%#x %s", r.Start, r.End, r.Name))
		}
	}
	for _, r := range list {
		got = append(got, fmt.Sprintf("%#x-%#x %s", r.Start+slide, r.End+slide, r.Name))
	}
	fmt.Printf("%d ranges of the kprobe blacklist\n", len(got))
	slices.Sort(want)
	slices.Sort(got)
	qt.Assert(t, qt.DeepEquals(got, want))
}

// moduleOf opens the module in the guest.
func moduleOf(t *testing.T) *kimage.Module {
	t.Helper()
	files, err := filepath.Glob(guestModule)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(files, 1))
	m, err := kimage.OpenModule(files[0])
	qt.Assert(t, qt.IsNil(err))
	return m
}

// sectionOf returns where the running kernel put a section of a module.
func sectionOf(t *testing.T, module, section string) (uint64, bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/module", module, "sections", section))
	if err != nil {
		return 0, false
	}
	addr, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 64)
	qt.Assert(t, qt.IsNil(err))
	return addr, true
}

// TestGuestModuleSymbols: each symbol that the running kernel has of the module
// is in its file.
func TestGuestModuleSymbols(t *testing.T) {
	_, live := openGuest(t)
	m := moduleOf(t)
	symbols, err := m.Symbols()
	qt.Assert(t, qt.IsNil(err))
	got := make(map[kallsyms.Symbol]bool)
	for _, s := range symbols {
		if base, ok := sectionOf(t, m.Name(), s.Section); ok {
			got[kallsyms.Symbol{Addr: base + s.Value, Type: s.Type, Name: s.Name, Module: m.Name()}] = true
		}
	}
	n := 0
	for i := range live.InModule(m.Name()) {
		s := live.Symbol(i)
		s.Type |= 0x20 // capital for exported ones
		if !kallsyms.IsText(s.Type) {
			continue
		}
		if n++; !got[s] {
			t.Errorf("%v is in the running kernel only", s)
		}
	}
	qt.Assert(t, qt.IsTrue(n > 50), qt.Commentf("%d symbols", n))
	fmt.Printf("%s: all %d functions of the running kernel are in its file\n", m.Name(), n)
}

func TestGuestModuleSites(t *testing.T) {
	_, live := openGuest(t)
	m := moduleOf(t)
	sites, err := m.Sites()
	qt.Assert(t, qt.IsNil(err))
	var got, want []uint64
	for _, s := range sites {
		if base, ok := sectionOf(t, m.Name(), s.Section); ok && s.Section != ".init.text" {
			got = append(got, base+s.Offset)
		}
	}
	from, _ := sectionOf(t, m.Name(), ".text")
	all := sitesFromMemory(t, live)
	low, high := slices.Min(got), slices.Max(got)
	qt.Assert(t, qt.IsTrue(from <= low))
	for _, a := range all {
		if low <= a && a <= high {
			want = append(want, a)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	qt.Assert(t, qt.DeepEquals(got, want))
	fmt.Printf("%s: %d sites\n", m.Name(), len(got))
}

func TestGuestModuleBTF(t *testing.T) {
	im, _ := openGuest(t)
	m := moduleOf(t)
	release, err := m.Release()
	qt.Assert(t, qt.IsNil(err))
	want, err := im.Release()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(release, want))

	id, err := m.BuildID()
	qt.Assert(t, qt.IsNil(err))
	note, err := os.ReadFile("/sys/module/" + m.Name() + "/notes/.note.gnu.build-id")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(fmt.Sprintf("%x", note), id))

	b, err := m.BTF()
	live, errLive := os.ReadFile("/sys/kernel/btf/" + m.Name())
	if errLive != nil {
		testutil.NotOn(t, errLive, "6.1", "6.12", "7.3")
		qt.Assert(t, qt.ErrorIs(err, kimage.ErrAbsent))
		return
	}
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Equal(b.Data, live)))
}
