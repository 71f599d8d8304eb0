package kernels

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// etc writes a folder like /etc/apt.
func etc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(file), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
	}
	return dir
}

const deb822 = `# a comment
Types: deb deb-src
URIs: https://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`

func TestFindMirrors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  mirrors
	}{
		{
			"deb822",
			map[string]string{"sources.list.d/debian.sources": deb822},
			mirrors{"https://mirror.example/debian", "https://mirror.example/debian-security"},
		},
		{
			"oneLine",
			map[string]string{"sources.list": "# deb http://off.example/debian sid main\n" +
				"deb-src http://src.example/debian bookworm main\n" +
				"deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://a.example/debian bookworm main # x\n" +
				"deb http://b.example/sec bookworm-security main\n"},
			mirrors{"http://a.example/debian", "http://b.example/sec"},
		},
		{
			"oldSecurity",
			map[string]string{"sources.list.d/x.list": "deb http://a.example/debian/ stable main\ndeb http://s.example/debian stable/updates main\n"},
			mirrors{"http://a.example/debian/", "http://s.example/debian"},
		},
		{
			"siblings",
			map[string]string{"sources.list": "deb http://a.example/debian/ bookworm main\n"},
			mirrors{"http://a.example/debian/", "http://a.example/debian-security"},
		},
		{
			"vendorsLeftOut",
			map[string]string{
				"sources.list.d/a.list": "deb http://vendor.example/linux/debian bookworm stable\n" +
					"deb [signed-by=/k/vendor.gpg] http://vendor.example/debian bookworm main\n" +
					"deb http://vendor.example/node nodistro main\ndeb broken\n",
				"sources.list.d/b.list":    "deb http://a.example/debian trixie main\n",
				"sources.list.d/c.sources": "Enabled: no\n" + "Types: deb\nURIs: http://off.example/debian\nSuites: sid\nComponents: main\n",
			},
			mirrors{"http://a.example/debian", "http://a.example/debian-security"},
		},
		{
			"mirrorList",
			map[string]string{"sources.list.d/d.sources": "Types: deb\nURIs: mirror+file:/etc/apt/mirrors/debian.list\nSuites: trixie\nComponents: main\n\n\n" +
				"Types: deb\nURIs: mirror+file:/etc/apt/mirrors/security.list\nSuites: trixie-security\nComponents: main\n"},
			mirrors{"mirror+file:/etc/apt/mirrors/debian.list", "mirror+file:/etc/apt/mirrors/security.list"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := findMirrors(etc(t, tc.files))
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, tc.want))
		})
	}
}

func TestFindMirrorsNone(t *testing.T) {
	_, err := findMirrors(etc(t, map[string]string{"sources.list": "deb http://x.example/ubuntu noble main\n"}))
	qt.Assert(t, qt.ErrorMatches(err, "read apt sources: no Debian archive in .* give vmrun the path of a vmlinuz.*"))
}

func TestMirrorOf(t *testing.T) {
	m := mirrors{"main", "sec"}
	qt.Assert(t, qt.Equals(m.of("trixie-backports"), "main"))
	qt.Assert(t, qt.Equals(m.of("bookworm-security"), "sec"))
}

func TestFindKeyring(t *testing.T) {
	_, err := findKeyring(t.TempDir())
	qt.Assert(t, qt.ErrorMatches(err, ".*apt-get install debian-archive-keyring.*"))
}

func FuzzParse(f *testing.F) {
	f.Add(deb822)
	f.Add("deb [a=b] http://a.example/debian sid main\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range append(parseDeb822(text), parseOneLine(text)...) {
			_, _ = a.debian(), a.security()
			qt.Assert(t, qt.Not(qt.Equals(a.uri, "")))
		}
	})
}
