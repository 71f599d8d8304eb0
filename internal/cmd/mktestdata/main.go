// Mktestdata cuts a snapshot down to some functions, for the project's tests:
//
//	mktestdata IN OUT PATTERN...
//
// It keeps the symbols whose names match, with their aliases, those that bound
// the kernel's code, the sites of what is left, and the BTF of the functions
// that match. BTF ids stay those of the kernel: what is cut is replaced, not
// taken out. Structs keep their size but no members.
//
// The file says so itself: its facts have the patterns as "cut_to".
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kallscope/kallscope/internal/container"
	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/kallsyms"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "mktestdata: %v\n", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: mktestdata IN OUT PATTERN")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	f, err := container.OpenBytes(data, container.Options{Kind: "snapshot", Version: 1})
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	c := cutter{in: f, out: container.NewWriter("snapshot", f.Version), patterns: args[2:]}
	if err := c.run(); err != nil {
		return err
	}
	return c.out.WriteFile(args[1])
}

// cutter copies a snapshot, section by section.
type cutter struct {
	in       *container.File
	out      *container.Writer
	patterns []string
	keep     *pattern.Set
	kept     map[uint64]bool // entry addresses
}

// maxSection is what a section of a whole kernel may have.
const maxSection = 128 << 20

func (c *cutter) run() (err error) {
	var patterns []pattern.Pattern
	for _, text := range c.patterns {
		p, err := pattern.Parse(text)
		if err != nil {
			return err
		}
		patterns = append(patterns, p)
	}
	if c.keep, err = pattern.NewSet(patterns, pattern.SetOptions{}); err != nil {
		return err
	}
	if err := c.findKept(); err != nil {
		return err
	}
	types, err := c.cutBTF()
	if err != nil {
		return err
	}
	for _, s := range c.in.Sections() {
		data, err := s.Bytes(maxSection)
		if err != nil {
			return err
		}
		switch name := s.Name(); {
		case strings.HasPrefix(name, "symbols."):
			data, err = c.cutSymbols(data)
		case strings.HasPrefix(name, "sites"):
			data, err = c.cutSites(data)
		case name == "kprobe-blacklist":
			data = c.cutBlacklist(data)
		case strings.HasPrefix(name, "btf:"):
			data = types[name]
		case name == "facts":
			data, err = c.note(data)
		default:
			return fmt.Errorf("section %q: it is not known how to cut it; take the snapshot where addresses are visible", name)
		}
		if err != nil {
			return fmt.Errorf("section %q: %w", s.Name(), err)
		}
		if err := c.out.Add(s.Name(), data, container.Zstd); err != nil {
			return err
		}
	}
	return nil
}

// bounds are the symbols that say where the code of vmlinux is.
var bounds = map[string]bool{
	"_text": true, "_stext": true, "_etext": true, "_sinittext": true, "_einittext": true,
	"__noinstr_text_start": true, "__noinstr_text_end": true, "__entry_text_start": true, "__entry_text_end": true,
	"__cpuidle_text_start": true, "__cpuidle_text_end": true,
}

// findKept notes the addresses of the symbols that match.
func (c *cutter) findKept() error {
	c.kept = make(map[uint64]bool)
	for _, name := range []string{"symbols.vmlinux", "symbols.modules", "symbols.runtime"} {
		text, err := c.in.Section(name).Bytes(maxSection)
		if err != nil {
			return err
		}
		table, err := kallsyms.Parse(text, kallsyms.Options{})
		if errors.Is(err, kallsyms.ErrEmpty) {
			continue // no modules
		}
		if err != nil {
			return err
		}
		for _, s := range table.All() {
			if _, ok := c.keep.Match(s.Module, s.Name); ok || s.Module == "" && bounds[s.Name] {
				c.kept[s.Addr] = true
			}
		}
	}
	return nil
}

func (c *cutter) cutSymbols(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	table, err := kallsyms.Parse(text, kallsyms.Options{})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, s := range table.All() {
		if c.kept[s.Addr] {
			fmt.Fprintln(&out, s)
		}
	}
	return out.Bytes(), nil
}

// cutSites keeps the sites at an entry, or behind its landing pad.
func (c *cutter) cutSites(data []byte) ([]byte, error) {
	var out []byte
	addr, last := uint64(0), uint64(0)
	for len(data) > 0 {
		delta, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errors.New("not a list of sites")
		}
		addr, data = addr+delta, data[n:]
		if c.kept[addr] || c.kept[addr-4] {
			out = binary.AppendUvarint(out, addr-last)
			last = addr
		}
	}
	return out, nil
}

func (c *cutter) cutBlacklist(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		var start uint64
		if _, err := fmt.Sscanf(string(line), "0x%x-", &start); err == nil && c.kept[start] {
			out = append(out, line...)
		}
	}
	return out
}

func (c *cutter) note(facts []byte) ([]byte, error) {
	all := make(map[string]any)
	if err := json.Unmarshal(facts, &all); err != nil {
		return nil, err
	}
	all["cut_to"] = c.patterns
	return json.Marshal(all)
}
