package pattern

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func mustSet(tb testing.TB, o SetOptions, texts ...string) *Set {
	tb.Helper()
	var ps []Pattern
	for _, text := range texts {
		ps = append(ps, mustParse(tb, text))
	}
	s, err := NewSet(ps, o)
	qt.Assert(tb, qt.IsNil(err))
	return s
}

func TestSetMatch(t *testing.T) {
	for _, tc := range []struct {
		patterns     string
		module, name string
		index        int
		ok           bool
	}{
		{"tcp_* udp_*", "", "udp_sendmsg", 1, true},
		{"tcp_* *msg", "", "tcp_sendmsg", 0, true},
		{"*msg tcp_*", "", "tcp_sendmsg", 0, true},
		{"x tcp_sendmsg tcp_*", "", "tcp_sendmsg", 1, true},
		{"x tcp_* tcp_sendmsg", "", "tcp_sendmsg", 1, true},
		{"tcp_sendmsg tcp_sendmsg", "", "tcp_sendmsg", 0, true},
		{"kvm:foo foo", "", "foo", 1, true},
		{"kvm:foo foo", "kvm", "foo", 0, true},
		{"vmlinux:foo", "", "foo", 0, true},
		{"nf-tables:foo", "nf-tables", "foo", 0, true},
		{"/^tcp_.*msg$/ tcp_*", "", "tcp_sendmsg", 0, true},
		{"/^tcp_.*msg$/ tcp_*", "", "tcp_close", 1, true},
		{"tcp_*", "", "udp_sendmsg", 0, false},
		{"tcp_*", "", "", 0, false},
		{"*", "", "", 0, true},
		{"vfs_read+0x10", "", "vfs_read", 0, true},

		// Exclusions win wherever they stand.
		{"tcp_* !*msg", "", "tcp_sendmsg", 0, false},
		{"!*msg tcp_*", "", "tcp_sendmsg", 0, false},
		{"!*msg tcp_sendmsg", "", "tcp_sendmsg", 0, false},
		{"!*msg tcp_*", "", "tcp_close", 1, true},
		{"!kvm:* vmx_*", "kvm", "vmx_run", 0, false},
		{"!kvm:* vmx_*", "kvm_intel", "vmx_run", 1, true},

		// Only exclusions: all else.
		{"!*msg", "", "tcp_close", -1, true},
		{"!*msg", "kvm", "vmx_run", -1, true},
		{"!*msg", "", "tcp_sendmsg", 0, false},
		{"", "", "anything", -1, true},
		{"!#12", "", "anything", -1, true},

		// What names no name includes none.
		{"#12", "", "vfs_read", 0, false},
		{"0xffffffff81000000", "", "vfs_read", 0, false},

		{"syscall:openat", "", "__x64_sys_openat", 0, true},
		{"syscall:open*", "", "__x64_sys_openat2", 0, true},
		{"syscall:open*", "", "__arm64_sys_openat2", 0, false},
		{"syscall:open*", "", "sys_openat", 0, false},
		{"syscall:openat", "kvm", "__x64_sys_openat", 0, false},
		{"__x64_sys_* !syscall:openat", "", "__x64_sys_openat", 0, false},
	} {
		s := mustSet(t, SetOptions{SyscallPrefixes: []string{"__x64_sys_"}}, strings.Fields(tc.patterns)...)
		index, ok := s.Match(tc.module, tc.name)
		qt.Check(t, qt.Equals(ok, tc.ok), qt.Commentf("%s on %s:%s", tc.patterns, tc.module, tc.name))
		qt.Check(t, qt.Equals(index, tc.index), qt.Commentf("%s on %s:%s", tc.patterns, tc.module, tc.name))
	}
}

func TestSetExcludes(t *testing.T) {
	s := mustSet(t, SetOptions{}, "tcp_*", "!*_x", "!tcp_x", "!kvm:*")
	index, ok := s.Excludes("", "tcp_x")
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(index, 1))
	index, ok = s.Excludes("kvm", "foo")
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(index, 3))
	_, ok = s.Excludes("", "foo")
	qt.Check(t, qt.IsFalse(ok))
}

func TestSetExact(t *testing.T) {
	o := SetOptions{SyscallPrefixes: []string{"__x64_sys_", "sys_"}}
	for _, tc := range []struct {
		patterns string
		want     []ExactName
		all      bool
	}{
		{"vfs_read kvm:foo", []ExactName{{0, "vfs_read"}, {1, "foo"}}, true},
		{"vfs_read tcp_*", []ExactName{{0, "vfs_read"}}, false},
		{"vfs_read !tcp_*", []ExactName{{0, "vfs_read"}}, true},
		{"vfs_read !tcp_x", []ExactName{{0, "vfs_read"}}, true},
		{"syscall:openat", []ExactName{{0, "__x64_sys_openat"}, {0, "sys_openat"}}, true},
		{"syscall:open*", nil, false},
		{"/^foo$/", nil, false},
		{"#12 0x12", nil, true},
		{"!foo", nil, false},
		{"", nil, false},
	} {
		names, all := mustSet(t, o, strings.Fields(tc.patterns)...).Exact()
		qt.Check(t, qt.DeepEquals(names, tc.want), qt.Commentf("%s", tc.patterns))
		qt.Check(t, qt.Equals(all, tc.all), qt.Commentf("%s", tc.patterns))
	}
}

func TestSetVmlinuxOnly(t *testing.T) {
	for patterns, want := range map[string]bool{
		"vmlinux:foo":              true,
		"vmlinux:foo syscall:open": true,
		"vmlinux:foo !kvm:*":       true,
		"vmlinux:foo #12":          true,
		"vmlinux:foo bar":          false,
		"vmlinux:foo kvm#12":       false,
		"!vmlinux:foo":             false,
		"":                         false,
	} {
		s := mustSet(t, SetOptions{}, strings.Fields(patterns)...)
		qt.Check(t, qt.Equals(s.VmlinuxOnly(), want), qt.Commentf("%s", patterns))
	}
}

func TestNewSetErrors(t *testing.T) {
	_, err := NewSet(nil, SetOptions{SyscallPrefixes: []string{""}})
	qt.Check(t, qt.ErrorMatches(err, "make pattern set: empty system call prefix; give sys_ for kernels without wrappers"))
	_, err = NewSet([]Pattern{{Kind: Glob, Text: "foo", Name: "foo"}}, SetOptions{})
	qt.Check(t, qt.ErrorMatches(err, `make pattern set: pattern 0 "foo": not compiled; make it with Parse`))
}

func TestSyscallPrefixes(t *testing.T) {
	qt.Check(t, qt.DeepEquals(SyscallPrefixes("amd64"), []string{"__x64_sys_", "sys_"}))
	qt.Check(t, qt.DeepEquals(SyscallPrefixes("arm64"), []string{"__arm64_sys_", "sys_"}))
	qt.Check(t, qt.DeepEquals(SyscallPrefixes("riscv64"), []string{"__riscv_sys_", "sys_"}))
	qt.Check(t, qt.DeepEquals(SyscallPrefixes("s390x"), []string{"__s390x_sys_", "sys_"}))
	qt.Check(t, qt.DeepEquals(SyscallPrefixes("loong64"), []string{"sys_"}))
	for _, p := range wrapperPrefixes {
		qt.Check(t, qt.SliceContains(allSyscallPrefixes, p))
	}
}

func TestDetectSyscallPrefix(t *testing.T) {
	kernel := func(name string) func(string) bool { return func(n string) bool { return n == name } }
	qt.Check(t, qt.Equals(DetectSyscallPrefix("amd64", kernel("__x64_sys_getpid")), "__x64_sys_"))
	qt.Check(t, qt.Equals(DetectSyscallPrefix("amd64", kernel("sys_getpid")), "sys_"))
	qt.Check(t, qt.Equals(DetectSyscallPrefix("amd64", kernel("")), "__x64_sys_"))
}

// slowMatch is the slow twin of Set.Match: every pattern in turn.
func slowMatch(ps []Pattern, module, name string) (int, bool) {
	index, ok, everything := everythingIndex, false, true
	for i := range ps {
		p := &ps[i]
		everything = everything && p.Exclude
		if !p.Match(module, name) {
			continue
		}
		if p.Exclude {
			return 0, false
		}
		if !ok {
			index, ok = i, true
		}
	}
	if !ok && !everything {
		return 0, false
	}
	return index, true
}

func FuzzSetEqualsEach(f *testing.F) {
	f.Add("tcp_* !*msg vfs_read vfs_read+0x10", "", "tcp_sendmsg")
	f.Add("kvm:foo foo *:foo vmlinux:* syscall:open*", "vmlinux", "sys_openat")
	f.Add("!nf-*:/x/ n*:x* #1 0x1 [a-z]* ?x", "nf-tables", "nft_x")
	f.Add("!x", "a", "")
	f.Fuzz(func(t *testing.T, patterns, module, name string) {
		var ps []Pattern
		for text := range strings.FieldsSeq(patterns) {
			if p, err := Parse(text); err == nil {
				ps = append(ps, p)
			}
		}
		s, err := NewSet(ps, SetOptions{})
		qt.Assert(t, qt.IsNil(err))
		index, ok := s.Match(module, name)
		wantIndex, wantOK := slowMatch(ps, module, name)
		qt.Assert(t, qt.Equals(ok, wantOK))
		qt.Assert(t, qt.Equals(index, wantIndex))
		checkSet(t, s, name, ok)
		if ok && s.VmlinuxOnly() {
			qt.Assert(t, qt.Equals(canonicalModule(module), vmlinux))
		}
	})
}

// checkSet requires that a matching name is among the exact ones when those are all.
func checkSet(t *testing.T, s *Set, name string, matched bool) {
	t.Helper()
	names, all := s.Exact()
	if !matched || !all {
		return
	}
	found := false
	for _, n := range names {
		found = found || n.Name == name
	}
	qt.Assert(t, qt.IsTrue(found))
}
