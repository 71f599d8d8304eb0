package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// snapshotFile writes the facts of a small kernel.
func snapshotFile(t *testing.T) string {
	t.Helper()
	k, err := kallscope.Live(kallscope.LiveOptions{Root: testutil.Kernel{
		Kallsyms: "ffffffff81000100 T vfs_read\nffffffff81000200 T vfs_write\nffffffff81000200 T vfs_put\n",
		Sites:    "ffffffff81000104 vfs_read\n",
	}.Root(t)})
	qt.Assert(t, qt.IsNil(err))
	s, err := k.Snapshot(nil)
	qt.Assert(t, qt.IsNil(err))
	path := filepath.Join(t.TempDir(), "k.ksnap")
	qt.Assert(t, qt.IsNil(s.WriteFile(path)))
	return path
}

// TestKernelFile: list and resolve answer from a file.
func TestKernelFile(t *testing.T) {
	path := snapshotFile(t)
	out, speech, status := tool("list", "vfs_*", "--kernel", path)
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Assert(t, qt.Matches(out, `ADDRESS .*\n0xffffffff81000100  vmlinux  -         kprobe.multi     vfs_read\n`))
	qt.Assert(t, qt.StringContains(speech, "CONFIG_DEBUG_INFO_BTF"))
	_, speech, _ = tool("list", "vfs_*", "-v", "--kernel", path)
	qt.Assert(t, qt.StringContains(speech, "kernel 6.12.0-test, build id cafebabe, "+path+"\n"))

	out, _, status = tool("resolve", "vfs_write", "--kernel", path)
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Assert(t, qt.Equals(out, "0xffffffff81000200\tvmlinux\tvfs_write\t-\tvfs_put\n"))

	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("\x7fELF"), 0o600)))
	_, speech, status = tool("list", "vfs_*", "--kernel", path)
	qt.Assert(t, qt.Equals(status, exitError))
	qt.Assert(t, qt.Matches(speech, "kallscope: kernel .*/k.ksnap: not a file that kallscope wrote; make one with: kallscope snapshot -o FILE\n"))
}

// TestUnmatchedFile: a pattern that the shell has made a file name of is told
// from a name that is wrong.
func TestUnmatchedFile(t *testing.T) {
	path := snapshotFile(t)
	t.Chdir(t.TempDir())
	qt.Assert(t, qt.IsNil(os.WriteFile("vfs_notes", nil, 0o600)))
	_, speech, status := tool("list", "vfs_notes", "--kernel", path)
	qt.Assert(t, qt.Equals(status, exitNoMatch))
	qt.Assert(t, qt.StringContains(speech, "vfs_notes: no function matches; a file here has this name: did the shell expand a pattern that is not quoted?\n"))
	_, speech, _ = tool("list", "nfs_notes", "--kernel", path)
	qt.Assert(t, qt.StringContains(speech, "nfs_notes: no function matches\n"))
}

// TestOddNames: names of modules can hold anything but blanks, and those of BPF
// programs a tag alone.
func TestOddNames(t *testing.T) {
	k, err := kallscope.Live(kallscope.LiveOptions{Root: testutil.Kernel{
		Kallsyms: "ffffffff81000000 T _text\nffffffffc0000000 t größe\t[odd]\nffffffffc0000040 t bad\xff\t[odd]\nffffffffc0100000 t bpf_prog_6deef7357e7b4530\t[bpf]\n",
	}.Root(t)})
	qt.Assert(t, qt.IsNil(err))
	s, err := k.Snapshot(nil)
	qt.Assert(t, qt.IsNil(err))
	path := filepath.Join(t.TempDir(), "k.ksnap")
	qt.Assert(t, qt.IsNil(s.WriteFile(path)))
	out, speech, status := tool("resolve", "odd:*", "bpf_prog_*", "--json", "--kernel", path)
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	qt.Assert(t, qt.IsTrue(utf8.ValidString(out)))
	qt.Assert(t, qt.StringContains(out, `"name":"größe"`))
	qt.Assert(t, qt.StringContains(out, `"name":"bpf_prog_6deef7357e7b4530"`))
	qt.Assert(t, qt.Equals(strings.Count(out, "\n"), 3))
}
