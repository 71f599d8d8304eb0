package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/vm/cpio"
	"github.com/kallscope/kallscope/internal/vm/wire"
)

// fakeImage returns the start of a bzImage.
func fakeImage(release string) []byte {
	b := make([]byte, 0x400)
	b[0x1fe], b[0x1ff] = 0x55, 0xaa
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x20e:], 0x100)
	copy(b[0x300:], release+" (builder) #1 SMP\x00")
	return b
}

func writeFile(t *testing.T, data []byte, elem ...string) string {
	t.Helper()
	file := filepath.Join(elem...)
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(file), 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, data, 0o644)))
	return file
}

func TestOpenKernel(t *testing.T) {
	for _, tc := range []struct{ name, image, modules string }{
		{"boot", "boot/vmlinuz-6.1.0", "lib/modules/6.1.0"},
		{"usr", "usr/lib/modules/6.1.0/vmlinuz", "usr/lib/modules/6.1.0"},
		{"merged", "lib/modules/6.1.0/vmlinuz", "lib/modules/6.1.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			image := writeFile(t, fakeImage("6.1.0"), dir, tc.image)
			modules := filepath.Join(dir, tc.modules)
			qt.Assert(t, qt.IsNil(os.MkdirAll(modules, 0o755)))
			want := Kernel{Release: "6.1.0", Dir: dir, Image: image, ModulesDir: modules}
			for _, path := range []string{dir, image} {
				got, err := OpenKernel(path)
				qt.Assert(t, qt.IsNil(err))
				qt.Assert(t, qt.Equals(got, want))
			}
		})
	}
}

func TestOpenKernelErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenKernel(dir)
	qt.Assert(t, qt.ErrorIs(err, fs.ErrNotExist))
	for _, data := range [][]byte{nil, make([]byte, 4096), fakeImage("6.1")[:0x280]} {
		_, err = OpenKernel(writeFile(t, data, dir, "boot", "vmlinuz-1"))
		qt.Assert(t, qt.ErrorIs(err, ErrNotKernel))
	}
	writeFile(t, nil, dir, "boot", "vmlinuz-2")
	_, err = OpenKernel(dir)
	qt.Assert(t, qt.ErrorMatches(err, "open kernel: 2 kernels in .*: name one, such as .*vmlinuz-1"))
}

func FuzzHeaderRelease(f *testing.F) {
	f.Add(fakeImage("6.1.0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		release, err := headerRelease(data)
		qt.Assert(t, qt.Equals(release == "", err != nil))
	})
}

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 3, ""},
		{"a\n", 3, "a"},
		{"a\nb\nc\n", 2, "b\nc"},
		{"a\nb\nc", 3, "a\nb\nc"},
		{"a\nb", 0, ""},
	} {
		qt.Check(t, qt.Equals(tail(tc.in, tc.n), tc.want), qt.Commentf("%q %d", tc.in, tc.n))
	}
}

func TestCrashCause(t *testing.T) {
	err := crashCause("[ 1.0] fine\n[ 2.0] Kernel panic - not syncing: why\n[ 3.0] end\n")
	qt.Assert(t, qt.ErrorIs(err, ErrPanic))
	qt.Assert(t, qt.ErrorMatches(err, "kernel panic: Kernel panic - not syncing: why"))
	qt.Assert(t, qt.Equals(crashCause("[ 1.0] fine\n"), ErrVanished))
}

func TestCrashError(t *testing.T) {
	err := &CrashError{Cause: ErrTimeout, Log: "l1\nl2", QEMU: "q"}
	qt.Assert(t, qt.Equals(err.Error(), "guest: timeout\nqemu: q\nend of the kernel log:\nl1\nl2"))
	qt.Assert(t, qt.ErrorIs(err, ErrTimeout))
	qt.Assert(t, qt.Equals((&ExitError{Code: 3}).Error(), "exit status 3"))
	qt.Assert(t, qt.Equals((&ExitError{Code: 137, Signal: 9}).Error(), "signal: killed"))
}

func TestKernelLogBounded(t *testing.T) {
	var l kernelLog
	chunk := strings.Repeat("x", 1<<16-1) + "\n"
	for range 64 {
		l.Write([]byte(chunk))
	}
	l.line([]byte("end\r"))
	qt.Assert(t, qt.Equals(len(l.String()), maxLog))
	qt.Assert(t, qt.IsTrue(strings.HasSuffix(l.String(), "x\nend\n")))
	qt.Assert(t, qt.IsTrue(len(l.buf) <= 3*maxLog))
}

func TestQEMUArgs(t *testing.T) {
	c := &Cmd{Kernel: Kernel{Image: "/k/vmlinuz"}, CPUs: 2, Icount: true, Append: []string{"a=b", "quiet"}}
	args := c.qemuArgs("/d/initrd", "/d,e/port", 100<<20)
	for _, want := range [][]string{
		{"-accel", "tcg,thread=single"},
		{"-smp", "2"},
		{"-m", "812"},
		{"-icount", "shift=0"},
		{"-chardev", "socket,id=port,path=/d,,e/port"},
		{"-kernel", "/k/vmlinuz"},
		{"-initrd", "/d/initrd"},
	} {
		i := slices.Index(args, want[1])
		qt.Check(t, qt.IsTrue(i > 0 && args[i-1] == want[0]), qt.Commentf("%v in %v", want, args))
	}
	line := args[len(args)-1]
	qt.Assert(t, qt.StringContains(line, "panic=-1"))
	qt.Assert(t, qt.IsTrue(strings.HasSuffix(line, wire.Marker+"=1 a=b quiet")))
}

func TestStartErrors(t *testing.T) {
	image := writeFile(t, fakeImage("6.1"), t.TempDir(), "vmlinuz")
	ok := Kernel{Image: image}
	for _, tc := range []struct {
		cmd  Cmd
		want string
	}{
		{Cmd{}, "start guest: no kernel given .*"},
		{Cmd{Kernel: ok}, "start guest: no program given"},
		{Cmd{Kernel: Kernel{Image: "/none"}, Path: "/x"}, "start guest: open /none: .*"},
		{Cmd{Kernel: ok, Path: "/x", Append: []string{"a\nb"}}, "start guest: kernel parameter .*"},
		{Cmd{Kernel: ok, Path: "/x", QEMU: "/q", Modules: []string{"m"}}, "start guest: load modules .*no modules folder"},
		{Cmd{Kernel: ok, Path: image, QEMU: "/q", Init: image}, "start guest: .*not a Linux program.*"},
	} {
		qt.Check(t, qt.ErrorMatches(tc.cmd.Run(), tc.want))
		qt.Check(t, qt.ErrorMatches(tc.cmd.Wait(), "vm: not started"))
		qt.Check(t, qt.ErrorMatches(tc.cmd.Signal(os.Interrupt), "vm: not started"))
	}
}

// contents returns the regular files of an archive by name.
func contents(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	files := map[string]string{}
	for e, err := range cpio.Read(f) {
		qt.Assert(t, qt.IsNil(err))
		files[e.Name] = fmt.Sprintf("%o %s", e.Mode, e.Data)
	}
	return files
}

func TestArchiveCopy(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, []byte("A"), dir, "in", "a")
	writeFile(t, []byte("B"), dir, "in", "sub", "b")
	qt.Assert(t, qt.IsNil(os.Symlink("a", filepath.Join(dir, "in", "link"))))
	qt.Assert(t, qt.IsNil(os.Symlink("nowhere", filepath.Join(dir, "in", "dangling"))))
	out, err := os.Create(filepath.Join(dir, "out"))
	qt.Assert(t, qt.IsNil(err))
	defer out.Close()
	a := archive{Writer: cpio.NewWriter(out), seen: map[string]bool{}}
	qt.Assert(t, qt.IsNil(a.copy("/x/in", filepath.Join(dir, "in"))))
	qt.Assert(t, qt.IsNil(a.copy("/x/in/a", filepath.Join(dir, "in", "sub", "b"))))
	qt.Assert(t, qt.IsNil(a.Close()))
	qt.Assert(t, qt.DeepEquals(contents(t, out.Name()), map[string]string{
		"x": "40755 ", "x/in": "40755 ", "x/in/sub": "40755 ",
		"x/in/a": "100644 A", "x/in/link": "100644 A", "x/in/sub/b": "100644 B",
	}))
	qt.Assert(t, qt.ErrorIs(a.copy("/y", filepath.Join(dir, "none")), fs.ErrNotExist))
}

func TestConfigDefaults(t *testing.T) {
	c := &Cmd{Path: "/p", Fetch: map[string]string{"/b": "1", "/a": "2"}, FetchOptional: map[string]string{"/b": "1"}}
	cfg := c.config(guestModules{})
	qt.Assert(t, qt.DeepEquals(cfg, wire.Config{
		Path: "/p", Args: []string{"/p"}, Env: DefaultEnv(0), Dir: "/", Fetch: []string{"/a", "/b"},
	}))
}

func TestFetcher(t *testing.T) {
	dir := t.TempDir()
	f := fetcher{to: map[string]string{"/r": filepath.Join(dir, "r"), "/gone": "x"}, may: map[string]string{"/may": "y"}}
	send := func(head, data string) {
		qt.Assert(t, qt.IsNil(f.head([]byte(head))))
		qt.Assert(t, qt.IsNil(f.data([]byte(data))))
	}
	send(`{"Root":"/r","Path":"/r/sub/f","Mode":416}`, "12")
	qt.Assert(t, qt.IsNil(f.data([]byte("3"))))
	send(`{"Root":"/may","Path":"/may","Missing":true}`, "")
	qt.Assert(t, qt.IsNil(f.close()))
	got, err := os.ReadFile(filepath.Join(dir, "r", "sub", "f"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(got), "123"))

	send(`{"Root":"/r","Path":"/r/../../etc/passwd","Mode":416}`, "evil")
	send(`{"Root":"/rx","Path":"/rx"}`, "")
	send(`{"Root":"/gone","Path":"/gone","Missing":true}`, "")
	err = f.close()
	qt.Assert(t, qt.ErrorMatches(err, `(?s)fetch /r/../../etc/passwd: not below /r\n.*not asked for\n.*`))
	qt.Assert(t, qt.IsTrue(errors.Is(err, fs.ErrNotExist)))
	qt.Assert(t, qt.IsNotNil(f.head([]byte("{"))))
}
