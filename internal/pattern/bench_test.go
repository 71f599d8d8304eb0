package pattern

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchNames is how many text symbols a kernel has, about.
const benchNames = 160_000

// kernelNames makes names that are about as long and begin about as alike as a kernel's.
func kernelNames() []string {
	heads := []string{
		"__x64_sys_", "__pfx_", "__pfx___", "__", "tcp_", "udp_", "vfs_", "ext4_", "xfs_", "nf_", "kvm_", "bpf_", "btrfs_",
		"sched_", "acpi_", "pci_", "usb_", "drm_", "i915_", "trace_", "perf_", "mm_", "sk_", "skb_", "dev_", "blk_", "cgroup_",
	}
	words := []string{
		"read", "write", "send", "recv", "msg", "iter", "alloc", "free", "page", "lock", "unlock", "init", "exit", "get", "put",
		"queue", "work", "timer", "node", "inode", "file", "open", "close", "ioctl", "show", "store", "probe", "remove", "update",
	}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(s []string) string { return s[r.IntN(len(s))] }
	names := make([]string, benchNames)
	for i := range names {
		names[i] = pick(heads) + pick(words) + "_" + pick(words) + "_" + pick(words)
	}
	return names
}

func benchmarkSet(b *testing.B, texts ...string) {
	b.Helper()
	names := kernelNames()
	s := mustSet(b, SetOptions{SyscallPrefixes: []string{"__x64_sys_"}}, texts...)
	matched := 0
	b.ReportAllocs()
	for b.Loop() {
		matched = 0
		for _, name := range names {
			if _, ok := s.Match("", name); ok {
				matched++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchNames, "ns/name")
	b.ReportMetric(float64(matched), "matched")
}

// BenchmarkFloor is what one comparison with each name costs.
func BenchmarkFloor(b *testing.B) {
	names := kernelNames()
	matched := 0
	for b.Loop() {
		for _, name := range names {
			if strings.HasPrefix(name, "tcp_") {
				matched++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchNames, "ns/name")
}

func BenchmarkSet(b *testing.B) {
	var exact, globs []string
	for i, name := range kernelNames()[:30_000] {
		exact = append(exact, name)
		if i < 1000 {
			globs = append(globs, fmt.Sprintf("%s*%d", name[:8], i))
		}
	}
	ten := []string{"tcp_*", "udp_*", "*_sendmsg", "*alloc*", "vfs_r?ad*", "ext4_[a-m]*", "kvm_get_*", "__x64_*", "nf_*_init", "*_free_*_page"}
	for _, bc := range []struct {
		name  string
		texts []string
	}{
		{"all", []string{"*"}},
		{"exact", []string{"vfs_read"}},
		{"prefix", []string{"tcp_*"}},
		{"suffix", []string{"*_unlock"}},
		{"contains", []string{"*alloc*"}},
		{"wildcards", []string{"*[a-f]?e*"}},
		{"stars", []string{"*a*a*a*b"}},
		{"regexpAnchored", []string{"/^tcp_(send|recv)/"}},
		{"regexpLiteral", []string{"/alloc/"}},
		{"regexp", []string{"/(send|recv).*(lock|msg)$/"}},
		{"syscalls", []string{"syscall:*"}},
		{"tenGlobs", ten},
		{"tenGlobsExcluding", append(ten, "!*_init", "!__*", "!tcp_read_*")},
		{"exact30k", exact},
		{"globs1000", globs},
	} {
		b.Run(bc.name, func(b *testing.B) { benchmarkSet(b, bc.texts...) })
	}
}

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"vfs_read", "tcp_*", "kvm:vmx_*", "vfs_read+0x10", "#1234", "0xffffffff81000000", "syscall:open*", "/^tcp_(send|recv)msg$/"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
