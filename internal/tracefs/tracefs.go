// Package tracefs finds the kernel's trace file system and reads the lists in
// it that say which functions can be traced.
package tracefs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The lists of ftrace records: with addresses since v6.5, names only before.
const (
	SitesFile     = "available_filter_functions_addrs"
	SiteNamesFile = "available_filter_functions"
)

// ErrNotMounted means that no tracefs is mounted.
var ErrNotMounted = errors.New("tracefs is not mounted; mount it with: mount -t tracefs nodev /sys/kernel/tracing")

// Mount returns the folder that tracefs is mounted on, below root, from
// proc/self/mounts; where that cannot be read, or lists none, the two usual
// folders are tried. It fails with [ErrNotMounted].
func Mount(root string) (string, error) {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mounts"))
	if err == nil {
		if dir, ok := findMount(mounts); ok {
			return filepath.Join(root, dir), nil
		}
	}
	// debugfs mounts tracefs by itself when its tracing folder is entered.
	for _, dir := range []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"} {
		path := filepath.Join(root, dir)
		if _, err := os.Stat(filepath.Join(path, "trace")); err == nil || errors.Is(err, fs.ErrPermission) {
			return path, nil
		}
	}
	return "", ErrNotMounted
}

func findMount(mounts []byte) (dir string, ok bool) {
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) >= 3 && f[2] == "tracefs" {
			// Blanks and the like are octal in this file.
			return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[1]), true
		}
	}
	return "", false
}

// A Site is one line of a list of ftrace records. Name and Module are valid
// until the next line is read.
type Site struct {
	// Addr is the patch address; zero in lists without addresses.
	Addr uint64
	Name []byte
	// Module is empty for the kernel image.
	Module []byte
}

// Invalid reports whether the record is left over from a weak function that
// another one replaced; the kernel prints it under a made-up name
// (FTRACE_INVALID_FUNCTION in kernel/trace/ftrace.c).
func (s Site) Invalid() bool {
	return bytes.HasPrefix(s.Name, []byte("__ftrace_invalid_address__"))
}

// ReadSites calls visit for each line of a list, in its order, until visit
// returns false. Addresses are expected when withAddrs is set. A line that is
// no site is an error with its number.
func ReadSites(r io.Reader, withAddrs bool, visit func(Site) bool) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), 64<<10)
	for n := 1; sc.Scan(); n++ {
		site, ok := parseSite(sc.Bytes(), withAddrs)
		if !ok {
			return fmt.Errorf("line %d: %.60q is not an ftrace record", n, sc.Bytes())
		}
		if !visit(site) {
			return nil
		}
	}
	return sc.Err()
}

func parseSite(line []byte, withAddrs bool) (s Site, ok bool) {
	if withAddrs {
		addr, rest, found := bytes.Cut(line, []byte{' '})
		if !found {
			return s, false
		}
		if s.Addr, ok = parseHex(addr); !ok {
			return s, false
		}
		line = rest
	}
	// "name" or "name [module]"; records of an ops can have more behind it in
	// other lists, not in these.
	name, module, found := bytes.Cut(line, []byte(" ["))
	s.Name = name
	if found {
		module, found = bytes.CutSuffix(module, []byte{']'})
		if !found || len(module) == 0 {
			return s, false
		}
		s.Module = module
	}
	return s, len(name) > 0 && !bytes.ContainsAny(name, " \t\r")
}

func parseHex(b []byte) (v uint64, ok bool) {
	b = bytes.TrimPrefix(b, []byte("0x"))
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}

// A Range is a line of the list of code that kprobes must stay out of,
// debugfs's kprobes/blacklist: [Start, End) and its name. Both are zero when
// the kernel hides addresses.
type Range struct {
	Start, End uint64
	Name       string
}

// ReadBlacklist returns the ranges of the list. A line that is none is an error
// with its number.
func ReadBlacklist(r io.Reader) ([]Range, error) {
	var ranges []Range
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		// "0xffffffff84620100-0xffffffff846201f0<tab>trap_demo"
		addrs, name, ok := bytes.Cut(sc.Bytes(), []byte{'\t'})
		start, end, ok2 := bytes.Cut(addrs, []byte{'-'})
		from, ok3 := parseHex(start)
		to, ok4 := parseHex(end)
		if !ok || !ok2 || !ok3 || !ok4 || to < from {
			return nil, fmt.Errorf("line %d: %.60q is no range of the kprobe blacklist", n, sc.Bytes())
		}
		ranges = append(ranges, Range{from, to, string(name)})
	}
	return ranges, sc.Err()
}
