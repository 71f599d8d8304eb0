package kallscope_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestGuestEveryBTFFunction: each BTF function of vmlinux is among the
// candidates for '*', by its symbols or by its id, and only once.
func TestGuestEveryBTFFunction(t *testing.T) {
	testutil.Guest(t)
	p := planGuest(t, "vmlinux:*")
	symbols, ids, entries := make(map[string]bool), make(map[uint32]int), make(map[uint64]int)
	for f := range p.Funcs() {
		if f.BTFID != 0 {
			ids[f.BTFID]++
			continue
		}
		entries[f.Addr]++
	}
	table, err := liveGuest(t).Symbols()
	qt.Assert(t, qt.IsNil(err))
	for _, s := range table.All() {
		if s.Module == "" && entries[s.Addr] > 0 {
			symbols[s.Name] = true
		}
	}
	for addr, n := range entries {
		if n != 1 {
			t.Errorf("%#x is in the plan %d times", addr, n)
		}
	}
	b, err := btfscan.Open("/sys/kernel/btf/vmlinux", nil)
	if os.IsNotExist(err) {
		t.Skip("this kernel has no BTF")
	}
	qt.Assert(t, qt.IsNil(err))
	defer b.Close()
	for fn := range b.Funcs() {
		if want := 1; symbols[fn.Name] && ids[fn.ID] == 0 || ids[fn.ID] == want && !symbols[fn.Name] {
			continue
		}
		t.Errorf("%s #%d: as a symbol %v, by id %d times", fn.Name, fn.ID, symbols[fn.Name], ids[fn.ID])
	}
	fmt.Printf("%s: %d BTF functions, %d without a symbol; %d targets, %d skipped\n",
		p.Kernel.Release, b.FuncCount(), len(ids), len(p.Targets), p.Skipped.Len())
}

// TestGuestSites: the ftrace records in memory are those of the list, except
// the left-overs of weak functions, which the list shows under made-up names.
func TestGuestSites(t *testing.T) {
	testutil.Guest(t)
	p := planGuest(t, "*")
	qt.Assert(t, qt.Equals(p.Facts.SitesFrom, "/proc/kcore"))
	if _, err := os.Stat("/sys/kernel/tracing/available_filter_functions_addrs"); err != nil {
		testutil.NotOn(t, err, "6.12", "7.3")
		compareNames(t, p)
		return
	}
	listed := planWithoutMemory(t)
	qt.Assert(t, qt.Equals(listed.Facts.SitesFrom, "/sys/kernel/tracing/available_filter_functions_addrs"))
	qt.Assert(t, qt.IsTrue(slices.Equal(p.Targets, listed.Targets)))
	qt.Assert(t, qt.IsTrue(slices.Equal(slices.Collect(p.Skipped.All()), slices.Collect(listed.Skipped.All()))))
}

// planWithoutMemory plans '*' with /proc/kcore out of reach.
func planWithoutMemory(t *testing.T) *kallscope.Plan {
	t.Helper()
	testutil.Cover(t, "/proc/kcore")
	return planGuest(t, "*")
}

// compareNames compares with the list of names of older kernels: every name of
// the list belongs to a target or to a function whose site is not certain.
func compareNames(t *testing.T, p *kallscope.Plan) {
	t.Helper()
	list, err := os.ReadFile("/sys/kernel/tracing/available_filter_functions")
	qt.Assert(t, qt.IsNil(err))
	want := make(map[string]int)
	for line := range strings.Lines(string(list)) {
		if !strings.HasPrefix(line, "__ftrace_invalid_address__") {
			want[strings.TrimSpace(line)]++
		}
	}
	table, err := liveGuest(t).Symbols()
	qt.Assert(t, qt.IsNil(err))
	for _, target := range p.Targets {
		listed := ""
		for _, i := range table.At(target.Addr) {
			if name := (kallscope.Func{Name: table.Name(i), Module: target.Module}).String(); want[name] > 0 {
				listed = name
			}
		}
		if listed == "" {
			t.Errorf("%s is a target, but not in the list", target.Func)
			continue
		}
		want[listed]--
	}
	left := 0
	for name, n := range want {
		if n > 0 && !strings.HasPrefix(name, "__rcu_read_") {
			left += n
			t.Logf("%s: %d more in the list", name, n)
		}
	}
	// Before 5.19 the list shows left-overs of weak functions under the name of
	// the function in front of them.
	if left > 0 && testutil.Release(t) != "5.10" {
		t.Errorf("%d records of the list have no target", left)
	}
	// The same by names alone.
	listed := planWithoutMemory(t)
	unknown := listed.Skipped.By()[kallscope.ReasonSiteUnknown]
	fmt.Printf("%s: %d targets from memory, %d from names with %d not certain\n", p.Kernel.Release, len(p.Targets), len(listed.Targets), unknown)
	qt.Assert(t, qt.IsTrue(len(p.Targets)-len(listed.Targets) <= unknown))
	byAddr := make(map[uint64]bool)
	for _, target := range p.Targets {
		byAddr[target.Addr] = true
	}
	for _, target := range listed.Targets {
		if !byAddr[target.Addr] && testutil.Release(t) != "5.10" {
			t.Errorf("%v is a target by name, but has no record in memory", target)
		}
	}
}

// TestGuestSymbolsFromMemory: the symbols of vmlinux from memory are those of
// the list, in its order.
func TestGuestSymbolsFromMemory(t *testing.T) {
	testutil.Guest(t)
	fromMemory, err := kallscope.VmlinuxSymbolsFromMemory()
	if err != nil {
		testutil.NotOn(t, err, "6.1", "6.12", "7.3")
		return
	}
	table, err := liveGuest(t).Symbols()
	qt.Assert(t, qt.IsNil(err))
	n := 0
	for i := range table.InModule("") {
		if got, want := fromMemory.Symbol(i), table.Symbol(i); got != want {
			t.Fatalf("symbol %d is %v, want %v", i, got, want)
		}
		n++
	}
	qt.Assert(t, qt.Equals(fromMemory.Len(), n))
	qt.Assert(t, qt.IsTrue(n > 50_000))
	fmt.Printf("%s: %d symbols of vmlinux\n", testutil.Release(t), n)
}

// TestGuestModuleSymbols: module symbols from memory are those that kallsyms
// shows.
func TestGuestModuleSymbols(t *testing.T) {
	testutil.Guest(t)
	fromMemory, err := kallscope.ModuleSymbolsFromMemory()
	qt.Assert(t, qt.IsNil(err))
	table, err := liveGuest(t).Symbols()
	qt.Assert(t, qt.IsNil(err))
	var want []string
	for _, s := range table.All() {
		if s.Module != "" && s.Module != "bpf" && !strings.HasPrefix(s.Module, "__builtin") {
			s.Type |= 0x20
			want = append(want, s.String())
		}
	}
	fmt.Printf("%d module symbols\n", len(want))
	qt.Assert(t, qt.IsTrue(slices.Equal(fromMemory, want)))
}

// TestGuestNarrow: leaving out modules that cannot match changes no plan.
func TestGuestNarrow(t *testing.T) {
	testutil.Guest(t)
	for _, pattern := range []string{"virtio_*", "/^virtio_pci/", "virtio_net:*", "virtio_net:virtnet_*", "*:xfs_*", "tcp_*"} {
		narrow, err := kallscope.LiveNarrow(0).Plan(query(pattern), kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		whole, err := kallscope.LiveNarrow(math.MaxInt).Plan(query(pattern), kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		fmt.Printf("%s: %d targets, %d skipped; %d of %d symbols\n", pattern, len(narrow.Targets), narrow.Skipped.Len(), narrow.Facts.Symbols, whole.Facts.Symbols)
		qt.Check(t, qt.IsTrue(slices.Equal(narrow.Targets, whole.Targets)))
		qt.Check(t, qt.DeepEquals(slices.Collect(narrow.Skipped.All()), slices.Collect(whole.Skipped.All())))
		qt.Check(t, qt.DeepEquals(narrow.Unmatched, whole.Unmatched))
		qt.Check(t, qt.IsTrue(narrow.Facts.Symbols <= whole.Facts.Symbols))
	}
}

func liveGuest(t *testing.T) *kallscope.Kernel {
	t.Helper()
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	return k
}

func planGuest(t *testing.T, patterns ...string) *kallscope.Plan {
	t.Helper()
	p, err := liveGuest(t).Plan(query(patterns...), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	return p
}
