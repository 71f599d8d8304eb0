package pattern

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func mustParse(tb testing.TB, text string) Pattern {
	tb.Helper()
	p, err := Parse(text)
	qt.Assert(tb, qt.IsNil(err))
	return p
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, module, name string
		want                  bool
	}{
		{"vfs_read", "", "vfs_read", true},
		{"vfs_read", "", "vfs_readv", false},
		{"vfs_read", "", "xvfs_read", false},
		{"vfs_read", "ext4", "vfs_read", true},
		{"vfs_read+0x10", "", "vfs_read", true},
		{"tcp_*", "", "tcp_", true},
		{"tcp_*", "", "tcp_sendmsg", true},
		{"tcp_*", "nf_tables", "tcp_sendmsg", true},
		{"tcp_*", "", "mptcp_sendmsg", false},
		{"*", "kvm", "anything", true},
		{"*", "", "", true},
		{"**", "", "x", true},
		{"*_read", "", "vfs_read", true},
		{"*_read", "", "vfs_read_iter", false},
		{"*read*", "", "vfs_readv", true},
		{"v*a*d", "", "vfs_read", true},
		{"v*a*d", "", "vd", false},
		{"aba*ba", "", "aba", false},
		{"aba*ba", "", "ababa", true},
		{"*a*a*a*b", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
		{"vfs_r?ad", "", "vfs_read", true},
		{"vfs_r?ad", "", "vfs_rad", false},
		{"?", "", "é", true},
		{"?", "", "\xff", true},
		{"?", "", "ab", false},
		{"[a-c]x", "", "bx", true},
		{"[a-c]x", "", "dx", false},
		{"[!a-c]x", "", "bx", false},
		{"[^a-c]x", "", "dx", true},
		{"[]a]x", "", "]x", true},
		{"[!]a]x", "", "]x", false},
		{"[a-]x", "", "-x", true},
		{`[\]\-]x`, "", "-x", true},
		{`[\a-\c]x`, "", "bx", true},
		{`a\*b`, "", "a*b", true},
		{`a\*b`, "", "axb", false},
		{`a\b`, "", "ab", true},
		{"*[0-9]", "", "foo.isra.0", true},
		{"*.[a-z]*.?", "", "foo.isra.0", true},
		{"*o?.*", "", "foox.cold", true},
		{"*o?.*", "", "fo.cold", false},
		{"*??", "", "a", false},
		{"[!_]*", "", "__do_sys", false},
		{"/^tcp_(send|recv)msg$/", "", "tcp_sendmsg", true},
		{"/^tcp_(send|recv)msg$/", "", "tcp_sendmsg_locked", false},
		{"/(send|recv)msg/", "", "tcp_recvmsg_locked", true},
		{"/sendmsg/", "", "tcp_sendmsg_locked", true},
		{"/(sendmsg)/", "", "tcp_sendmsg_locked", true},
		{"/sendmsg/", "", "tcp_recvmsg", false},
		{"/(?i)SENDMSG/", "", "tcp_sendmsg", true},
		{"kvm:vmx_*", "kvm", "vmx_vcpu_run", true},
		{"kvm:vmx_*", "kvm_intel", "vmx_vcpu_run", false},
		{"kvm:vmx_*", "", "vmx_vcpu_run", false},
		{"kvm:/vmx_.*run/", "kvm", "vmx_vcpu_run", true},
		{"kvm:/vmx_.*run/", "", "vmx_vcpu_run", false},
		{"nf_*:foo", "nf_tables", "foo", true},
		{"nf_*:foo", "xt_nat", "foo", false},
		{"nf-tables:foo", "nf_tables", "foo", true},
		{"nf_tables:foo", "nf-tables", "foo", true},
		{`nf\-tables:foo`, "nf_tables", "foo", true},
		{"*:foo", "kvm", "foo", true},
		{"*:foo", "", "foo", true},
		{"v*:foo", "", "foo", true},
		{"vmlinux:foo", "", "foo", true},
		{"vmlinux:foo", "vmlinux", "foo", true},
		{"vmlinux:foo", "kvm", "foo", false},
		{"[k]probe:foo", "kprobe", "foo", true},
		{"syscall:openat", "", "__x64_sys_openat", true},
		{"syscall:openat", "", "__arm64_sys_openat", true},
		{"syscall:openat", "", "__riscv_sys_openat", true},
		{"syscall:openat", "", "__s390x_sys_openat", true},
		{"syscall:openat", "", "sys_openat", true},
		{"syscall:openat", "", "__x64_sys_openat2", false},
		{"syscall:openat", "", "openat", false},
		{"syscall:openat", "kvm", "__x64_sys_openat", false},
		{"syscall:open*", "", "__x64_sys_openat2", true},
		{"#12", "", "vfs_read", false},
		{"0xffffffff81000000", "", "vfs_read", false},
		{"!tcp_*", "", "tcp_sendmsg", true},
	} {
		p := mustParse(t, tc.pattern)
		got := p.Match(tc.module, tc.name)
		qt.Check(t, qt.Equals(got, tc.want), qt.Commentf("%s on %s:%q", tc.pattern, tc.module, tc.name))
	}
}

func TestMatchUncompiled(t *testing.T) {
	p := Pattern{Kind: Glob, Name: "*"}
	qt.Check(t, qt.IsFalse(p.Match("", "foo")))
	_, ok := p.Exact()
	qt.Check(t, qt.IsFalse(ok))
}

func TestMatchModule(t *testing.T) {
	for _, tc := range []struct {
		pattern, module string
		want            bool
	}{
		{"foo", "", true},
		{"foo", "kvm", true},
		{"kvm:foo", "kvm", true},
		{"kvm:foo", "", false},
		{"syscall:openat", "vmlinux", true},
		{"syscall:openat", "kvm", false},
		{"#12", "", true},
		{"#12", "nf_tables", false},
		{"nf-tables#12", "nf_tables", true},
		{"nf-tables#12", "", false},
		{"0xffffffff81000000", "kvm", true},
	} {
		p := mustParse(t, tc.pattern)
		qt.Check(t, qt.Equals(p.MatchModule(tc.module), tc.want), qt.Commentf("%s on %q", tc.pattern, tc.module))
	}
}

func TestExact(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		ok            bool
	}{
		{"vfs_read", "vfs_read", true},
		{"!vfs_read", "vfs_read", true},
		{"vfs_read+0x10", "vfs_read", true},
		{"kvm:vmx_run", "vmx_run", true},
		{"nf_*:foo", "foo", true},
		{`a\*b`, "a*b", true},
		{"tcp_*", "", false},
		{"tcp_?", "", false},
		{"tcp_[a]", "", false},
		{"/^foo$/", "", false},
		{"syscall:openat", "", false},
		{"#12", "", false},
		{"0x12", "", false},
	} {
		p := mustParse(t, tc.pattern)
		name, ok := p.Exact()
		qt.Check(t, qt.Equals(name, tc.name), qt.Commentf("%s", tc.pattern))
		qt.Check(t, qt.Equals(ok, tc.ok), qt.Commentf("%s", tc.pattern))
	}
}

func TestVmlinuxOnly(t *testing.T) {
	for text, want := range map[string]bool{
		"vmlinux:foo":        true,
		"vmlinux:/foo/":      true,
		`vm\linux:foo`:       true,
		"syscall:*":          true,
		"#12":                true,
		"vmlinux#12":         true,
		"foo":                false,
		"*:foo":              false,
		"vmlinux*:foo":       false,
		"kvm:foo":            false,
		"kvm#12":             false,
		"/foo/":              false,
		"0xffffffff81000000": false,
	} {
		p := mustParse(t, text)
		qt.Check(t, qt.Equals(p.VmlinuxOnly(), want), qt.Commentf("%s", text))
	}
}

func TestKindString(t *testing.T) {
	var got []string
	for k := Glob; k <= Addr+1; k++ {
		got = append(got, k.String())
	}
	qt.Assert(t, qt.DeepEquals(got, []string{"glob", "regexp", "syscall", "BTF id", "address", "unknown"}))
}
