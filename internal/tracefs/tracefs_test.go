package tracefs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func readAll(t *testing.T, text string, withAddrs bool) ([]string, error) {
	t.Helper()
	var got []string
	err := ReadSites(strings.NewReader(text), withAddrs, func(s Site) bool {
		got = append(got, fmt.Sprintf("%x %s [%s] %v", s.Addr, s.Name, s.Module, s.Invalid()))
		return true
	})
	return got, err
}

func TestReadSites(t *testing.T) {
	got, err := readAll(t, "ffffffff81000104 vfs_read\nffffffffc0001004 fuse_open [fuse]\nffffffff81000500 __ftrace_invalid_address___64\n", true)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, []string{
		"ffffffff81000104 vfs_read [] false",
		"ffffffffc0001004 fuse_open [fuse] false",
		"ffffffff81000500 __ftrace_invalid_address___64 [] true",
	}))
}

func TestReadSiteNames(t *testing.T) {
	got, err := readAll(t, "vfs_read\n__ftrace_invalid_address___64\nseq_demo\nseq_demo\nfuse_open [fuse]\ndo_thing.isra.0\n", false)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, []string{
		"0 vfs_read [] false",
		"0 __ftrace_invalid_address___64 [] true",
		"0 seq_demo [] false",
		"0 seq_demo [] false",
		"0 fuse_open [fuse] false",
		"0 do_thing.isra.0 [] false",
	}))
}

func TestReadSitesStops(t *testing.T) {
	n := 0
	err := ReadSites(strings.NewReader("a\nb [m]\nnot a site\n"), false, func(s Site) bool {
		n++
		return len(s.Module) == 0
	})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(n, 2))
}

func TestReadSitesBad(t *testing.T) {
	for _, test := range []struct {
		text      string
		withAddrs bool
		want      string
	}{
		{"ffffffff81000104 a\nzz b\n", true, `line 2: "zz b" is not an ftrace record`},
		{"ffffffff81000104\n", true, `line 1: "ffffffff81000104" is not an ftrace record`},
		{"ffffffff810001040 a\n", true, `line 1: "ffffffff810001040 a" is not an ftrace record`},
		{"a [m\n", false, `line 1: "a \[m" is not an ftrace record`},
		{"a []\n", false, `line 1: "a \[\]" is not an ftrace record`},
		{"<html> x\n", false, `line 1: "<html> x" is not an ftrace record`},
		{"a\n\nb\n", false, `line 2: "" is not an ftrace record`},
		{strings.Repeat("x", 70<<10), false, `bufio.Scanner: token too long`},
	} {
		_, err := readAll(t, test.text, test.withAddrs)
		qt.Assert(t, qt.ErrorMatches(err, test.want))
	}
}

func FuzzReadSites(f *testing.F) {
	f.Add([]byte("ffffffff81000104 vfs_read\nffffffffc0001004 fuse_open [fuse]\n"), true)
	f.Add([]byte("vfs_read\nfuse_open [fuse]\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, withAddrs bool) {
		// What was read prints back to what was given.
		var out bytes.Buffer
		err := ReadSites(bytes.NewReader(data), withAddrs, func(s Site) bool {
			if withAddrs {
				fmt.Fprintf(&out, "%016x ", s.Addr)
			}
			out.Write(s.Name)
			if len(s.Module) > 0 {
				fmt.Fprintf(&out, " [%s]", s.Module)
			}
			out.WriteByte('\n')
			return true
		})
		if err != nil {
			return
		}
		again, err := readAll(t, out.String(), withAddrs)
		if err != nil || strings.Count(out.String(), "\n") != len(again) {
			t.Fatalf("%q read back: %v, %v", out.String(), again, err)
		}
	})
}

func TestMount(t *testing.T) {
	root := t.TempDir()
	_, err := Mount(root)
	qt.Assert(t, qt.ErrorIs(err, ErrNotMounted))

	usual := filepath.Join(root, "sys/kernel/debug/tracing")
	qt.Assert(t, qt.IsNil(os.MkdirAll(usual, 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(usual, "trace"), nil, 0o600)))
	got, err := Mount(root)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, usual))

	mounts := "sysfs /sys sysfs rw 0 0\ntracefs /mnt/my\\040trace tracefs rw 0 0\n"
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(root, "proc/self"), 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(root, "proc/self/mounts"), []byte(mounts), 0o600)))
	got, err = Mount(root)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, filepath.Join(root, "mnt/my trace")))
}

func TestReadBlacklist(t *testing.T) {
	got, err := ReadBlacklist(strings.NewReader("0xffffffff84620100-0xffffffff846201f0\ttrap_demo\n0xffffffff84600000-0xffffffff84601000\t.entry.text\n0x0000000000000000-0x0000000000000000\thidden_one\n"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, []Range{
		{0xffffffff84620100, 0xffffffff846201f0, "trap_demo"},
		{0xffffffff84600000, 0xffffffff84601000, ".entry.text"},
		{0, 0, "hidden_one"},
	}))
	for _, bad := range []string{"x", "0x10-0x8\ta", "0x10\ta", "0x10-0x20 a", "0x10-zz\ta"} {
		_, err := ReadBlacklist(strings.NewReader(bad))
		qt.Assert(t, qt.ErrorMatches(err, "line 1: .* is no range of the kprobe blacklist"))
	}
}

func FuzzReadBlacklist(f *testing.F) {
	f.Add([]byte("0xffffffff84620100-0xffffffff846201f0\ttrap_demo\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ranges, err := ReadBlacklist(bytes.NewReader(data))
		if err == nil && len(ranges) > bytes.Count(data, []byte{'\n'})+1 {
			t.Fatalf("%d ranges of %q", len(ranges), data)
		}
	})
}
