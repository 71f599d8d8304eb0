package kallscope_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
	"github.com/kallscope/kallscope/kallsyms"
)

// machine is a kernel made from the symbols and the BTF of this machine, whose
// own kernel need not have ftrace: every fourth function has a site.
func machine(b *testing.B) string {
	b.Helper()
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err != nil || len(symbols) == 0 {
		b.Skip("no /proc/kallsyms here")
	}
	table, err := kallsyms.Parse(symbols, kallsyms.Options{})
	qt.Assert(b, qt.IsNil(err))
	if table.State() != kallsyms.Visible {
		b.Skip("addresses are hidden here")
	}
	var sites strings.Builder
	for i, s := range table.All() {
		if s.IsText() && i%4 == 0 {
			fmt.Fprintf(&sites, "%x %s\n", s.Addr+4, s.Name)
		}
	}
	files := make(map[string]string)
	if blob, err := os.ReadFile("/sys/kernel/btf/vmlinux"); err == nil {
		files[filepath.Join("sys/kernel/btf", kallscope.Vmlinux)] = string(blob)
	}
	return testutil.Kernel{Kallsyms: string(symbols), Sites: sites.String(), Files: files}.Root(b)
}

func BenchmarkPlan(b *testing.B) {
	root := machine(b)
	for _, pattern := range []string{"*", "vmlinux:tcp_*", "vfs_read"} {
		b.Run(pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k, err := kallscope.Live(kallscope.LiveOptions{Root: root})
				qt.Assert(b, qt.IsNil(err))
				_, err = k.Plan(kallscope.Query{Patterns: []string{pattern}}, kallscope.PlanOptions{})
				qt.Assert(b, qt.IsNil(err))
			}
		})
	}
}
