package kmod

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// module returns the smallest ELF file with a .modinfo section.
func module(info string) []byte {
	const shstrtab = "\x00.modinfo\x00.shstrtab\x00"
	const head = 64
	var b bytes.Buffer
	order := binary.LittleEndian
	shoff := uint64(head + len(info) + len(shstrtab))
	binary.Write(&b, order, elf.Header64{
		Ident:     [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
		Type:      uint16(elf.ET_REL),
		Machine:   uint16(elf.EM_X86_64),
		Version:   1,
		Shoff:     shoff,
		Ehsize:    head,
		Shentsize: 64,
		Shnum:     3,
		Shstrndx:  2,
	})
	b.WriteString(info)
	b.WriteString(shstrtab)
	binary.Write(&b, order, elf.Section64{})
	binary.Write(&b, order, elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: head, Size: uint64(len(info))})
	binary.Write(&b, order, elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: head + uint64(len(info)), Size: uint64(len(shstrtab))})
	return b.Bytes()
}

func compressed(t *testing.T, ext string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch ext {
	case ".xz":
		w, err := xz.NewWriter(&b)
		qt.Assert(t, qt.IsNil(err))
		w.Write(data)
		qt.Assert(t, qt.IsNil(w.Close()))
	case ".gz":
		w := gzip.NewWriter(&b)
		w.Write(data)
		qt.Assert(t, qt.IsNil(w.Close()))
	case ".zst":
		w, err := zstd.NewWriter(&b)
		qt.Assert(t, qt.IsNil(err))
		w.Write(data)
		qt.Assert(t, qt.IsNil(w.Close()))
	default:
		return data
	}
	return b.Bytes()
}

// tree writes modules, file name → .modinfo, and returns the folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, info := range files {
		file := filepath.Join(dir, "kernel", name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(file), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(file, compressed(t, filepath.Ext(name), module(info)), 0o644)))
	}
	builtin := "kernel/lib/libcrc32c.ko\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte(builtin), 0o644)))
	return dir
}

var testModules = map[string]string{
	"net/nf_tables.ko.xz": "license=GPL\x00depends=nfnetlink,libcrc32c\x00",
	"net/nfnetlink.ko":    "depends=\x00",
	"net/nft-chain.ko.gz": "depends=nf_tables,nfnetlink\x00",
	"fs/btrfs.ko.zst":     "depends=xor\x00softdep=pre: crc32c blake2b-256 post: other\x00",
	"lib/xor.ko":          "",
	"lib/blake2b-256.ko":  "alias=x\x00",
	"net/broken.ko":       "depends=nowhere\x00",
	"lib/test_bpf.ko":     "",
}

func open(t *testing.T, opts Options) *Set {
	t.Helper()
	set, err := Open(tree(t, testModules), opts)
	qt.Assert(t, qt.IsNil(err))
	return set
}

func names(mods []Module) []string {
	var n []string
	for _, m := range mods {
		n = append(n, m.Name)
	}
	return n
}

func TestResolveOrder(t *testing.T) {
	set := open(t, Options{})
	for _, tc := range []struct {
		name     string
		in, want []string
	}{
		{"none", nil, nil},
		{"alone", []string{"nfnetlink"}, []string{"nfnetlink"}},
		{"deep", []string{"nft-chain"}, []string{"nfnetlink", "nf_tables", "nft_chain"}},
		{"once", []string{"nf_tables", "nft_chain", "nf_tables"}, []string{"nfnetlink", "nf_tables", "nft_chain"}},
		{"soft", []string{"btrfs"}, []string{"xor", "blake2b_256", "btrfs"}},
		{"builtin", []string{"libcrc32c", "xor"}, []string{"xor"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mods, err := set.Resolve(tc.in...)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.DeepEquals(names(mods), tc.want))
		})
	}
}

func TestResolvePath(t *testing.T) {
	mods, err := open(t, Options{}).Resolve("nf_tables")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(mods[1].Path, "kernel/net/nf_tables.ko"))
	qt.Assert(t, qt.DeepEquals(mods[1].Data, module(testModules["net/nf_tables.ko.xz"])))
}

func TestResolveMissing(t *testing.T) {
	set := open(t, Options{})
	_, err := set.Resolve("unheard_of")
	qt.Assert(t, qt.IsTrue(errors.Is(err, ErrNotFound)))
	qt.Assert(t, qt.ErrorMatches(err, `module unheard_of: no such module in .*`))
	_, err = set.Resolve(All)
	qt.Assert(t, qt.ErrorMatches(err, `module broken: needs nowhere: no such module in .*`))
}

func TestResolveCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "ko")
	set := open(t, Options{Cache: cache})
	first, err := set.Resolve("nf_tables")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(set.dir, "kernel/net/nf_tables.ko.xz"))))
	second, err := set.Resolve("nf_tables")
	qt.Assert(t, qt.IsNil(err), qt.Commentf("read from the cache"))
	qt.Assert(t, qt.DeepEquals(second, first))
}

func TestResolveAllFillsCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "ko")
	set := open(t, Options{Cache: cache})
	delete(set.files, "broken")
	mods, err := set.Resolve(All)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(mods, len(testModules)-2))
	for _, name := range []string{"nf_tables", "nft_chain", "btrfs"} {
		_, err := os.Stat(filepath.Join(cache, name+".ko"))
		qt.Check(t, qt.IsNil(err))
	}
}

func TestOpenMissing(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none"), Options{})
	qt.Assert(t, qt.ErrorMatches(err, "index modules: .*no such file.*"))
}

func TestDecompressDamaged(t *testing.T) {
	dir := t.TempDir()
	for _, ext := range []string{".xz", ".gz", ".zst"} {
		file := filepath.Join(dir, "m.ko"+ext)
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("nonsense"), 0o644)))
		_, err := decompress(file)
		qt.Check(t, qt.ErrorMatches(err, "decompress .*m.ko"+ext+": .*"))
	}
}

func FuzzDepends(f *testing.F) {
	f.Add(module("depends=a,b\x00softdep=pre: c\x00"))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Depends(data)
	})
}
