package feature

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// TestDirectCalls: by the BTF of arm64 before v6.4, of Debian's 5.10, and of
// kernels that have them.
func TestDirectCalls(t *testing.T) {
	for _, test := range []struct {
		functions []string
		want      bool
	}{
		{[]string{"register_ftrace_function"}, false},
		{[]string{"vfs_read"}, true}, // not known: loading decides
		{[]string{"register_ftrace_function", "register_ftrace_direct"}, true},
	} {
		b, err := btf.NewBuilder(nil, nil)
		qt.Assert(t, qt.IsNil(err))
		for _, name := range test.functions {
			_, err := b.Add(&btf.Func{Name: name, Type: &btf.FuncProto{Return: &btf.Void{}}})
			qt.Assert(t, qt.IsNil(err))
		}
		data, err := b.Marshal(nil, nil)
		qt.Assert(t, qt.IsNil(err))
		vmlinux, err := btfscan.Parse(data, nil)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(directCalls(vmlinux), test.want), qt.Commentf("%q", test.functions))
	}
}
