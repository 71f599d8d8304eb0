// Package testutil makes kernels for tests: folders that look like the proc and
// sys of a running one.
package testutil

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// A Kernel describes the files to make. Empty fields make no file.
type Kernel struct {
	Kallsyms  string
	Sites     string // available_filter_functions_addrs
	SiteNames string // available_filter_functions
	Modules   string // proc/modules
	Lockdown  string
	// BTF are the functions of vmlinux, in the order of their ids.
	BTF []*btf.Func
	// Files are any others, by their path below the root.
	Files map[string]string
}

// Root writes the files and returns the folder.
func (k Kernel) Root(tb testing.TB) string {
	tb.Helper()
	root := tb.TempDir()
	files := maps.Clone(k.Files)
	if files == nil {
		files = make(map[string]string)
	}
	files["proc/sys/kernel/osrelease"] = "6.12.0-test\n"
	files["proc/sys/kernel/kptr_restrict"] = "1\n"
	files["sys/kernel/notes"] = "\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\xca\xfe\xba\xbe"
	for path, text := range map[string]string{
		"proc/kallsyms":                k.Kallsyms,
		"proc/modules":                 k.Modules,
		"sys/kernel/security/lockdown": k.Lockdown,
		"sys/kernel/tracing/trace":     strings.Repeat("#", min(1, len(k.Sites)+len(k.SiteNames))),
		"sys/kernel/tracing/available_filter_functions_addrs": k.Sites,
		"sys/kernel/tracing/available_filter_functions":       k.SiteNames,
	} {
		if text != "" {
			files[path] = text
		}
	}
	if len(k.BTF) > 0 {
		files["sys/kernel/btf/vmlinux"] = marshalBTF(tb, k.BTF)
	}
	for path, text := range files {
		path = filepath.Join(root, path)
		must(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		must(tb, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func marshalBTF(tb testing.TB, funcs []*btf.Func) string {
	tb.Helper()
	b, err := btf.NewBuilder(nil, nil)
	must(tb, err)
	for _, fn := range funcs {
		_, err := b.Add(fn)
		must(tb, err)
	}
	blob, err := b.Marshal(nil, nil)
	must(tb, err)
	return string(blob)
}

// Fn returns a function of BTF with the parameters' types.
func Fn(name string, ret btf.Type, params ...btf.Type) *btf.Func {
	proto := &btf.FuncProto{Return: ret}
	for _, p := range params {
		proto.Params = append(proto.Params, btf.FuncParam{Name: "arg", Type: p})
	}
	return &btf.Func{Name: name, Type: proto}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
