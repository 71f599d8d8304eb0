package kallscope_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

var guestQueries = []kallscope.Query{
	query("*"), query("vmlinux:tcp_*", "!tcp_v6_*"), query("/^vfs_(read|write)v?$/", "syscall:open*"), query("nf_conntrack:*", "bpf_prog_*"),
	{Args: []string{"struct file *"}, Rets: []string{"long"}},
	{Patterns: []string{"*"}, Modules: []string{"nf_*"}},
}

// TestGuestSnapshot: a snapshot of the running kernel gives the plans that it
// gives itself, with all facts and with some missing.
func TestGuestSnapshot(t *testing.T) {
	testutil.Guest(t)
	compare := func(t *testing.T, queries []kallscope.Query) *kallscope.Plan {
		k := liveGuest(t)
		path := write(t, k)
		got, err := kallscope.Open(path)
		qt.Assert(t, qt.IsNil(err))
		sameAnswers(t, got, k, queries)
		p, err := k.Plan(queries[0], kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		info, err := os.Stat(path)
		qt.Assert(t, qt.IsNil(err))
		fmt.Printf("%s: %d kB; %d symbols, %d sites from %s, %d targets, %d skipped; %s\n", p.Kernel.Release, info.Size()/1000,
			p.Facts.Symbols, p.Facts.Sites, p.Facts.SitesFrom, len(p.Targets), p.Skipped.Len(), p.Facts.SitesUnknown+p.Facts.Hidden)
		return p
	}
	t.Run("whole", func(t *testing.T) {
		p := compare(t, guestQueries)
		qt.Assert(t, qt.Equals(p.Facts.SitesFrom, "/proc/kcore"))
		list, err := liveGuest(t).KprobeBlacklist()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(len(list) > 100))
	})
	some := guestQueries[:1]
	t.Run("hidden", func(t *testing.T) {
		testutil.Sysctl(t, "kernel.kptr_restrict", "2")
		p := compare(t, some)
		qt.Assert(t, qt.Not(qt.Equals(p.Facts.Hidden, "")))
	})
	t.Run("no memory", func(t *testing.T) {
		testutil.Cover(t, "/proc/kcore")
		p := compare(t, some)
		qt.Assert(t, qt.StringContains(p.Facts.SitesFrom, "available_filter_functions"))
	})
}

// TestGuestSnapshotFullDisk: a file that does not fit is said and not left
// behind, and the old one stays.
func TestGuestSnapshotFullDisk(t *testing.T) {
	testutil.Guest(t)
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(unix.Mount("none", dir, "tmpfs", 0, "size=16k")))
	defer func() { qt.Assert(t, qt.IsNil(unix.Unmount(dir, 0))) }()
	path := filepath.Join(dir, "k.ksnap")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("old"), 0o600)))
	var symbols strings.Builder
	for i := range 10_000 { // some 50 kB in the file
		fmt.Fprintf(&symbols, "ffffffff81%06x T f%d\n", i*16, i*i)
	}
	s, err := live(t, testutil.Kernel{Kallsyms: symbols.String()}).Snapshot(nil)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.ErrorMatches(s.WriteFile(path), "write .*/k.ksnap: no space left on device"))
	left, err := os.ReadDir(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(left, 1))
	old, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(strings.TrimSpace(string(old)), "old"))
}
