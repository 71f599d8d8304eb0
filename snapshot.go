package kallscope

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/kallscope/kallscope/internal/container"
	"github.com/kallscope/kallscope/kallsyms"
)

// The sections of a snapshot, version 1, in the format of internal/container.
// A reader that does not know a section ignores it.
const (
	snapshotKind    = "snapshot"
	snapshotVersion = 1

	// sectionFacts is the JSON of snapshotFacts.
	sectionFacts = "facts"
	// The symbols as /proc/kallsyms prints them: up to the first of a module, up
	// to the first of a pseudo-module, and the rest.
	sectionVmlinux = "symbols.vmlinux"
	sectionModules = "symbols.modules"
	sectionRuntime = "symbols.runtime"
	// sectionSites has the addresses of the ftrace records, sorted, each as the
	// difference to the one before in the form of encoding/binary.AppendUvarint.
	sectionSites = "sites"
	// sectionSiteNames has them as available_filter_functions prints them,
	// where there are no addresses.
	sectionSiteNames = "site-names"
	// suffixVmlinux is behind the name of the two above when what was read up
	// to the first module is something else than the whole.
	suffixVmlinux = ".vmlinux"
	// sectionBlacklist has the lines of debugfs's kprobes/blacklist.
	sectionBlacklist = "kprobe-blacklist"
	// prefixBTF is in front of the name of a BTF object; the section has the
	// bytes of /sys/kernel/btf.
	prefixBTF = "btf:"

	// Facts about lists that have no section of their own.
	factBTFObjects = "btf-objects"
	factNotLive    = "module-states"
	factAddresses  = "addresses"
	factDenyLists  = "deny-lists"
)

// snapshotFacts are the facts that are no lists.
type snapshotFacts struct {
	Kernel   Identity `json:"kernel"`
	Switches Switches `json:"switches"`
	// RuntimeToo is set when the symbols of modules could not be read without
	// those of pseudo-modules: then plans counted them.
	RuntimeToo bool `json:"modules_with_runtime,omitempty"`
	// NotLive are the modules that are loading or going.
	NotLive []string `json:"modules_not_live,omitempty"`
	// DenyLists are the functions that the verifier refuses.
	DenyLists *denyLists `json:"deny_lists,omitempty"`
	// From says where lists of sites were read, by section.
	From map[string]string `json:"from,omitempty"`
	// Missing says why there is no such section, or fact.
	Missing map[string]recordedError `json:"missing,omitempty"`
}

// recordedError is an error that was met when a snapshot was made.
type recordedError struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"` // of recordedKinds
}

var recordedKinds = []struct {
	kind string
	err  error
}{
	{"restricted", ErrRestricted},
	{"permission", fs.ErrPermission},
	{"not-exist", fs.ErrNotExist},
}

func record(err error) recordedError {
	for _, k := range recordedKinds {
		if errors.Is(err, k.err) {
			return recordedError{err.Error(), k.kind}
		}
	}
	return recordedError{Text: err.Error()}
}

// Error returns the text as it was.
func (e recordedError) Error() string { return e.Text }

// Is reports whether the error was of this kind then.
func (e recordedError) Is(target error) bool {
	for _, k := range recordedKinds {
		if k.kind == e.Kind {
			return target == k.err
		}
	}
	return false
}

// A Snapshot is all facts of a kernel, ready to be written to one file that
// [Open] reads.
type Snapshot struct {
	// Missing are the facts that could not be read. All else works without
	// them, as it does on the kernel itself.
	Missing []MissingFact
	w       *container.Writer
}

// A MissingFact says why a snapshot lacks something.
type MissingFact struct {
	Fact, Why string
}

// A SnapshotSection is a part of a snapshot's file.
type SnapshotSection struct {
	Name string
	// Len is the size in bytes, Stored that in the file.
	Len, Stored int64
}

// Snapshot reads all facts of the kernel. Before each step it calls progress,
// which may be nil, with what it is about to read.
//
// It fails only when the symbol table cannot be read: what else cannot is
// recorded with the reason. It costs as much as reading all of /proc/kallsyms
// and the BTF of all modules, and the time to compress some 15 MB.
func (k *Kernel) Snapshot(progress func(what string)) (*Snapshot, error) {
	s := &snapshotWriter{kernel: k, w: container.NewWriter(snapshotKind, snapshotVersion)}
	for _, step := range []struct {
		what string
		add  func() error
	}{
		{"symbols", s.addSymbols},
		{"sites", s.addSites},
		{"kprobe blacklist", s.addBlacklist},
		{"BTF", s.addBTF},
		{"switches", s.addFacts},
	} {
		if progress != nil {
			progress(step.what)
		}
		if err := step.add(); err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	return &Snapshot{s.missing, s.w}, nil
}

// WriteTo writes the file to a stream.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) { return s.w.WriteTo(w) }

// WriteFile writes the file at path, all of it or nothing. Only its owner may
// read it: it has the addresses that the kernel keeps from others.
func (s *Snapshot) WriteFile(path string) error { return s.w.WriteFile(path) }

// Sections returns the parts of the file.
func (s *Snapshot) Sections() []SnapshotSection {
	var sections []SnapshotSection
	for _, c := range s.w.Sections() {
		sections = append(sections, SnapshotSection{c.Name(), c.Len(), c.Stored()})
	}
	return sections
}

// snapshotWriter gathers the sections.
type snapshotWriter struct {
	kernel  *Kernel
	w       *container.Writer
	hidden  bool
	facts   snapshotFacts
	missing []MissingFact
}

func (s *snapshotWriter) add(section string, data []byte) error {
	return s.w.Add(section, data, container.Zstd)
}

// miss records why a section or fact is not there. It is said where fact names
// it.
func (s *snapshotWriter) miss(section, fact string, err error) {
	if s.facts.Missing == nil {
		s.facts.Missing = make(map[string]recordedError)
	}
	s.facts.Missing[section] = record(err)
	if fact != "" {
		s.missing = append(s.missing, MissingFact{fact, err.Error()})
	}
}

// addSymbols takes each part of the symbols from the smallest scope that has it,
// and does not read again what it has.
func (s *snapshotWriter) addSymbols() (err error) {
	var table *kallsyms.Table
	for in, section := range []string{scopeVmlinux: sectionVmlinux, scopeModules: sectionModules, scopeAll: sectionRuntime} {
		if !s.facts.RuntimeToo {
			table, err = s.kernel.symbols(scope(in))
		}
		if err != nil {
			return err
		}
		var text []byte
		for _, symbol := range table.All() {
			switch part := scopeOf(moduleName(symbol.Module)); {
			case part == scope(in):
				text = append(appendSymbol(text, symbol), '\n')
			case part > scope(in):
				s.facts.RuntimeToo = s.facts.RuntimeToo || scope(in) == scopeModules
			}
		}
		if err := s.add(section, text); err != nil {
			return err
		}
		s.hidden = table.State() == kallsyms.Hidden
	}
	if s.hidden {
		s.missing = append(s.missing, MissingFact{factAddresses, s.kernel.Switches().hidden()})
	}
	return nil
}

// appendSymbol appends what [kallsyms.Symbol.String] returns, for a million
// symbols.
func appendSymbol(b []byte, s kallsyms.Symbol) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[s.Addr>>shift&15])
	}
	b = append(append(b, ' ', s.Type, ' '), s.Name...)
	if s.Module != "" {
		b = append(append(append(b, "\t["...), s.Module...), ']')
	}
	return b
}

// addSites reads the list for both scopes: from memory they are equal, in
// tracefs they are not.
func (s *snapshotWriter) addSites() error {
	all, allErr := s.readSites(scopeAll)
	vmlinux, vmlinuxErr := s.readSites(scopeVmlinux)
	if err := s.addSiteList("", all, allErr); err != nil {
		return err
	}
	if allErr == nil && vmlinuxErr == nil && all.equal(vmlinux) ||
		allErr != nil && vmlinuxErr != nil && record(allErr) == record(vmlinuxErr) {
		return nil
	}
	return s.addSiteList(suffixVmlinux, vmlinux, vmlinuxErr)
}

// readSites reads in the form in which a plan does.
func (s *snapshotWriter) readSites(in scope) (*siteList, error) {
	if s.hidden {
		return s.kernel.siteNames(in)
	}
	return s.kernel.sites(in)
}

func (s *snapshotWriter) addSiteList(suffix string, l *siteList, err error) error {
	if err != nil {
		s.miss(sectionSites+suffix, sectionSites, err)
		return nil
	}
	section, data := sectionSites+suffix, appendSites(nil, l.addrs)
	if s.hidden || l.names.len() > 0 {
		section, data = sectionSiteNames+suffix, appendSiteNames(nil, &l.names)
	}
	if s.facts.From == nil {
		s.facts.From = make(map[string]string)
	}
	s.facts.From[section] = l.from
	return s.add(section, data)
}

func (l *siteList) equal(other *siteList) bool {
	return l.from == other.from && slices.Equal(l.addrs, other.addrs) &&
		slices.Equal(appendSiteNames(nil, &l.names), appendSiteNames(nil, &other.names))
}

func appendSites(b []byte, addrs []uint64) []byte {
	last := uint64(0)
	for _, addr := range addrs {
		b = binary.AppendUvarint(b, addr-last)
		last = addr
	}
	return b
}

func appendSiteNames(b []byte, names *nameList) []byte {
	for module, name := range names.all() {
		b = append(append(b, Func{Name: name, Module: module}.String()...), '\n')
	}
	return b
}

func (s *snapshotWriter) addBlacklist() error {
	ranges, err := s.kernel.KprobeBlacklist()
	if err != nil {
		s.miss(sectionBlacklist, sectionBlacklist, err)
		return nil
	}
	var text []byte
	for _, r := range ranges {
		text = fmt.Appendf(text, "0x%016x-0x%016x\t%s\n", r.Start, r.End, r.Name)
	}
	return s.add(sectionBlacklist, text)
}

func (s *snapshotWriter) addBTF() error {
	objects, err := s.kernel.source.btfObjects()
	if err != nil {
		s.miss(factBTFObjects, factBTFObjects, err)
	}
	_, err = s.kernel.openBTF(Vmlinux)
	if err := s.addBTFObject(Vmlinux, prefixBTF+Vmlinux); err != nil {
		return err
	}
	for _, object := range objects {
		fact := prefixBTF + object
		if err != nil {
			fact = "" // one reason for all
		}
		if err := s.addBTFObject(object, fact); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshotWriter) addBTFObject(object, fact string) error {
	b, err := s.kernel.openBTF(object)
	switch {
	case err != nil:
		// The Kernel that reads it back names the object, as this one did.
		s.miss(prefixBTF+object, fact, errors.Unwrap(err))
		return nil
	case b.Distilled():
		s.miss(prefixBTF+object, fact, errors.New("its ids are not those of the running kernel (.BTF.base)"))
		return nil
	}
	return s.add(prefixBTF+object, b.Bytes())
}

func (s *snapshotWriter) addFacts() error {
	going, err := s.kernel.source.goingModules()
	if err != nil {
		s.miss(factNotLive, factNotLive, err)
	}
	for module := range going {
		s.facts.NotLive = append(s.facts.NotLive, module)
	}
	slices.Sort(s.facts.NotLive)
	deny, err := s.kernel.denyLists()
	if err != nil {
		s.miss(factDenyLists, factDenyLists, err)
	} else {
		s.facts.DenyLists = &deny
	}
	s.facts.Kernel, s.facts.Switches = s.kernel.Identity(), s.kernel.Switches()
	data, err := json.Marshal(s.facts)
	if err != nil {
		return err
	}
	return s.add(sectionFacts, data)
}
