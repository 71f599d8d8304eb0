package kallscope_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/container"
	"github.com/kallscope/kallscope/internal/testutil"
)

// reopen writes a snapshot of a kernel and opens it.
func reopen(tb testing.TB, k *kallscope.Kernel) *kallscope.Kernel {
	tb.Helper()
	again, err := kallscope.Open(write(tb, k))
	qt.Assert(tb, qt.IsNil(err))
	return again
}

func write(tb testing.TB, k *kallscope.Kernel) (path string) {
	tb.Helper()
	s, err := k.Snapshot(nil)
	qt.Assert(tb, qt.IsNil(err))
	path = filepath.Join(tb.TempDir(), "k.ksnap")
	qt.Assert(tb, qt.IsNil(s.WriteFile(path)))
	return path
}

// encoded is a plan as its bytes, or the error.
func encoded(k *kallscope.Kernel, q kallscope.Query, o kallscope.PlanOptions) string {
	p, err := k.Plan(q, o)
	if err != nil {
		return "error: " + err.Error()
	}
	var b bytes.Buffer
	if err := p.Encode(&b); err != nil {
		return "error: " + err.Error()
	}
	return b.String()
}

// sameAnswers compares what two kernels say: plans in every byte, names and ids
// of some functions, and the other facts.
func sameAnswers(tb testing.TB, got, want *kallscope.Kernel, queries []kallscope.Query) {
	tb.Helper()
	for _, q := range queries {
		o := kallscope.PlanOptions{Cautious: len(q.Modules) > 0}
		g, w := encoded(got, q, o), encoded(want, q, o)
		if g != w {
			at := 0
			for at < min(len(g), len(w)) && g[at] == w[at] {
				at++
			}
			tb.Errorf("%+v: plans differ at byte %d:\n%.300s\n%.300s", q, at, g[max(at-100, 0):], w[max(at-100, 0):])
		}
	}
	p, err := want.Plan(queries[0], kallscope.PlanOptions{})
	qt.Assert(tb, qt.IsNil(err))
	every, n := p.Matched()/5000+1, 0
	for f := range p.Funcs() {
		if n++; n%every > 0 {
			continue
		}
		gotNames, _ := got.Names(f)
		names, _ := want.Names(f)
		if !slices.Equal(gotNames, names) || !slices.Equal(got.BTFIDs(f), want.BTFIDs(f)) {
			tb.Fatalf("%s: %v %v, want %v %v", f, gotNames, got.BTFIDs(f), names, want.BTFIDs(f))
		}
	}
	qt.Assert(tb, qt.Equals(got.Identity(), want.Identity()))
	qt.Assert(tb, qt.Equals(got.Switches(), want.Switches()))
	gotList, gotErr := got.KprobeBlacklist()
	list, err := want.KprobeBlacklist()
	qt.Assert(tb, qt.DeepEquals(gotList, list))
	qt.Assert(tb, qt.Equals(fmt.Sprint(gotErr), fmt.Sprint(err)))
}

var snapshotQueries = []kallscope.Query{
	query("*"), query("vmlinux:*"), query("fuse:*"), query("vfs_read", "type_show", "syscall:getppid"), query("#4"), query("fuse_*"), query("bpf_prog_*"), query("nosuch:*", "nothing"),
	query("0xffffffff81000104", "!0xffffffff81000100"),
	{Args: []string{"struct file *"}},
	{Patterns: []string{"type_show"}, Modules: []string{"fuse"}},
}

// variants of the small kernel in which other facts are missing.
func variants() map[string]testutil.Kernel {
	whole := small
	whole.Files = map[string]string{
		"proc/self/status":                   "Name:\tx\nCapEff:\t0000000400000000\n",
		"sys/kernel/debug/kprobes/blacklist": "0xffffffff81000600-0xffffffff81000700\tirq_enter\n",
		"sys/kernel/btf/fuse":                "nonsense",
	}
	hidden := small
	hidden.Kallsyms = zeroAddresses(small.Kallsyms)
	hidden.SiteNames = "vfs_read\n__do_sys_getppid\ntype_show\ntype_show\nfuse_open [fuse]\n"
	names := small
	names.Sites, names.SiteNames = "", "vfs_read\n__do_sys_getppid\ntype_show\ntype_show\n__ftrace_invalid_address___64\nfuse_open [fuse]\ntype_show [fuse]\n"
	oneScope := small
	oneScope.Sites += "this is no site\n" // all fails, vmlinux does not
	locked := testutil.Kernel{Kallsyms: small.Kallsyms, Lockdown: "none integrity [confidentiality]\n"}
	withoutBTF := whole
	withoutBTF.BTF = nil
	vmlinux, _, _ := strings.Cut(small.Kallsyms, "ffffffffc0")
	alone := testutil.Kernel{Kallsyms: vmlinux, BTF: []*btf.Func{testutil.Fn("vfs_read", long, fileptr)}}
	return map[string]testutil.Kernel{
		"whole": whole, "small": small, "hidden": hidden, "site names": names, "one scope": oneScope, "locked": locked,
		"without BTF": withoutBTF, "no module": alone,
	}
}

// TestSnapshot: a plan from the file equals the live one in every byte, errors
// and missing facts included.
func TestSnapshot(t *testing.T) {
	for name, k := range variants() {
		t.Run(name, func(t *testing.T) {
			want := live(t, k)
			got := reopen(t, want)
			sameAnswers(t, got, want, snapshotQueries)
			// The snapshot of a snapshot is the same file.
			first, err := os.ReadFile(write(t, want))
			qt.Assert(t, qt.IsNil(err))
			second, err := os.ReadFile(write(t, got))
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsTrue(bytes.Equal(first, second)))
		})
	}
}

func TestSnapshotMissing(t *testing.T) {
	s, err := live(t, variants()["locked"]).Snapshot(nil)
	qt.Assert(t, qt.IsNil(err))
	var missing []string
	for _, m := range s.Missing {
		missing = append(missing, m.Fact+": "+m.Why)
	}
	qt.Assert(t, qt.Matches(strings.Join(missing, "\n"), `sites: restricted: kernel lockdown is "confidentiality", which hides tracefs
kprobe-blacklist: .*
btf:vmlinux: .*; the kernel was built without CONFIG_DEBUG_INFO_BTF
deny-lists: .*`))
	p, err := reopen(t, live(t, variants()["locked"])).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(p.Facts.SitesUnknown, `restricted: kernel lockdown is "confidentiality", which hides tracefs`))
	_, err = reopen(t, live(t, variants()["locked"])).KprobeBlacklist()
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))

	s, err = live(t, variants()["hidden"]).Snapshot(nil)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Missing[0].Fact, "addresses"))
	qt.Assert(t, qt.Matches(s.Missing[0].Why, "kernel.kptr_restrict is 1, .*"))

	_, err = live(t, testutil.Kernel{}).Snapshot(nil)
	qt.Assert(t, qt.ErrorMatches(err, "snapshot: kernel symbols: .*"))
}

// TestSnapshotArch: a file from another architecture answers as one from there.
func TestSnapshotArch(t *testing.T) {
	k := small
	k.Kallsyms = strings.ReplaceAll(small.Kallsyms, "__x64_sys", "__arm64_sys")
	sections := snapshotSections(t, live(t, k))
	sections["facts"] = bytes.Replace(sections["facts"], []byte(`"arch":"amd64"`), []byte(`"arch":"arm64"`), 1)
	sections["facts"] = bytes.Replace(sections["facts"], []byte(`"kernel":`), []byte(`"of_a_later_version":1,"kernel":`), 1)
	sections["of-a-later-version"] = []byte("x")
	got, err := kallscope.Open(pack(t, sections))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got.Identity().Arch, "arm64"))
	p, err := got.Plan(query("syscall:getppid"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+200 __arm64_sys_getppid"}))
}

// snapshotSections returns the sections of a kernel's snapshot, inflated.
func snapshotSections(tb testing.TB, k *kallscope.Kernel) map[string][]byte {
	tb.Helper()
	data, err := os.ReadFile(write(tb, k))
	qt.Assert(tb, qt.IsNil(err))
	f, err := container.OpenBytes(data, container.Options{Kind: "snapshot", Version: 1})
	qt.Assert(tb, qt.IsNil(err))
	sections := make(map[string][]byte)
	for _, s := range f.Sections() {
		sections[s.Name()], err = s.Bytes(1 << 20)
		qt.Assert(tb, qt.IsNil(err))
	}
	return sections
}

// pack writes sections as a snapshot.
func pack(tb testing.TB, sections map[string][]byte) (path string) {
	tb.Helper()
	w := container.NewWriter("snapshot", 1)
	for name, data := range sections {
		qt.Assert(tb, qt.IsNil(w.Add(name, data, container.Zstd)))
	}
	path = filepath.Join(tb.TempDir(), "k.ksnap")
	qt.Assert(tb, qt.IsNil(w.WriteFile(path)))
	return path
}

// TestSnapshotLazy: what a query does not need is not inflated, nor looked at.
func TestSnapshotLazy(t *testing.T) {
	whole := live(t, variants()["whole"])
	sections := snapshotSections(t, whole)
	for _, name := range []string{"symbols.modules", "btf:fuse", "sites", "kprobe-blacklist"} {
		sections[name] = []byte("nonsense")
	}
	k, err := kallscope.Open(pack(t, sections))
	qt.Assert(t, qt.IsNil(err))
	vmlinux := query("vmlinux:*")
	qt.Assert(t, qt.Equals(encoded(k, vmlinux, kallscope.PlanOptions{}), encoded(whole, vmlinux, kallscope.PlanOptions{})))
	_, err = k.Plan(query("*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, `kernel symbols: section "symbols.modules": append kallsyms: .*`))
}

// TestSnapshotDamage: no changed byte and no cut goes unseen.
func TestSnapshotDamage(t *testing.T) {
	data, err := os.ReadFile(write(t, live(t, variants()["whole"])))
	qt.Assert(t, qt.IsNil(err))
	try := func(data []byte) error {
		_, err := kallscope.OpenBytes(data)
		return err
	}
	for i := range data {
		data[i] ^= 0x10
		qt.Assert(t, qt.IsNotNil(try(data)), qt.Commentf("byte %d", i))
		data[i] ^= 0x10
		qt.Assert(t, qt.IsNotNil(try(data[:i])), qt.Commentf("%d bytes", i))
	}
	qt.Assert(t, qt.IsNil(try(data)))
	path := filepath.Join(t.TempDir(), "k.ksnap")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, data[:len(data)-1], 0o600)))
	_, err = kallscope.Open(path)
	qt.Assert(t, qt.ErrorMatches(err, `kernel .*/k.ksnap: at byte \d+: the file has \d+ bytes, \d+ were written; the file is damaged: copy it again, .*`))
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(kind string, version uint16) string {
		path := filepath.Join(dir, fmt.Sprint(kind, version))
		qt.Assert(t, qt.IsNil(container.NewWriter(kind, version).WriteFile(path)))
		return path
	}
	text := filepath.Join(dir, "text")
	qt.Assert(t, qt.IsNil(os.WriteFile(text, []byte(small.Kallsyms), 0o600)))
	for _, test := range []struct{ path, want string }{
		{file("addresses", 1), `kernel .*: another kind of file: "addresses", want "snapshot"; make one with: kallscope snapshot -o FILE`},
		{file("snapshot", 2), `kernel .*: made by a newer kallscope: snapshot version 2, this one reads up to 1; update kallscope`},
		{file("snapshot", 1), `kernel .*: section "facts": unexpected end of JSON input`},
		{text, `kernel .*/text: not a file that kallscope wrote; make one with: .*`},
		{dir, `kernel .*: not a regular file`},
		{"/dev/zero", `kernel /dev/zero: not a regular file`},
		{filepath.Join(dir, "none"), `kernel: stat .*/none: no such file or directory`},
	} {
		_, err := kallscope.Open(test.path)
		qt.Check(t, qt.ErrorMatches(err, test.want))
	}
}

// TestSnapshotHostile: an intact file with nonsense in it.
func TestSnapshotHostile(t *testing.T) {
	for _, test := range []struct{ section, text, want string }{
		{"symbols.vmlinux", "", `kernel symbols: section "symbols.vmlinux": input is empty.*`},
		{"symbols.vmlinux", "\x00\x01\n", `kernel symbols: section "symbols.vmlinux": append kallsyms: line 1: .*`},
		{"symbols.vmlinux", strings.Repeat("a", 1<<20), `(?s)kernel symbols: section "symbols.vmlinux": append kallsyms: line 1: .*`},
		{"sites.vmlinux", "\xff", `section "sites.vmlinux": byte 0: site 0 is no address above 0x0`},
		{"sites.vmlinux", "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", `section "sites.vmlinux": byte 1: site 1 is no address above 0x5`},
		{"sites.vmlinux", strings.Repeat("\x00", 9<<20), `section "sites.vmlinux" at byte \d+: inflates to 9437184 bytes, at most 8388608 are read`},
		{"btf:vmlinux", "nonsense", `BTF of vmlinux: section "btf:vmlinux": .*`},
		{"kprobe-blacklist", "nonsense", `section "kprobe-blacklist": line 1: .*`},
	} {
		sections := snapshotSections(t, live(t, small))
		sections[test.section] = []byte(test.text)
		k, err := kallscope.Open(pack(t, sections))
		qt.Assert(t, qt.IsNil(err))
		p, err := k.Plan(query("vmlinux:*"), kallscope.PlanOptions{})
		switch {
		case err != nil:
			qt.Check(t, qt.ErrorMatches(err, test.want))
		case test.section == "kprobe-blacklist":
			_, err := k.KprobeBlacklist()
			qt.Check(t, qt.ErrorMatches(err, test.want))
		default:
			qt.Check(t, qt.Matches(p.Facts.SitesUnknown+p.Facts.BTFUnknown, test.want))
		}
	}
}

// FuzzSnapshotSections: whatever an intact file holds, it ends in a plan or an
// error; a plan can be made, written and compared.
func FuzzSnapshotSections(f *testing.F) {
	s, err := kallscope.Live(kallscope.LiveOptions{Root: variants()["whole"].Root(f)})
	qt.Assert(f, qt.IsNil(err))
	sections := snapshotSections(f, s)
	f.Add(sections["facts"], sections["symbols.vmlinux"], sections["symbols.modules"], sections["sites"], sections["btf:vmlinux"])
	f.Add([]byte(`{"missing":{"sites":{"text":"x","kind":"restricted"}}}`), []byte("ffffffff81000100 T a\n"), []byte(nil), []byte{1, 2, 3}, []byte(nil))
	f.Fuzz(func(t *testing.T, facts, vmlinux, modules, sites, types []byte) {
		w := container.NewWriter("snapshot", 1)
		for _, s := range []struct {
			name string
			data []byte
		}{{"facts", facts}, {"symbols.vmlinux", vmlinux}, {"symbols.modules", modules}, {"symbols.runtime", nil}, {"sites", sites}, {"btf:vmlinux", types}} {
			qt.Assert(t, qt.IsNil(w.Add(s.name, s.data, container.Raw)))
		}
		data, err := w.Bytes()
		qt.Assert(t, qt.IsNil(err))
		k, err := kallscope.OpenBytes(data)
		if err != nil {
			if json.Valid(facts) && !strings.Contains(err.Error(), "json") {
				t.Fatal(err)
			}
			return
		}
		for _, pattern := range []string{"*", "vmlinux:*"} {
			_ = encoded(k, query(pattern), kallscope.PlanOptions{})
		}
		if s, err := k.Snapshot(nil); err == nil {
			var file bytes.Buffer
			_, err := s.WriteTo(&file)
			qt.Assert(t, qt.IsNil(err))
			again, err := kallscope.OpenBytes(file.Bytes())
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(encoded(again, query("*"), kallscope.PlanOptions{}), encoded(k, query("*"), kallscope.PlanOptions{})))
		}
	})
}

// TestKernels: what is known of real kernels, without them. See
// testdata/snapshots/README.md.
func TestKernels(t *testing.T) {
	for _, test := range []struct{ kernel, read, shows, all string }{
		{"5.10", "#29971", "10 targets, 1 no-site", "1850 targets, 62 cold, 25 init, 15 noinstr, 43 fragment, 164 no-site"},
		{"6.1", "#33546", "12 targets", "1814 targets, 75 cold, 1 no-symbol, 82 init, 10 noinstr, 41 fragment, 174 no-site, 2 dispatch"},
		{"6.12", "#43477", "13 targets", "1951 targets, 1391 padding, 1 no-symbol, 99 init, 12 noinstr, 45 fragment, 178 no-site, 2 dispatch"},
		{"7.3", "#118026", "14 targets", "2259 targets, 1749 padding, 282 cold, 7 no-symbol, 12 suffixed, 115 init, 16 noinstr, 46 fragment, 272 no-site, 2 dispatch"},
	} {
		t.Run(test.kernel, func(t *testing.T) {
			k, err := kallscope.Open("testdata/snapshots/" + test.kernel + ".ksnap")
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Matches(k.Identity().Release, regexp.QuoteMeta(test.kernel)+`\..*-cloud-amd64`))

			read, err := k.Plan(query("vfs_read", "syscall:getppid"), kallscope.PlanOptions{})
			qt.Assert(t, qt.IsNil(err))
			var lines []string
			for _, target := range read.Targets {
				names, err := k.Names(target.Func)
				qt.Assert(t, qt.IsNil(err))
				lines = append(lines, fmt.Sprintf("%s %v %v", target.Name, names, k.BTFIDs(target.Func)))
			}
			qt.Check(t, qt.Equals(strings.Join(lines, "; "), "__x64_sys_getppid [__do_sys_getppid __ia32_sys_getppid __x64_sys_getppid] []; vfs_read [vfs_read] ["+test.read+"]"))

			shows, err := k.Plan(query("type_show"), kallscope.PlanOptions{})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(tally(shows), test.shows))
			all, err := k.Plan(query("*"), kallscope.PlanOptions{})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(tally(all), test.all))
			checkIDs(t, k, all)
		})
	}
}

// tally is a plan in one line.
func tally(p *kallscope.Plan) string {
	parts := []string{fmt.Sprintf("%d targets", len(p.Targets))}
	by := p.Skipped.By()
	for _, r := range kallscope.Reasons() {
		if by[r] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[r], r))
		}
	}
	return strings.Join(parts, ", ")
}

// checkIDs: an id leads back to the functions that have it.
func checkIDs(t *testing.T, k *kallscope.Kernel, p *kallscope.Plan) {
	checked := 0
	for i := 0; i < len(p.Targets); i += len(p.Targets)/50 + 1 {
		target := p.Targets[i]
		for _, id := range k.BTFIDs(target.Func) {
			back, err := k.Plan(query(id.String()), kallscope.PlanOptions{})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.IsTrue(slices.ContainsFunc(back.Targets, func(t kallscope.Target) bool { return t.Func == target.Func })), qt.Commentf("%s: %s", id, target.Func))
			checked++
		}
	}
	qt.Check(t, qt.IsTrue(checked >= 10))
}
