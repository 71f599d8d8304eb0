package kimage

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

func packGzip(b []byte) []byte {
	return packWith(b, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func packWith(b []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	var out bytes.Buffer
	w, err := open(&out)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
}

func packLZ4(b []byte) []byte {
	return packWith(b, func(w io.Writer) (io.WriteCloser, error) {
		z := lz4.NewWriter(w)
		return z, z.Apply(lz4.LegacyOption(true))
	})
}

func packZstd(b []byte) []byte {
	return packWith(b, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

func packXZ(b []byte) []byte {
	return packWith(b, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
}

func packLZMA(b []byte) []byte {
	return packWith(b, func(w io.Writer) (io.WriteCloser, error) { return lzma.NewWriter(w) })
}

// sizeBehind appends the size, as the kernel's build does.
func sizeBehind(pack func([]byte) []byte) func([]byte) []byte {
	return func(b []byte) []byte { return binary.LittleEndian.AppendUint32(pack(b), uint32(len(b))) }
}

// bzImage wraps a payload. The code in front has all magics, which must not
// matter.
func bzImage(payload []byte) []byte {
	const setup, code = 4, 0x300
	b := make([]byte, (setup+1)*512+code)
	copy(b[len(b)-64:], "\x1f\x8b\x08\x28\xb5\x2f\xfd\x02\x21\x4c\x18\xfd7zXZ\x00BZh9\x5d\x00\x00\x7fELF")
	b[x86SetupSects] = setup
	copy(b[x86Magic:], "HdrS")
	binary.LittleEndian.PutUint16(b[x86Version:], 0x20f)
	binary.LittleEndian.PutUint16(b[x86Release:], 0x400)
	copy(b[0x600:], "6.12.0-header (nobody@nowhere) #1 SMP\x00")
	binary.LittleEndian.PutUint32(b[x86Payload:], code)
	binary.LittleEndian.PutUint32(b[x86PayloadLen:], uint32(len(payload)))
	return append(append(b, payload...), make([]byte, 100)...)
}

func zboot(payload []byte) []byte {
	b := make([]byte, 512)
	copy(b, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(payload)))
	copy(b[24:], "gzip")
	return append(b, payload...)
}

func TestContainers(t *testing.T) {
	k := makeKernel(modern, x86Base)
	arm := makeKernel(modern, armBase)
	for _, c := range []struct {
		format string
		data   []byte
		want   *made
	}{
		{"vmlinux", k.elf(), k},
		{"vmlinux (xz)", packXZ(k.elf()), k},
		{"bzImage (gzip)", bzImage(packGzip(k.elf())), k},
		{"bzImage (zstd)", bzImage(sizeBehind(packZstd)(k.elf())), k},
		{"bzImage (lz4)", bzImage(sizeBehind(packLZ4)(k.elf())), k},
		{"bzImage (xz)", bzImage(sizeBehind(packXZ)(k.elf())), k},
		{"bzImage (lzma)", bzImage(sizeBehind(packLZMA)(k.elf())), k},
		{"bzImage (gzip) (gzip)", packGzip(bzImage(packGzip(k.elf()))), k},
		{"arm64 Image", arm.bare(false), arm},
		{"arm64 Image (gzip)", packGzip(arm.bare(false)), arm},
		{"arm64 Image (gzip) in EFI zboot", zboot(packGzip(arm.bare(false))), arm},
	} {
		t.Run(c.format, func(t *testing.T) {
			im := open(t, c.data)
			qt.Check(t, qt.Equals(im.Format(), c.format))
			checkSymbols(t, im, c.want.symbols)
			b, err := im.BTF()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.IsTrue(bytes.Equal(b.Data, k.btf)))
		})
	}
}

func TestRelease(t *testing.T) {
	k := makeKernel(modern, x86Base)
	release, err := open(t, bzImage(packGzip(k.elf()))).Release()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(release, "6.12.0-header"))
	release, err = open(t, k.elf()).Release()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(release, "6.12.0-made"))

	copy(k.rodata, "Linux version X ")
	_, err = open(t, k.elf()).Release()
	qt.Check(t, qt.ErrorIs(err, ErrAbsent))
}

func TestBuildID(t *testing.T) {
	id, err := open(t, makeKernel(modern, x86Base).elf()).BuildID()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(id, "cafebabe"))

	// One that says to be longer than the notes is none.
	cut := buildIDNote[:len(buildIDNote)-1]
	qt.Check(t, qt.Equals(buildID([]byte(cut), binary.LittleEndian), ""))
	qt.Check(t, qt.Equals(buildID([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00x\x00\x00\x00"+buildIDNote), binary.LittleEndian), "cafebabe"))
}

func TestNotKernels(t *testing.T) {
	gz := packGzip
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "image: not a Linux kernel: it begins with "},
		{"text", "hello, world", "image: not a Linux kernel: it begins with 68 65 6c 6c 6f 2c 20 77"},
		{"packed text", string(gz([]byte("hello, world"))), "image: unpacked: not a Linux kernel: it begins with 68 .*"},
		{"packed four times", string(gz(gz(gz(gz([]byte("hello")))))), "image: .*packed too often"},
		{"lzo", string(bzImage([]byte("\x89LZO\x00\x0d\x0a\x1a\x0a\x00\x00\x00\x00"))), "image: bzImage: unpack: lzo: lzo is not supported.*"},
		{"payload of nothing", string(bzImage(make([]byte, 100))), "image: bzImage: payload of no known compression, it begins with 00.*"},
		{"no payload", string(bzImage(nil)), "image: bzImage: payload of no known compression.*"},
		{"wrong size", string(bzImage(append(packXZ([]byte("hello")), 9, 0, 0, 0))), "image: bzImage: unpack: xz: 5 bytes unpacked, there must be 9"},
		{"huge size", string(bzImage(append(packXZ([]byte("hello")), 0xff, 0xff, 0xff, 0xff))), "image: bzImage: unpack: xz: too large when unpacked.*"},
		{"ELF header only", "\x7fELF", "image: malformed ELF file: .*"},
		{"32 bit", "\x7fELF\x01\x01\x01" + string(make([]byte, 100)), "image: .*"},
	} {
		_, err := New(bytes.NewReader([]byte(c.data)), int64(len(c.data)))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf(c.name))
	}
}

// TestBomb: what unpacks to more than it says is refused, and not unpacked.
func TestBomb(t *testing.T) {
	zeros := make([]byte, 64<<20)
	for _, pack := range []func([]byte) []byte{packZstd, packXZ, packLZ4} {
		bomb := bzImage(binary.LittleEndian.AppendUint32(pack(zeros), 1<<20))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(bytes.NewReader(bomb), int64(len(bomb)))
		runtime.ReadMemStats(&after)
		qt.Check(t, qt.ErrorMatches(err, "image: bzImage: unpack: .*"))
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%d bytes taken: %v", n, err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none"))
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	_, err = Open(dir)
	qt.Check(t, qt.ErrorMatches(err, ".* is no regular file"))

	k := makeKernel(modern, x86Base)
	path := filepath.Join(dir, "vmlinux")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, k.elf(), 0o600)))
	im, err := Open(path)
	qt.Assert(t, qt.IsNil(err))
	checkSymbols(t, im, k.symbols)
	for range im.Modules() {
		t.Error("a module")
	}
	qt.Check(t, qt.IsNil(im.Close()))
	qt.Check(t, qt.IsNil(im.Close()))
	checkSymbols(t, im, k.symbols) // has been read
	_, err = im.Sites()
	qt.Check(t, qt.IsNotNil(err))

	im = open(t, packGzip(k.elf()))
	qt.Check(t, qt.IsNil(im.Close()))
	_, err = im.Symbols()
	qt.Check(t, qt.ErrorIs(err, os.ErrClosed))

	_, err = Open(path, path)
	qt.Check(t, qt.ErrorMatches(err, ".* and .*: two kernels, only one can be opened"))
}
