package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/observe/count"
	"github.com/kallscope/kallscope/internal/testutil"
)

// planAll plans a query on the guest's kernel, or skips where kprobe.multi is
// missing.
func plan(tb testing.TB, o kallscope.PlanOptions, patterns ...string) *kallscope.Plan {
	tb.Helper()
	testutil.Guest(tb)
	if err := attach.Supported(kallscope.KprobeMulti); err != nil {
		tb.Skip(err)
	}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(tb, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: patterns}, o)
	qt.Assert(tb, qt.IsNil(err))
	return p
}

// measurement skips tests that only print figures, and take their time, from
// short runs.
func measurement(t *testing.T) {
	t.Helper()
	testutil.Guest(t)
	if testing.Short() {
		t.Skip("a measurement; run it by name, without -short")
	}
}

// getppid returns the cost of one getppid call.
func getppid(n int) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	for range n {
		unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	return time.Since(begin) / time.Duration(n)
}

// floor loads one of the programs of floor.bpf.c, ready.
func floor(tb testing.TB, name string) *ebpf.Program {
	tb.Helper()
	spec, err := loadFloor()
	qt.Assert(tb, qt.IsNil(err))
	coll, err := ebpf.NewCollection(spec)
	qt.Assert(tb, qt.IsNil(err))
	tb.Cleanup(coll.Close)
	qt.Assert(tb, qt.IsNil(coll.Variables["ready"].Set(true)))
	return coll.Programs[name]
}

func addresses(p *kallscope.Plan) (addrs []uintptr, cookies []uint64) {
	for i, t := range p.Targets {
		addrs = append(addrs, uintptr(t.Addr))
		cookies = append(cookies, uint64(i)+1)
	}
	return addrs, cookies
}

// bare attaches by nothing but the system call.
func bare(tb testing.TB, prog *ebpf.Program, o link.KprobeMultiOptions) (attached, detached time.Duration, during time.Duration) {
	tb.Helper()
	begin := time.Now()
	l, err := link.KprobeMulti(prog, o)
	attached = time.Since(begin)
	qt.Assert(tb, qt.IsNil(err))
	during = getppid(20000)
	begin = time.Now()
	qt.Assert(tb, qt.IsNil(l.Close()))
	return attached, time.Since(begin), during
}

// TestRunCost prints what one getppid costs with everything attached, by the
// way in which the program finds its target.
func TestRunCost(t *testing.T) {
	measurement(t)
	p := plan(t, kallscope.PlanOptions{}, "*")
	cautious := plan(t, kallscope.PlanOptions{Cautious: true}, "*")
	fmt.Printf("nothing attached: %v\n", getppid(20000))
	addrs, cookies := addresses(p)
	for _, v := range []struct {
		name, program string
		o             link.KprobeMultiOptions
	}{
		{"empty, entries", "empty", link.KprobeMultiOptions{Addresses: addrs}},
		{"empty, entries, cookies", "empty", link.KprobeMultiOptions{Addresses: addrs, Cookies: cookies}},
		{"fixed slot, entries", "fixed", link.KprobeMultiOptions{Addresses: addrs}},
	} {
		a, d, run := bare(t, floor(t, v.program), v.o)
		fmt.Printf("%-40s attach %v detach %v getppid %v\n", v.name, a, d, run)
	}
	for _, v := range []struct {
		name string
		plan *kallscope.Plan
	}{{"count", p}, {"count, dispatch included", cautious}} {
		counter, err := count.New(v.plan, count.Options{})
		qt.Assert(t, qt.IsNil(err))
		begin := time.Now()
		att, err := attach.Attach(context.Background(), counter.Programs(), v.plan, attach.Options{Start: counter.Start})
		qt.Assert(t, qt.IsNil(err))
		a := time.Since(begin)
		run := getppid(20000)
		missed, err := att.Missed()
		qt.Assert(t, qt.IsNil(err))
		begin = time.Now()
		qt.Assert(t, qt.IsNil(att.Close()))
		fmt.Printf("%-40s attach %v detach %v getppid %v missed %+v\n", v.name, a, time.Since(begin), run, missed)
		qt.Assert(t, qt.IsNil(counter.Close()))
	}
}
