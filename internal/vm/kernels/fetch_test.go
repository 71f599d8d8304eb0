//go:build unix

package kernels

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// fakeTools are programs that stand in for apt's and dpkg. apt-get writes down
// that it was called; downloads have the package's name, and dpkg "unpacks"
// $FAKE_IMAGE.
var fakeTools = map[string]string{
	"apt-get": `echo "$*" | sed 's/^[^ ]* [^ ]* //' >>"$FAKE_LOG"
case "$3" in
update) [ -z "$FAKE_FAIL" ] || { echo "$FAKE_FAIL" >&2; exit 100; } ;;
download) shift 3; for p; do : >"${p}_1-1_amd64.deb"; done ;;
esac`,
	"apt-cache": `case "$5" in
linux-image-cloud-amd64) echo "Package: $5"; echo "Version: 9"; echo "Depends: linux-image-$FAKE_RELEASE (= 1-1)" ;;
linux-image-$FAKE_RELEASE) echo "Package: $5"; echo "Version: 1-1" ;;
linux-binary-7*|linux-modules-7*) echo "Package: $5"; echo "Version: 1-1" ;;
*) echo "E: No packages found" >&2; exit 100 ;;
esac`,
	"dpkg": `mkdir -p "$3/boot" "$3/lib/modules/$FAKE_RELEASE" && cp "$FAKE_IMAGE" "$3/boot/vmlinuz-$FAKE_RELEASE"`,
}

// machine sets up fake tools, a fake root and an empty cache, and returns the
// options for Fetch and the log of apt-get.
func machine(t *testing.T, release string) (Options, string) {
	t.Helper()
	bin, log, image := t.TempDir(), filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "image")
	for name, script := range fakeTools {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)))
	}
	qt.Assert(t, qt.IsNil(os.WriteFile(image, fakeImage(release), 0o644)))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_LOG", log)
	t.Setenv("FAKE_IMAGE", image)
	t.Setenv("FAKE_RELEASE", release)
	t.Setenv(EnvDir, filepath.Join(t.TempDir(), "cache"))
	root := etc(t, map[string]string{
		"etc/apt/sources.list.d/debian.sources":         deb822,
		"usr/share/keyrings/debian-archive-keyring.gpg": "",
	})
	return Options{setUp: func(dir, suite string) (*apt, error) { return newAPTFrom(dir, suite, root) }}, log
}

func fakeImage(release string) []byte {
	b := make([]byte, 0x400)
	b[0x1fe], b[0x1ff] = 0x55, 0xaa
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x20e:], 0x100)
	copy(b[0x300:], release+" #1\x00")
	return b
}

func aptCalls(t *testing.T, log string) []string {
	t.Helper()
	text, err := os.ReadFile(log)
	qt.Assert(t, qt.IsNil(err))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestFetch(t *testing.T) {
	opts, log := machine(t, "5.10.0-1-cloud-amd64")
	res, err := Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(res.New))
	qt.Assert(t, qt.Equals(res.Release, "5.10.0-1-cloud-amd64"))
	qt.Assert(t, qt.DeepEquals(res.Packages, []string{"linux-image-5.10.0-1-cloud-amd64_1-1_amd64"}))
	qt.Assert(t, qt.DeepEquals(aptCalls(t, log), []string{"update --error-on=any", "download linux-image-5.10.0-1-cloud-amd64"}))

	// Found again, without apt.
	k, err := Find("5.10")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(k.Dir, res.Dir()))
	qt.Assert(t, qt.Equals(k.ModuleCache, filepath.Join(k.Dir, "ko")))
	again, err := Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsFalse(again.New))
	qt.Assert(t, qt.HasLen(aptCalls(t, log), 2))

	// -update looks, and finds nothing newer.
	opts.Update = true
	again, err = Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsFalse(again.New))
	qt.Assert(t, qt.HasLen(aptCalls(t, log), 3))

	// A newer one takes the name.
	t.Setenv("FAKE_RELEASE", "5.10.0-2-cloud-amd64")
	again, err = Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(again.New))
	k, err = Find("5.10")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(k.Dir, again.Dir()))
	list, err := List()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(list, 2))
}

func TestFetchParts(t *testing.T) {
	opts, _ := machine(t, "7.3.4-cloud-amd64")
	res, err := Fetch(t.Context(), "7.3", opts)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(res.Packages, []string{
		"linux-binary-7.3.4-cloud-amd64_1-1_amd64", "linux-modules-7.3.4-cloud-amd64_1-1_amd64",
	}))
}

func TestFetchErrors(t *testing.T) {
	opts, _ := machine(t, "5.10.0-1")
	_, err := Fetch(t.Context(), "6.12", opts)
	qt.Assert(t, qt.ErrorMatches(err, "fetch kernel 6.12: suite bookworm-security: package linux-image-6.12-cloud-amd64: no such package"))

	t.Setenv("FAKE_FAIL", "E: The repository 'https://mirror.example/debian bullseye Release' does not have a Release file.")
	_, err = Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.ErrorMatches(err, "(?s)fetch kernel 5.10: suite bullseye: the machine's mirror does not have it, or no longer.*"))
	qt.Assert(t, qt.Not(qt.StringContains(err.Error(), "mirror.example")))

	_, err = Fetch(t.Context(), "4.4", opts)
	qt.Assert(t, qt.ErrorMatches(err, `kernel "4.4": not one of 5.10, 6.1, .*`))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Fetch(ctx, "5.10", opts)
	qt.Assert(t, qt.ErrorIs(err, context.Canceled))
}

// TestFetchBroken leaves nothing behind that looks like a kernel.
func TestFetchBroken(t *testing.T) {
	opts, _ := machine(t, "5.10.0-1")
	t.Setenv("FAKE_IMAGE", os.DevNull)
	_, err := Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.ErrorMatches(err, "fetch kernel 5.10: .*not an x86 boot image.*"))
	dir, _ := Dir()
	left, err := os.ReadDir(filepath.Join(dir, "5.10"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(left, 0))
}

func TestFindDamaged(t *testing.T) {
	opts, _ := machine(t, "5.10.0-1")
	_, err := Find("5.10")
	qt.Assert(t, qt.ErrorIs(err, ErrNotFetched))
	qt.Assert(t, qt.ErrorMatches(err, `.*kernels fetch 5.10\)`))

	res, err := Fetch(t.Context(), "5.10", opts)
	qt.Assert(t, qt.IsNil(err))
	image := filepath.Join(res.Dir(), res.Image)
	qt.Assert(t, qt.IsNil(os.WriteFile(image, fakeImage("other"), 0o644)))
	_, err = Find("5.10")
	qt.Assert(t, qt.ErrorMatches(err, `kernel 5.10: checksum differs from the manifest \(remove .* and fetch again\)`))
	qt.Assert(t, qt.IsNil(os.Remove(image)))
	_, err = Find("5.10")
	qt.Assert(t, qt.ErrorMatches(err, `kernel 5.10: image is missing: .*`))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(res.Dir(), manifestName), []byte("{"), 0o644)))
	_, err = Find("5.10")
	qt.Assert(t, qt.ErrorMatches(err, `read .*manifest.json: .* fetch again\)`))
}

func TestFindPath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vmlinuz")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, fakeImage("1.2.3"), 0o644)))
	k, err := Find(file)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(k.Release, "1.2.3"))
}

func TestImagePackage(t *testing.T) {
	for in, want := range map[string]string{
		"linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)":        "linux-image-6.1.0-50-cloud-amd64",
		"linux-base, linux-image-7.3.4+deb13-cloud-amd64 (= 1)": "linux-image-7.3.4+deb13-cloud-amd64",
		"linux-image-cloud-amd64":                               "",
		"":                                                      "",
	} {
		got, ok := imagePackage(in)
		qt.Check(t, qt.Equals(got, want))
		qt.Check(t, qt.Equals(ok, want != ""))
	}
}

func TestComplaint(t *testing.T) {
	a := &apt{mirror: "https://mirror.example/debian"}
	got := a.complaint("Err: http://other.example:80/x y\nE: Could not resolve 'mirror.example'\n")
	qt.Assert(t, qt.Equals(got, "\n\tErr: http://MIRROR/x y\n\tE: Could not resolve 'MIRROR'"))
	qt.Assert(t, qt.Equals(a.complaint("\n"), ""))
}
