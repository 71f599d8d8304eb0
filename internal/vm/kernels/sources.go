package kernels

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// archive is one Debian archive of the machine's own apt sources.
type archive struct {
	uri        string
	suites     []string
	components []string
	signedBy   string
}

// mirrors are the addresses to fetch from.
type mirrors struct {
	main, security string
}

// of returns the address that has a suite.
func (m mirrors) of(suite string) string {
	if strings.HasSuffix(suite, "-security") {
		return m.security
	}
	return m.main
}

// codenames are the suites by which Debian's main archive is recognised among
// other sources.
var codenames = []string{
	"bullseye", "bookworm", "trixie", "forky", "sid",
	"stable", "oldstable", "oldoldstable", "testing", "unstable",
}

// findMirrors reads the sources below etc, which is /etc/apt.
func findMirrors(etc string) (mirrors, error) {
	list, err := readSources(etc)
	if err != nil {
		return mirrors{}, fmt.Errorf("read apt sources: %w", err)
	}
	var m mirrors
	for _, a := range list {
		switch {
		case !a.debian():
		case a.security() && m.security == "":
			m.security = a.uri
		case !a.security() && m.main == "":
			m.main = a.uri
		}
	}
	if m.main == "" {
		return m, fmt.Errorf("read apt sources: no Debian archive in %s (kernels can be fetched on Debian only; elsewhere give vmrun the path of a vmlinuz)", etc)
	}
	if m.security == "" {
		// Mirrors have both side by side.
		m.security = strings.TrimSuffix(m.main, "/") + "-security"
	}
	return m, nil
}

// security says whether this is the archive of security updates.
func (a archive) security() bool {
	return slices.ContainsFunc(a.suites, func(s string) bool {
		return strings.HasSuffix(s, "-security") || strings.HasSuffix(s, "/updates")
	})
}

// debian says whether this is an archive of Debian's own, and not that of some
// vendor who names suites like Debian.
func (a archive) debian() bool {
	if a.signedBy != "" && !strings.Contains(a.signedBy, "debian-archive") {
		return false
	}
	if !slices.Contains(a.components, "main") {
		return false
	}
	return slices.ContainsFunc(a.suites, func(s string) bool {
		name, _, _ := strings.Cut(s, "/")
		name = strings.TrimSuffix(name, "-security")
		return slices.Contains(codenames, name)
	})
}

func readSources(etc string) ([]archive, error) {
	var list []archive
	for _, kind := range []struct {
		pattern string
		parse   func(string) []archive
	}{
		{"sources.list.d/*.sources", parseDeb822},
		{"sources.list", parseOneLine},
		{"sources.list.d/*.list", parseOneLine},
	} {
		files, err := filepath.Glob(filepath.Join(etc, kind.pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			list = append(list, kind.parse(string(text))...)
		}
	}
	return list, nil
}

// parseDeb822 reads the stanzas of a .sources file, see sources.list(5).
func parseDeb822(text string) []archive {
	var list []archive
	for stanza := range strings.SplitSeq(text+"\n", "\n\n") {
		f := fields(stanza)
		if !slices.Contains(strings.Fields(f["types"]), "deb") || f["enabled"] == "no" {
			continue
		}
		for uri := range strings.FieldsSeq(f["uris"]) {
			list = append(list, archive{
				uri:        uri,
				suites:     strings.Fields(f["suites"]),
				components: strings.Fields(f["components"]),
				signedBy:   f["signed-by"],
			})
		}
	}
	return list
}

// fields returns the fields of a stanza by name in lower case; a line that
// begins with a space continues the field before it.
func fields(stanza string) map[string]string {
	f := map[string]string{}
	last := ""
	for line := range strings.Lines(stanza) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			f[last] += "\n" + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			f[last] = strings.TrimSpace(value)
		}
	}
	return f
}

// parseOneLine reads lines such as "deb [signed-by=FILE] URI SUITE main".
func parseOneLine(text string) []archive {
	var list []archive
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		options := ""
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			options, rest, _ = strings.Cut(rest[1:], "]")
		}
		w := strings.Fields(rest)
		if len(w) < 3 {
			continue
		}
		list = append(list, archive{uri: w[0], suites: w[1:2], components: w[2:], signedBy: signedBy(options)})
	}
	return list
}

func signedBy(options string) string {
	for o := range strings.FieldsSeq(options) {
		if v, ok := strings.CutPrefix(o, "signed-by="); ok {
			return v
		}
	}
	return ""
}

// keyrings are where Debian's keys are installed; the suffix changed in 13.
var keyrings = []string{
	"usr/share/keyrings/debian-archive-keyring.gpg",
	"usr/share/keyrings/debian-archive-keyring.pgp",
}

func findKeyring(root string) (string, error) {
	for _, k := range keyrings {
		file := path.Join(root, k)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", errors.New("find Debian's keys: no /usr/share/keyrings/debian-archive-keyring.gpg (apt-get install debian-archive-keyring)")
}
