// Package pattern has the words in which functions are asked for, and their matcher.
// Every command and the library share it.
//
//	tcp_*  vfs_r?ad  [a-c]*  [!_]*   glob over the whole name; \ takes the next character literally
//	/^tcp_(send|recv)msg$/           Go regular expression, unanchored
//	kvm:vmx_*  nf_*:/init/           in the modules that the glob before the colon matches
//	vmlinux:foo  *:foo  foo          only vmlinux; any module; any module too (vmlinux is one)
//	syscall:openat  syscall:open*    system call, without the architecture's prefix
//	#1234  nf_tables#77              BTF id, of vmlinux or of a module
//	0xffffffff81000000               address
//	vfs_read+0x10  vfs_read+16       offset into one function, named exactly
//	!pattern                         exclude what the pattern matches
//
// In module names a dash equals an underscore. A class may begin with ! or ^ to negate it;
// a ] that stands first in it is a member. A wildcard stands for characters, not bytes, and
// a byte that is no UTF-8 counts as one character. What can be no function name is refused
// with a [*SyntaxError] that says what to type instead: bpftrace's "kprobe:vfs_read",
// a regular expression without slashes, a bare address.
//
// A [Set] asks many patterns at once. An exclusion wins wherever it stands, and a set
// without any including pattern includes every function.
package pattern

// Kind says what a pattern names functions by.
type Kind uint8

// The kinds of pattern.
const (
	Glob    Kind = iota // a glob over the name, or an exact name
	Regexp              // a Go regular expression over the name
	Syscall             // a glob over the name of a system call
	BTFID               // a BTF object and a type id
	Addr                // an address
)

// String returns the kind in words.
func (k Kind) String() string {
	switch k {
	case Glob:
		return "glob"
	case Regexp:
		return "regexp"
	case Syscall:
		return "syscall"
	case BTFID:
		return "BTF id"
	case Addr:
		return "address"
	}
	return "unknown"
}

// vmlinux is how the kernel's own image is called where a module could stand.
const vmlinux = "vmlinux"

// Pattern is one parsed pattern. It is made by [Parse] and not changed afterwards; one that
// was made otherwise matches nothing. Safe for concurrent use.
type Pattern struct {
	// Text is the pattern as typed, without the exclusion mark.
	Text string
	// Exclude is set when the pattern was typed with a leading !.
	Exclude bool
	Kind    Kind

	// Module is the glob before the colon, with dashes as underscores. Empty means it was
	// not given: vmlinux and any module; for a system call, vmlinux alone.
	Module string
	// Name is the glob, the source of the regular expression without its slashes, or the
	// glob of the system call without its prefix. Empty for BTFID and Addr.
	Name string

	// Object is the BTF object that ID belongs to, vmlinux when it was not given. Only for BTFID.
	Object string
	// ID is the BTF type id, never zero. Only for BTFID.
	ID uint32

	// Addr is the address, never zero. Only for Addr.
	Addr uint64

	// Offset is added to the function's entry. Only with HasOffset, which only a Glob with
	// an exact name has.
	Offset    uint64
	HasOffset bool

	module *glob   // nil: any
	name   matcher // nil: no name matches
}

// matcher decides over names.
type matcher interface {
	match(name string) bool
	// literalPrefix returns what every matching name begins with, perhaps nothing.
	literalPrefix() string
}

// String returns the pattern as typed, with its exclusion mark. [Parse] accepts it again.
func (p Pattern) String() string {
	if p.Exclude {
		return "!" + p.Text
	}
	return p.Text
}

// Exact returns the one name that a glob without wildcards matches, its escapes removed.
// It is not ok for the other kinds; which names a system call has, [Set.Exact] knows.
func (p *Pattern) Exact() (name string, ok bool) {
	g, ok := p.name.(*glob)
	if !ok || p.Kind != Glob || !g.exact {
		return "", false
	}
	return g.prefix, true
}

// LiteralPrefix returns what every name that matches begins with, perhaps nothing.
func (p *Pattern) LiteralPrefix() string {
	if p.name == nil {
		return ""
	}
	return p.name.literalPrefix()
}

// MatchModule reports whether functions of the module can match. An empty module is vmlinux.
func (p *Pattern) MatchModule(module string) bool {
	return p.module == nil || p.module.match(canonicalModule(module))
}

// MatchName reports whether the name matches, in whatever module. It ignores Offset. A system
// call matches with any prefix of any architecture; a [Set] can be told which. BTF ids and
// addresses match no name.
func (p *Pattern) MatchName(name string) bool {
	return p.name != nil && p.name.match(name)
}

// Match reports whether the name in that module matches. An empty module is vmlinux.
// That the pattern excludes changes nothing here.
func (p *Pattern) Match(module, name string) bool {
	return p.MatchName(name) && p.MatchModule(module)
}

// VmlinuxOnly reports whether nothing in a module can match. An address says nothing about
// where it is, so it is not vmlinux only.
func (p *Pattern) VmlinuxOnly() bool {
	return p.module != nil && p.module.exact && p.module.prefix == vmlinux
}
