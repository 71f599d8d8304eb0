package kallscope_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// readCase returns a file of testdata/cases.
func readCase(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/cases", name))
	qt.Assert(tb, qt.IsNil(err))
	return string(text)
}

// TestCasesAllHeld fails when a case is added that no test reads.
func TestCasesAllHeld(t *testing.T) {
	names, err := filepath.Glob("testdata/cases/*.expect")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(names, 4))
	tests, err := os.ReadFile("cases_test.go")
	qt.Assert(t, qt.IsNil(err))
	for _, name := range names {
		input := filepath.Base(strings.TrimSuffix(name, ".expect"))
		qt.Check(t, qt.StringContains(string(tests), `"`+input+`"`))
	}
}

// ofCases is the kernel that the lists of the cases are about.
const ofCases = `ffffffff81000100 T vfs_read
ffffffff81000200 T vfs_write
ffffffff81000300 t do_thing.isra.0
ffffffff810004f0 t weak_left
ffffffff81210040 t seq_demo
ffffffff81420080 t seq_demo
ffffffffc0001000 t fuse_open	[fuse]
ffffffffc0002000 t fuse_open	[fuse2]
`

func TestCaseSiteNames(t *testing.T) {
	k := live(t, testutil.Kernel{Kallsyms: ofCases, SiteNames: readCase(t, "aff_basic.txt")})
	p, err := k.Plan(query("*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{
		"+100 vfs_read", "+200 vfs_write", "+300 do_thing.isra.0", "+10040 seq_demo", "+20080 seq_demo",
		"+1000 fuse_open [fuse]", "+2000 fuse_open [fuse2]", "-4f0 weak_left: no-site",
	}))
	qt.Assert(t, qt.Equals(p.Facts.Sites, 7)) // without the left-over
}

func TestCaseSiteAddrs(t *testing.T) {
	k := live(t, testutil.Kernel{Kallsyms: ofCases, Sites: readCase(t, "aff_addrs.txt")})
	p, err := k.Plan(query("*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{
		"+100 vfs_read", "+10040 seq_demo", "+20080 seq_demo", "+1000 fuse_open [fuse]",
		"-200 vfs_write: no-site", "-300 do_thing.isra.0: no-site", "-4f0 weak_left: no-site", "-2000 fuse_open [fuse2]: no-site",
	}))
	qt.Assert(t, qt.Equals(p.Targets[0].Addr, 0xffffffff81000100)) // the entry, not the site
}

// withBlacklist is a kernel with functions inside and beside the ranges.
func withBlacklist(t *testing.T, kallsyms, list string) *kallscope.Kernel {
	t.Helper()
	return live(t, testutil.Kernel{
		Kallsyms: kallsyms,
		Sites: "ffffffff84600804 in_entry_text\nffffffff84601004 behind_entry_text\nffffffff84620104 trap_demo\n" +
			"ffffffff846201e4 in_trap_demo\nffffffff84700004 hidden_one\n",
		SiteNames: "in_entry_text\nbehind_entry_text\ntrap_demo\nin_trap_demo\nhidden_one\n",
		Files:     map[string]string{"sys/kernel/debug/kprobes/blacklist": list},
	})
}

const blacklistSymbols = `ffffffff84600800 t in_entry_text
ffffffff84601000 t behind_entry_text
ffffffff84620100 t trap_demo
ffffffff846201e0 t in_trap_demo
ffffffff84700000 t hidden_one
`

func TestCaseKprobeBlacklist(t *testing.T) {
	list := readCase(t, "kprobe_blacklist.txt")
	for _, test := range []struct {
		name, kallsyms, list string
		want                 []string
	}{
		{"the case", blacklistSymbols, list, []string{
			"+1000 behind_entry_text",
			"-800 in_entry_text: blacklisted", "-20100 trap_demo: blacklisted", "-201e0 in_trap_demo: blacklisted", "-0 hidden_one: blacklisted",
		}}, // the last five digits of its address are zero
		{"a range inside another", blacklistSymbols, list + "0xffffffff84600100-0xffffffff84600200\tinner\n", []string{
			"+1000 behind_entry_text",
			"-800 in_entry_text: blacklisted", "-20100 trap_demo: blacklisted", "-201e0 in_trap_demo: blacklisted", "-0 hidden_one: blacklisted",
		}},
		{"all hidden", zeroAddresses(blacklistSymbols), "0x0000000000000000-0x0000000000000000\ttrap_demo\n", []string{
			"+0 in_entry_text", "+0 behind_entry_text", "+0 in_trap_demo", "+0 hidden_one", "-0 trap_demo: blacklisted",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := withBlacklist(t, test.kallsyms, test.list)
			p, err := k.Plan(query("*"), kallscope.PlanOptions{Mechanism: kallscope.Kprobe})
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.ContentEquals(shape(p), test.want))
			// Other mechanisms are not bound by the list.
			p, err = k.Plan(query("*"), kallscope.PlanOptions{})
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.HasLen(p.Targets, 5))
		})
	}
}

// TestCaseKprobeBlacklistWhy: the range is named.
func TestCaseKprobeBlacklistWhy(t *testing.T) {
	k := withBlacklist(t, blacklistSymbols, readCase(t, "kprobe_blacklist.txt"))
	e, err := k.Explain(query("in_entry_text", "hidden_one"))
	qt.Assert(t, qt.IsNil(err))
	for i, want := range []string{".entry.text, 0xffffffff84600000 to 0xffffffff84601000", "hidden_one"} {
		qt.Check(t, qt.DeepEquals(e.Findings[i].Verdict(kallscope.Kprobe).Obstacles, []kallscope.Obstacle{{Reason: kallscope.ReasonBlacklisted, Detail: want}}))
	}
}

// TestCaseLockdownIntegrity: integrity is known as such, and nothing is blamed
// on it; confidentiality is.
func TestCaseLockdownIntegrity(t *testing.T) {
	text := readCase(t, "lockdown_integrity.txt")
	kernel := testutil.Kernel{Kallsyms: ofCases, Lockdown: text}
	k := live(t, kernel)
	qt.Assert(t, qt.Equals(k.Switches().Lockdown, "integrity"))
	p, err := k.Plan(query("vfs_read"), kallscope.PlanOptions{Mechanism: kallscope.Kprobe})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(p.Targets, 1))
	for _, fact := range []string{p.Facts.SitesUnknown, p.Facts.BlacklistUnknown, p.Facts.BTFUnknown} {
		qt.Check(t, qt.Not(qt.StringContains(fact, "lockdown")))
	}
	kernel.Lockdown = "none integrity [confidentiality]\n"
	p, err = live(t, kernel).Plan(query("vfs_read"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.StringContains(p.Facts.SitesUnknown, "lockdown"))
}
