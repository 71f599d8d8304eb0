package attach

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/kallscope/kallscope"
)

// A group is the targets of one mechanism, and where that goes by BTF of one
// BTF object: they have one linker.
type group struct {
	mechanism kallscope.Mechanism
	module    string             // by BTF only
	targets   []kallscope.Target // of the plan
	indexes   []int              // of the group's targets in the plan

	// By BTF only: the object, nil for vmlinux, and the id of each target by
	// its index in the plan.
	object *object
	ids    map[int]uint32
}

// A linker attaches the targets of a group, given by their indexes in the plan.
// There is one for each mechanism.
type linker interface {
	// link makes one link, for one target where the mechanism is per function.
	link(indexes []int) (link.Link, error)
	// programs returns what has been loaded; who attaches closes it.
	programs() []*ebpf.Program
	// blames reports whether an error is about one of the targets, and not
	// about the mechanism or the process.
	blames(error) bool
	// refusal turns such an error into words, for the one target that it is
	// about.
	refusal(*kallscope.Target, error) error
	// explain turns any other error into words.
	explain(error) error
}

func newLinker(l *loader, g *group) (linker, error) {
	switch g.mechanism {
	case kallscope.KprobeMulti, kallscope.KretprobeMulti, kallscope.KprobeSession:
		return newKprobeMulti(l, g)
	case kallscope.Fentry, kallscope.Fexit, kallscope.Fsession:
		return newTracing(l, g)
	case kallscope.FentryMulti, kallscope.FexitMulti, kallscope.FsessionMulti:
		return newTracingMulti(l, g)
	case kallscope.Kprobe, kallscope.Kretprobe:
		return newKprobe(l, g)
	}
	return nil, fmt.Errorf("mechanism %s is none to attach by", g.mechanism)
}

// groupsOf groups the targets of a plan, in the order of mechanisms and then
// of modules.
func groupsOf(targets []kallscope.Target) []*group {
	type key struct {
		mechanism kallscope.Mechanism
		module    string
	}
	byKey := make(map[key]*group)
	var groups []*group
	for i := range targets {
		k := key{mechanism: targets[i].Mechanism}
		if k.mechanism.ByBTF() {
			k.module = targets[i].Module
		}
		g := byKey[k]
		if g == nil {
			g = &group{mechanism: k.mechanism, module: k.module, targets: targets}
			byKey[k] = g
			groups = append(groups, g)
		}
		g.indexes = append(g.indexes, i)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return int(a.mechanism) - int(b.mechanism) })
	return groups
}

// cookies returns the cookie of each target: its index plus one.
func cookies(indexes []int) []uint64 {
	cookies := make([]uint64, len(indexes))
	for i, index := range indexes {
		cookies[i] = uint64(index) + 1
	}
	return cookies
}

// findIDs finds the BTF ids of a group and takes out the targets that have none
// by which the kernel would find them, and those that stop the machine.
func (g *group) findIDs(k *kallscope.Kernel, unsafe bool) []Refused {
	g.ids = make(map[int]uint32, len(g.indexes))
	var refused []Refused
	g.indexes = slices.DeleteFunc(g.indexes, func(i int) bool {
		id, reason, err := tracingID(k, &g.targets[i], unsafe)
		if err != nil {
			refused = append(refused, Refused{i, g.targets[i], reason, err})
			return true
		}
		g.ids[i] = id
		return false
	})
	return refused
}

func tracingID(k *kallscope.Kernel, t *kallscope.Target, unsafe bool) (uint32, kallscope.Reason, error) {
	if why := kallscope.Hangs(t.Mechanism, t.Func); why != "" && !unsafe {
		return 0, kallscope.ReasonRefused, fmt.Errorf("not tried: %s", why)
	}
	if t.Offset != 0 {
		return 0, kallscope.ReasonOffset, errors.New("this mechanism runs at the entry")
	}
	id, err := k.TracingID(t.Func)
	if errors.Is(err, kallscope.ErrAmbiguous) {
		return 0, kallscope.ReasonAmbiguousName, err
	}
	return id.ID, kallscope.ReasonRefused, err
}

// An object is the BTF of a module, in the kernel.
type object struct{ handle *btf.Handle }

// openObject finds the BTF of a module; that of vmlinux, nil, is what the
// kernel takes by itself.
func openObject(module string) (*object, error) {
	if module == kallscope.Vmlinux {
		return nil, nil
	}
	handle, err := btf.FindHandle(func(info *btf.HandleInfo) bool { return info.IsModule() && info.Name == module })
	if err != nil {
		return nil, fmt.Errorf("BTF of module %s: %w", module, err)
	}
	return &object{handle}, nil
}

// FD returns the file descriptor, zero for vmlinux.
func (o *object) FD() int {
	if o == nil {
		return 0
	}
	return o.handle.FD()
}

// Close releases the object.
func (o *object) Close() error {
	if o == nil {
		return nil
	}
	return o.handle.Close()
}
