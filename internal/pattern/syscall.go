package pattern

import "strings"

// plainPrefix is what system calls are called with on kernels and architectures whose
// entries take their arguments as such instead of a struct pt_regs.
const plainPrefix = "sys_"

// wrapperPrefixes has the prefix of CONFIG_ARCH_HAS_SYSCALL_WRAPPER by GOARCH, from
// arch/*/include/asm/syscall_wrapper.h. The other architectures have the plain one.
var wrapperPrefixes = map[string]string{
	"386":     "__ia32_sys_",
	"amd64":   "__x64_sys_",
	"arm64":   "__arm64_sys_",
	"riscv64": "__riscv_sys_",
	"s390x":   "__s390x_sys_",
}

// SyscallPrefixes returns the prefixes that functions of system calls have on the
// architecture, the newest kernels' first. The last is the plain "sys_", which on newer
// kernels also begins functions that are no system calls, as sys_fillrect: where the names
// of the kernel are at hand, use [DetectSyscallPrefix].
func SyscallPrefixes(goarch string) []string {
	if p, ok := wrapperPrefixes[goarch]; ok {
		return []string{p, plainPrefix}
	}
	return []string{plainPrefix}
}

// DetectSyscallPrefix returns the one of [SyscallPrefixes] that the kernel uses: the first
// with which getpid, which every kernel has, exists; without any, the first.
func DetectSyscallPrefix(goarch string, exists func(name string) bool) string {
	prefixes := SyscallPrefixes(goarch)
	for _, p := range prefixes {
		if exists(p + "getpid") {
			return p
		}
	}
	return prefixes[0]
}

// allSyscallPrefixes is what a pattern goes by that is not in a set.
var allSyscallPrefixes = []string{
	"__x64_sys_", "__arm64_sys_", "__riscv_sys_", "__s390x_sys_", "__ia32_sys_", plainPrefix,
}

// anyGlob matches what one of its globs does.
type anyGlob []*glob

func (a anyGlob) literalPrefix() string { return "" }

func (a anyGlob) match(name string) bool {
	for _, g := range a {
		if g.match(name) {
			return true
		}
	}
	return false
}

// syscallGlobs returns the globs of a system call, one for each prefix.
func syscallGlobs(name []item, prefixes []string) anyGlob {
	globs := make(anyGlob, 0, len(prefixes))
	for _, prefix := range prefixes {
		globs = append(globs, newGlob(append(literalItems(prefix), name...)))
	}
	return globs
}

// withoutSyscallPrefix returns the name of the system call that a function name contains.
func withoutSyscallPrefix(name string) (string, bool) {
	for _, prefix := range allSyscallPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return rest, true
		}
	}
	return name, false
}
