// Package kallscope finds Linux kernel functions at scale: it turns patterns,
// names and BTF ids into exact kernel addresses and says for every function
// that it leaves out why.
//
// A [Kernel] holds the facts about one kernel. A [Query] against it gives a
// [Plan]: the targets, and every other candidate with its [Reason]. Nothing up
// to there needs privileges beyond reading the kernel's own lists, and nothing
// touches the kernel; package attach does that with a plan.
//
//	k, err := kallscope.Live(kallscope.LiveOptions{})
//	plan, err := k.Plan(kallscope.Query{Patterns: []string{"tcp_*"}}, kallscope.PlanOptions{})
//	for _, t := range plan.Targets {
//		fmt.Printf("%#x %s\n", t.Addr, t.Name)
//	}
package kallscope

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/kallsyms"
)

// A Kernel is the facts about one kernel. Each fact is read when it is first
// needed, and once. A Kernel never changes and is safe for concurrent use.
type Kernel struct {
	identity Identity
	source   source

	tables [scopeAll + 1]func() (*kallsyms.Table, error)
	loaded [scopeAll + 1]atomic.Pointer[kallsyms.Table]

	vmlinuxSites func() (*siteList, error)
	allSites     func() (*siteList, error)
	siteNames    func(scope) (*siteList, error)
	blacklist    func() ([]CodeRange, error)
	denyLists    func() (denyLists, error)
	switches     func() Switches

	mu  sync.Mutex
	btf map[string]btfResult // by object
}

type btfResult struct {
	btf *btfscan.BTF
	err error
}

// An Identity says which kernel facts or a plan are of.
type Identity struct {
	// Release is what uname -r prints.
	Release string `json:"release"`
	// BuildID is the GNU build id in hexadecimal; empty when the kernel has
	// none.
	BuildID string `json:"build_id,omitempty"`
	// Arch is the architecture as Go names it (GOARCH).
	Arch string `json:"arch"`
}

// A scope is the part of the kernel that a query can match in. The kernel's
// lists have vmlinux first and get slow behind it: each module symbol costs a
// walk over the module list (kernel/module/kallsyms.c: module_get_kallsym()).
type scope int

const (
	scopeVmlinux scope = iota
	scopeModules       // and vmlinux
	scopeAll           // and the code that the kernel makes at run time
)

// A source reads the facts of a kernel: the running one, or a file.
type source interface {
	// symbols returns the symbol table of the scope; it may have more.
	symbols(scope) (*kallsyms.Table, error)
	// sites returns the ftrace records with addresses, or by name where the
	// kernel lists no addresses (before v6.5).
	sites(scope) (*siteList, error)
	// siteNames returns the ftrace records by name.
	siteNames(scope) (*siteList, error)
	// openBTF returns the BTF of vmlinux or a module. base is nil for vmlinux.
	openBTF(object string, base *btfscan.BTF) (*btfscan.BTF, error)
	// btfObjects returns the names of all BTF objects but vmlinux, sorted.
	btfObjects() ([]string, error)
	// goingModules returns the modules that are not live.
	goingModules() (map[string]bool, error)
	// blacklist returns the code that kprobes must stay out of.
	blacklist() ([]CodeRange, error)
	// denyLists returns the functions that the verifier refuses.
	denyLists() (denyLists, error)
	// switches returns the settings that decide what works.
	switches() Switches
	// fallbacks says what was read in a slower way than the best, and why.
	fallbacks() []string
}

func newKernel(id Identity, src source) *Kernel {
	k := &Kernel{
		identity:     id,
		source:       src,
		vmlinuxSites: sync.OnceValues(func() (*siteList, error) { return src.sites(scopeVmlinux) }),
		allSites:     sync.OnceValues(func() (*siteList, error) { return src.sites(scopeAll) }),
		siteNames:    src.siteNames,
		blacklist:    sync.OnceValues(src.blacklist),
		denyLists:    sync.OnceValues(src.denyLists),
		switches:     sync.OnceValue(src.switches),
		btf:          make(map[string]btfResult),
	}
	for s := range k.tables {
		k.tables[s] = sync.OnceValues(func() (*kallsyms.Table, error) { return src.symbols(scope(s)) })
	}
	return k
}

// Identity returns release, build id and architecture.
func (k *Kernel) Identity() Identity { return k.identity }

// Symbols returns the whole symbol table as /proc/kallsyms shows it: modules,
// and the code that the kernel makes at run time, included. Reading it costs the
// kernel about 250 ns a symbol natively, and more with many modules.
func (k *Kernel) Symbols() (*kallsyms.Table, error) { return k.symbols(scopeAll) }

func (k *Kernel) symbols(s scope) (*kallsyms.Table, error) {
	table, err := k.tables[s]()
	if err == nil {
		k.loaded[s].Store(table)
	}
	return table, err
}

// anySymbols returns a table that has the scope, preferably one that has been
// read.
func (k *Kernel) anySymbols(s scope) (*kallsyms.Table, error) {
	for wider := s; wider <= scopeAll; wider++ {
		if table := k.loaded[wider].Load(); table != nil {
			return table, nil
		}
	}
	return k.symbols(s)
}

func (k *Kernel) sites(s scope) (*siteList, error) {
	if s == scopeVmlinux {
		return k.vmlinuxSites()
	}
	return k.allSites()
}

// KprobeBlacklist returns the code that single kprobes must stay out of, by
// debugfs (kprobes/blacklist); kprobe.multi is not bound by it. Addresses are
// zero where the kernel hides them. It takes root and a mounted debugfs.
func (k *Kernel) KprobeBlacklist() ([]CodeRange, error) { return k.blacklist() }

// Switches are settings of a kernel that decide what works. Empty means that it
// is not known.
type Switches struct {
	// Lockdown is none, integrity or confidentiality. Integrity does not stand
	// in the way of anything here.
	Lockdown string `json:"lockdown,omitempty"`
	// KptrRestrict is the value of kernel.kptr_restrict.
	KptrRestrict string `json:"kptr_restrict,omitempty"`
	// Syslog says whether this process has CAP_SYSLOG.
	Syslog bool `json:"cap_syslog"`
	// Tracefs is the folder that tracefs is mounted on.
	Tracefs string `json:"tracefs,omitempty"`
}

// hidden says why addresses may be hidden: the two gates of
// kallsyms_show_value() in kernel/kallsyms.c with their state.
func (s Switches) hidden() string {
	syslog := "absent"
	if s.Syslog {
		syslog = "present"
	}
	return fmt.Sprintf("kernel.kptr_restrict is %s, CAP_SYSLOG is %s", cmp.Or(s.KptrRestrict, "unreadable"), syslog)
}

// Fallbacks says which facts were read in a slower way than the best, and why:
// what -v shows.
func (k *Kernel) Fallbacks() []string { return k.source.fallbacks() }

// Switches returns the settings as they were when they were first asked for.
func (k *Kernel) Switches() Switches { return k.switches() }

// openBTF returns the BTF of one object, read once.
func (k *Kernel) openBTF(object string) (*btfscan.BTF, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.openBTFLocked(object)
}

func (k *Kernel) openBTFLocked(object string) (*btfscan.BTF, error) {
	if r, ok := k.btf[object]; ok {
		return r.btf, r.err
	}
	var base *btfscan.BTF
	if object != Vmlinux {
		var err error
		if base, err = k.openBTFLocked(Vmlinux); err != nil {
			return nil, err
		}
	}
	b, err := k.source.openBTF(object, base)
	if err != nil {
		err = fmt.Errorf("BTF of %s: %w", object, err)
	}
	k.btf[object] = btfResult{b, err}
	return b, err
}

// BTFIDs returns the ids of the BTF functions with the name of f, in the BTF
// of its module; several where BTF has the name several times, none without
// BTF.
func (k *Kernel) BTFIDs(f Func) []BTFID { return k.AppendBTFIDs(nil, f) }

// AppendBTFIDs appends to dst what BTFIDs returns.
func (k *Kernel) AppendBTFIDs(dst []BTFID, f Func) []BTFID {
	b, err := k.openBTF(f.Module)
	if err != nil {
		return dst
	}
	for i := range b.Indexes(f.Name) {
		dst = append(dst, BTFID{f.Module, b.Func(i).ID})
	}
	return dst
}

// Names returns all names of the function's address in its module, in the
// kernel's order.
func (k *Kernel) Names(f Func) ([]string, error) { return k.AppendNames(nil, f) }

// AppendNames appends to dst what Names returns.
func (k *Kernel) AppendNames(dst []string, f Func) ([]string, error) {
	table, err := k.anySymbols(scopeOf(f.Module))
	if err != nil {
		return dst, err
	}
	var few [4]int
	for _, i := range table.AppendAt(few[:0], f.Addr) {
		if moduleName(table.Module(i)) == f.Module && kallsyms.IsText(table.Type(i)) {
			dst = append(dst, table.Name(i))
		}
	}
	return dst, nil
}

func scopeOf(module string) scope {
	switch {
	case module == Vmlinux:
		return scopeVmlinux
	case kallsyms.IsPseudoModule(module):
		return scopeAll
	}
	return scopeModules
}

func moduleName(m string) string {
	if m == "" {
		return Vmlinux
	}
	return m
}
