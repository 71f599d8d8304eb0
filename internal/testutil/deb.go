package testutil

import (
	"archive/tar"
	"bytes"
	"fmt"
	"testing"
)

// DebFile is a file in a package.
type DebFile struct {
	Name    string
	Content []byte
}

// Deb returns a Debian package with files. pack compresses its tar archive,
// whose name begins with data.tar; nil leaves it as it is.
func Deb(tb testing.TB, pack func([]byte) []byte, files ...DebFile) []byte {
	tb.Helper()
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	must(tb, w.WriteHeader(&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}))
	for _, f := range files {
		must(tb, w.WriteHeader(&tar.Header{Name: "./" + f.Name, Typeflag: tar.TypeReg, Size: int64(len(f.Content)), Mode: 0o644}))
		_, err := w.Write(f.Content)
		must(tb, err)
	}
	must(tb, w.Close())
	packed := data.Bytes()
	if pack != nil {
		packed = pack(packed)
	}
	out := []byte("!<arch>\n")
	out = appendMember(out, "debian-binary", []byte("2.0\n"))
	out = appendMember(out, "control.tar", []byte("odd"))
	return appendMember(out, "data.tar", packed)
}

func appendMember(out []byte, name string, content []byte) []byte {
	out = fmt.Appendf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "100644", len(content))
	out = append(out, content...)
	if len(content)%2 == 1 {
		out = append(out, '\n')
	}
	return out
}
