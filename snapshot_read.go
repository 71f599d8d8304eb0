package kallscope

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/container"
	"github.com/kallscope/kallscope/internal/tracefs"
	"github.com/kallscope/kallscope/kallsyms"
)

// What sections may inflate to: ten times what a large kernel has, or more.
const (
	maxFacts     = 4 << 20
	maxSites     = 8 << 20
	maxBlacklist = 4 << 20
	maxBTF       = 64 << 20
)

// Open returns the kernel whose facts are in a file that [Kernel.Snapshot]
// made, on whatever machine. Plans equal those that the kernel itself gave
// then. The file is compared with its checksums at once; each fact is taken
// from it when a query first needs it. It stays open as long as the Kernel is
// in use.
//
// It fails on a file of another kind, of a later version, and on one that is
// not as it was written.
func Open(path string) (*Kernel, error) {
	// Opening a named pipe would wait.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("kernel %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("kernel: %w%s", err, openHint(err))
	}
	k, err := openSnapshot(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("kernel %s: %w%s", path, err, openHint(err))
	}
	return k, nil
}

// openHint ends an error with what to do.
func openHint(err error) string {
	switch {
	case errors.Is(err, container.ErrFormat), errors.Is(err, container.ErrKind):
		return "; make one with: kallscope snapshot -o FILE"
	case errors.Is(err, fs.ErrPermission):
		return "; snapshots are made for their owner only: chown it"
	case errors.Is(err, container.ErrVersion):
		return "; update kallscope"
	case errors.Is(err, container.ErrDamaged):
		return "; the file is damaged: copy it again, or make it anew with: kallscope snapshot -o FILE"
	}
	return ""
}

func openSnapshot(r io.ReaderAt, size int64) (*Kernel, error) {
	file, err := container.Open(r, size, container.Options{Kind: snapshotKind, Version: snapshotVersion})
	if err != nil {
		return nil, err
	}
	if err := file.Verify(); err != nil {
		return nil, err
	}
	s := &snapshot{file: file}
	data, err := file.Section(sectionFacts).Bytes(maxFacts)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &s.facts); err != nil {
		return nil, fmt.Errorf("section %q: %w", sectionFacts, err)
	}
	return newKernel(s.facts.Kernel, s), nil
}

// snapshot is the source that reads a file. Sections of an intact file can still
// hold nonsense: somebody else may have written it.
type snapshot struct {
	file  *container.File
	facts snapshotFacts
}

// section returns a section, or why it is missing.
func (s *snapshot) section(name string) (*container.Section, error) {
	if section := s.file.Section(name); section != nil {
		return section, nil
	}
	if err, ok := s.facts.Missing[name]; ok {
		return nil, err
	}
	return nil, fmt.Errorf("the snapshot has no section %q", name)
}

func (s *snapshot) symbols(in scope) (*kallsyms.Table, error) {
	if in == scopeModules && s.facts.RuntimeToo {
		in = scopeAll
	}
	table := new(kallsyms.Table)
	for _, name := range []string{scopeVmlinux: sectionVmlinux, scopeModules: sectionModules, scopeAll: sectionRuntime}[:in+1] {
		var err error
		if table, err = s.appendSymbols(table, name); err != nil {
			return nil, fmt.Errorf("kernel symbols: %w", err)
		}
	}
	return table, nil
}

// appendSymbols adds the symbols of a section: those of vmlinux, or of modules.
func (s *snapshot) appendSymbols(table *kallsyms.Table, name string) (*kallsyms.Table, error) {
	section, err := s.section(name)
	if err != nil {
		return nil, err
	}
	r, err := section.Reader()
	if err != nil {
		return nil, err
	}
	wrong := ""
	more, err := table.Append(r, kallsyms.Options{Visit: func(line *kallsyms.Line) kallsyms.Action {
		if (len(line.Module) == 0) != (name == sectionVmlinux) {
			wrong = string(line.Name)
			return kallsyms.Stop
		}
		return kallsyms.Keep
	}})
	switch {
	case err != nil:
		return nil, fmt.Errorf("section %q: %w", name, err)
	case wrong != "":
		return nil, fmt.Errorf("section %q: symbol %.60q does not belong there", name, wrong)
	case more.Len() == 0:
		return nil, fmt.Errorf("section %q: %w", name, kallsyms.ErrEmpty)
	}
	return more, nil
}

// sites returns the list in the form that there is, as the live source does.
func (s *snapshot) sites(in scope) (*siteList, error) {
	suffix := s.siteSuffix(in)
	if s.file.Section(sectionSites+suffix) == nil && s.file.Section(sectionSiteNames+suffix) != nil {
		return s.siteNames(in)
	}
	section, err := s.section(sectionSites + suffix)
	if err != nil {
		return nil, err
	}
	data, err := section.Bytes(maxSites)
	if err != nil {
		return nil, err
	}
	addrs, err := parseSites(data)
	if err != nil {
		return nil, fmt.Errorf("section %q: %w", section.Name(), err)
	}
	return newSiteList(addrs, s.facts.From[section.Name()]), nil
}

func (s *snapshot) siteNames(in scope) (*siteList, error) {
	suffix := s.siteSuffix(in)
	section, err := s.section(sectionSiteNames + suffix)
	if err != nil {
		if missing, ok := s.facts.Missing[sectionSites+suffix]; ok {
			return nil, missing
		}
		return nil, err
	}
	r, err := section.Reader()
	if err != nil {
		return nil, err
	}
	list, err := readSites(r, false, scopeAll)
	if err != nil {
		return nil, fmt.Errorf("section %q: %w", section.Name(), err)
	}
	list.from = s.facts.From[section.Name()]
	return list, nil
}

// siteSuffix is what the sections for a scope end in.
func (s *snapshot) siteSuffix(in scope) string {
	_, missing := s.facts.Missing[sectionSites+suffixVmlinux]
	if in == scopeVmlinux && (missing || s.file.Section(sectionSites+suffixVmlinux) != nil || s.file.Section(sectionSiteNames+suffixVmlinux) != nil) {
		return suffixVmlinux
	}
	return ""
}

// parseSites reads what appendSites wrote.
func parseSites(data []byte) ([]uint64, error) {
	var addrs []uint64
	addr := uint64(0)
	for at := 0; at < len(data); {
		delta, n := binary.Uvarint(data[at:])
		if n <= 0 || addr+delta < addr {
			return nil, fmt.Errorf("byte %d: site %d is no address above %#x", at, len(addrs), addr)
		}
		addr += delta
		addrs = append(addrs, addr)
		at += n
	}
	return addrs, nil
}

func (s *snapshot) openBTF(object string, base *btfscan.BTF) (*btfscan.BTF, error) {
	section, err := s.section(prefixBTF + object)
	if err != nil {
		return nil, err
	}
	data, err := section.Bytes(maxBTF)
	if err != nil {
		return nil, err
	}
	b, err := btfscan.Parse(data, base)
	if err != nil {
		return nil, fmt.Errorf("section %q: %w", section.Name(), err)
	}
	return b, nil
}

// btfObjects returns also those whose BTF is missing: a query is told why.
func (s *snapshot) btfObjects() ([]string, error) {
	if err, ok := s.facts.Missing[factBTFObjects]; ok {
		return nil, err
	}
	var objects []string
	add := func(section string) {
		if object, ok := strings.CutPrefix(section, prefixBTF); ok && object != Vmlinux {
			objects = append(objects, object)
		}
	}
	for _, section := range s.file.Sections() {
		add(section.Name())
	}
	for section := range s.facts.Missing {
		add(section)
	}
	slices.Sort(objects)
	return slices.Compact(objects), nil
}

func (s *snapshot) goingModules() (map[string]bool, error) {
	if err, ok := s.facts.Missing[factNotLive]; ok {
		return nil, err
	}
	going := make(map[string]bool, len(s.facts.NotLive))
	for _, module := range s.facts.NotLive {
		going[module] = true
	}
	return going, nil
}

func (s *snapshot) blacklist() ([]CodeRange, error) {
	section, err := s.section(sectionBlacklist)
	if err != nil {
		return nil, err
	}
	data, err := section.Bytes(maxBlacklist)
	if err != nil {
		return nil, err
	}
	list, err := tracefs.ReadBlacklist(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("section %q: %w", section.Name(), err)
	}
	ranges := make([]CodeRange, len(list))
	for i, r := range list {
		ranges[i] = CodeRange(r)
	}
	return ranges, nil
}

func (s *snapshot) denyLists() (denyLists, error) {
	if s.facts.DenyLists != nil {
		return *s.facts.DenyLists, nil
	}
	if err, ok := s.facts.Missing[factDenyLists]; ok {
		return denyLists{}, err
	}
	return denyLists{}, errors.New("the snapshot does not have the verifier's deny lists")
}

func (s *snapshot) switches() Switches { return s.facts.Switches }

func (*snapshot) fallbacks() []string { return nil }
