package feature

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// Capabilities of include/uapi/linux/capability.h.
const (
	capSysAdmin = 21
	capPerfmon  = 38
	capBPF      = 39
)

// WhyDenied says what stands behind EPERM, by what the machine shows below root,
// usually "/", and what to do.
func WhyDenied(root string) string {
	m := machine(root)
	caps := m.capabilities()
	memlock := m.memlock()
	switch {
	case caps.has(capSysAdmin) && memlock != "":
		return "RLIMIT_MEMLOCK, " + memlock + ", may be too low, which kernels before 5.11 charge BPF to; raise it (ulimit -l unlimited)"
	case caps.has(capSysAdmin):
		return "this process has CAP_SYS_ADMIN: a security module, seccomp or the rules of a container refuse it; see the audit log"
	case !caps.has(capBPF) || !caps.has(capPerfmon):
		return "run as root, or with CAP_BPF and CAP_PERFMON"
	}
	return "this process has CAP_BPF and CAP_PERFMON: a security module, seccomp or the rules of a container refuse it; run as root, or see the audit log"
}

// machine is the folder that has proc and sys.
type machine string

func (m machine) text(name string) string {
	data, err := os.ReadFile(filepath.Join(string(m), name))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

// locked reports whether lockdown refuses kprobes (LOCKDOWN_KPROBES is one of
// confidentiality, not of integrity).
func (m machine) locked() bool {
	return strings.Contains(m.text("sys/kernel/security/lockdown"), "[confidentiality]")
}

type capabilities uint64

func (c capabilities) has(bit uint) bool { return c>>bit&1 == 1 }

func (m machine) capabilities() capabilities {
	_, rest, _ := strings.Cut(m.text("proc/self/status"), "CapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	caps, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		return 0
	}
	return capabilities(caps)
}

// memlock returns the soft limit of locked memory where BPF is charged to it,
// and "" where that makes no difference.
func (m machine) memlock() string {
	_, rest, _ := strings.Cut(m.text("proc/self/limits"), "Max locked memory")
	f := strings.Fields(rest)
	if len(f) < 3 || f[0] == "unlimited" || !m.chargesMemlock() {
		return ""
	}
	return f[0] + " bytes"
}

// chargesMemlock looks for the function that charged programs to the limit,
// which went with the limit in v5.11. Where BTF cannot be read the answer is yes:
// so old a kernel is more likely to be without.
func (m machine) chargesMemlock() bool {
	b, err := btfscan.Open(filepath.Join(string(m), "sys/kernel/btf/vmlinux"), nil)
	if err != nil {
		return true
	}
	defer b.Close()
	return len(b.ByName("__bpf_prog_charge")) > 0
}
