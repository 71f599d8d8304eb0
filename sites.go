package kallscope

import (
	"io"
	"iter"
	"slices"

	"github.com/kallscope/kallscope/internal/tracefs"
	"github.com/kallscope/kallscope/kallsyms"
)

// maxSiteOffset is how far behind the entry a site can lie: 4 on x86 behind an
// endbr64, 4 or 8 on arm64 behind a BTI landing pad, 8 on powerpc behind the
// global entry.
const maxSiteOffset = 8

// siteList holds the ftrace records of a kernel: either sorted addresses, or
// names in the order of the records, which is that of addresses within vmlinux
// and within each module.
type siteList struct {
	addrs []uint64
	names nameList
	from  string // the file
}

// newSiteList sorts addrs, which it keeps.
func newSiteList(addrs []uint64, from string) *siteList {
	if !slices.IsSorted(addrs) {
		slices.Sort(addrs)
	}
	return &siteList{addrs: addrs, from: from}
}

// nameList is a list of (module, name) in one piece of memory.
type nameList struct {
	blob    []byte
	ends    []uint32
	modules []uint16
	known   []string // by modules[i]
}

func (l *nameList) add(module, name []byte) {
	if len(l.known) == 0 || l.known[len(l.known)-1] != moduleName(string(module)) {
		l.known = append(l.known, moduleName(string(module)))
	}
	l.blob = append(l.blob, name...)
	l.ends = append(l.ends, uint32(len(l.blob)))
	l.modules = append(l.modules, uint16(len(l.known)-1))
}

func (l *nameList) len() int { return len(l.ends) }

func (l *nameList) at(i int) (module, name string) {
	start := uint32(0)
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.known[l.modules[i]], string(l.blob[start:l.ends[i]])
}

func (l *nameList) all() iter.Seq2[string, string] {
	return func(yield func(module, name string) bool) {
		for i := range l.len() {
			if !yield(l.at(i)) {
				return
			}
		}
	}
}

// set returns the list as "module:name" keys.
func (l *nameList) set() map[string]bool {
	set := make(map[string]bool, l.len())
	for module, name := range l.all() {
		set[module+":"+name] = true
	}
	return set
}

// readSites reads a list of ftrace records up to the end of the scope.
func readSites(r io.Reader, withAddrs bool, s scope) (*siteList, error) {
	l := new(siteList)
	if withAddrs {
		l.addrs = make([]uint64, 0, 48<<10) // vmlinux has 35,000 to 45,000
	}
	err := tracefs.ReadSites(r, withAddrs, func(site tracefs.Site) bool {
		switch {
		case s == scopeVmlinux && len(site.Module) > 0:
			return false
		case site.Invalid(): // no function: left over from a weak one
		case withAddrs:
			l.addrs = append(l.addrs, site.Addr)
		default:
			l.names.add(site.Module, site.Name)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if !slices.IsSorted(l.addrs) {
		slices.Sort(l.addrs)
	}
	return l, nil
}

func (l *siteList) len() int { return max(len(l.addrs), l.names.len()) }

// A siteIndex says whether an entry has a site.
type siteIndex interface {
	// at is asked with rising entry addresses; end is the next entry.
	at(addr, end uint64) siteState
	// find returns the address of the site of any entry.
	find(addr uint64) (site uint64, ok bool)
}

type siteState uint8

const (
	siteUnknown siteState = iota
	siteYes
	siteNo
)

// sitesUnknown is the index of a kernel whose list cannot be read.
type sitesUnknown struct{}

func (sitesUnknown) at(uint64, uint64) siteState { return siteUnknown }

func (sitesUnknown) find(uint64) (uint64, bool) { return 0, false }

// siteCursor walks sorted site addresses beside rising entry addresses.
type siteCursor struct{ all, rest []uint64 }

func (c *siteCursor) find(addr uint64) (uint64, bool) {
	i, _ := slices.BinarySearch(c.all, addr)
	if i == len(c.all) || c.all[i] > addr+maxSiteOffset {
		return 0, false
	}
	return c.all[i], true
}

func (c *siteCursor) at(addr, end uint64) siteState {
	for len(c.rest) > 0 && c.rest[0] < addr {
		c.rest = c.rest[1:]
	}
	if len(c.rest) > 0 && c.rest[0] <= addr+maxSiteOffset && (c.rest[0] < end || end <= addr) {
		return siteYes
	}
	return siteNo
}

// sitesByAddr is the index that names were joined to.
type sitesByAddr map[uint64]siteState

func (m sitesByAddr) at(addr, _ uint64) siteState {
	if s, ok := m[addr]; ok {
		return s
	}
	return siteNo
}

func (m sitesByAddr) find(addr uint64) (uint64, bool) { return addr, m[addr] == siteYes }

// joinSiteNames finds the addresses of a list of names. A name that one text
// symbol of the module has is certain. The records of one module come in the
// order of their addresses, so the records of an ambiguous name between two
// certain ones belong to the symbols of that name between those addresses: when
// there are as many symbols as records all have a site, otherwise the list does
// not say which, and they stay unknown.
func joinSiteNames(t *kallsyms.Table, l *nameList) sitesByAddr {
	j := siteJoin{table: t, found: make(sitesByAddr, l.len())}
	module := ""
	for m, name := range l.all() {
		if m != module {
			j.flush(^uint64(0))
			module, j.low = m, 0
		}
		addrs := j.instances(m, name)
		if len(addrs) == 1 {
			j.flush(addrs[0])
			j.found[addrs[0]], j.low = siteYes, addrs[0]
			continue
		}
		j.pend(name, addrs)
	}
	j.flush(^uint64(0))
	return j.found
}

type siteJoin struct {
	table   *kallsyms.Table
	found   sitesByAddr
	low     uint64 // address of the last certain record
	pending []pendingSite
}

// pendingSite is an ambiguous name: its instances, and how many records it has
// since the last certain one.
type pendingSite struct {
	name    string
	addrs   []uint64
	records int
}

func (j *siteJoin) pend(name string, addrs []uint64) {
	for i := range j.pending {
		if j.pending[i].name == name {
			j.pending[i].records++
			return
		}
	}
	j.pending = append(j.pending, pendingSite{name, addrs, 1})
}

// flush decides the pending names, whose addresses lie between low and high.
func (j *siteJoin) flush(high uint64) {
	for _, p := range j.pending {
		between := slices.DeleteFunc(p.addrs, func(a uint64) bool { return a <= j.low || a >= high })
		state := siteUnknown
		if len(between) == p.records {
			state = siteYes
		}
		for _, a := range between {
			j.found[a] = state
		}
	}
	j.pending = j.pending[:0]
}

// instances returns the distinct addresses of the text symbols of a name.
func (j *siteJoin) instances(module, name string) []uint64 {
	var addrs []uint64
	for _, i := range j.table.ByName(name) {
		if kallsyms.IsText(j.table.Type(i)) && moduleName(j.table.Module(i)) == module && !slices.Contains(addrs, j.table.Addr(i)) {
			addrs = append(addrs, j.table.Addr(i))
		}
	}
	return addrs
}
