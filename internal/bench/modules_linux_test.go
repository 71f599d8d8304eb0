package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestManyModules prints how long planning takes with the modules that are
// loaded, against reading the kernel's two lists (vmrun -kernel 6.12-amd64
// -modules all), and compares the plans of both ways.
func TestManyModules(t *testing.T) {
	measurement(t)
	modules, err := os.ReadFile("/proc/modules")
	qt.Assert(t, qt.IsNil(err))
	fmt.Printf("%d modules\n", bytes.Count(modules, []byte{'\n'}))
	plans := make(map[string]*kallscope.Plan)
	for _, pattern := range []string{"vmlinux:tcp_*", "tcp_*", "vmlinux:*", "*"} {
		var times []time.Duration
		for range 3 {
			begin := time.Now()
			plans[pattern] = planned(t, pattern)
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		p := plans[pattern]
		fmt.Printf("plan %-14s %8.0f ms: %d symbols, %d sites (%s), %d targets, %d skipped\n", pattern, ms(times[1]),
			p.Facts.Symbols, p.Facts.Sites, p.Facts.SitesFrom, len(p.Targets), p.Skipped.Len())
	}
	for _, list := range []string{"/proc/kallsyms", "/sys/kernel/tracing/available_filter_functions_addrs", "/sys/kernel/btf/vmlinux"} {
		if _, err := os.Stat(list); err != nil {
			continue
		}
		fmt.Printf("read %-53s %8.0f ms\n", list, ms(discard(t, list)))
	}
	testutil.Cover(t, "/proc/kcore")
	begin := time.Now()
	listed := planned(t, "*")
	fmt.Printf("plan * from the lists %8.0f ms\n", ms(time.Since(begin)))
	qt.Assert(t, qt.IsTrue(slices.Equal(plans["*"].Targets, listed.Targets)))
}

func planned(t *testing.T, patterns ...string) *kallscope.Plan {
	t.Helper()
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: patterns}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	return p
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// discard reads a file and throws it away.
func discard(t *testing.T, path string) time.Duration {
	t.Helper()
	begin := time.Now()
	f, err := os.Open(path)
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 64<<10))
	qt.Assert(t, qt.IsNil(err))
	return time.Since(begin)
}
