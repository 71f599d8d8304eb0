package kallscope

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// A Mechanism is a way in which the kernel runs a BPF program on a function.
type Mechanism uint8

// The mechanisms. MechanismAuto leaves the choice to the plan.
const (
	MechanismAuto Mechanism = iota
	// KprobeMulti, KretprobeMulti and KprobeSession make one link for any
	// number of functions, by address. A session runs on entry and on return.
	KprobeMulti
	KretprobeMulti
	KprobeSession
	// Fentry, Fexit and Fsession take a program of its own for each function,
	// by BTF id.
	Fentry
	Fexit
	Fsession
	// FentryMulti, FexitMulti and FsessionMulti make one link for any number
	// of functions of one BTF object, by BTF id.
	FentryMulti
	FexitMulti
	FsessionMulti
	// Kprobe and Kretprobe take a perf event for each function.
	Kprobe
	Kretprobe
	numMechanisms
)

var mechanismNames = [numMechanisms]string{
	MechanismAuto:  "auto",
	KprobeMulti:    "kprobe.multi",
	KretprobeMulti: "kretprobe.multi",
	KprobeSession:  "kprobe.session",
	Fentry:         "fentry",
	Fexit:          "fexit",
	Fsession:       "fsession",
	FentryMulti:    "fentry.multi",
	FexitMulti:     "fexit.multi",
	FsessionMulti:  "fsession.multi",
	Kprobe:         "kprobe",
	Kretprobe:      "kretprobe",
}

// String returns the name as in libbpf's section names, such as "kprobe.multi".
func (m Mechanism) String() string {
	if m >= numMechanisms {
		return fmt.Sprintf("mechanism-%d", uint8(m))
	}
	return mechanismNames[m]
}

// ByBTF reports whether the kernel is told the function by its BTF id, and
// finds the address itself; see [Kernel.TracingID].
func (m Mechanism) ByBTF() bool { return m >= Fentry && m <= FsessionMulti }

// PerFunction reports whether each function takes a link of its own: file
// descriptors, and an RCU grace period to detach.
func (m Mechanism) PerFunction() bool {
	return m >= Fentry && m <= Fsession || m == Kprobe || m == Kretprobe
}

// Mechanisms returns all mechanisms that a plan can choose.
func Mechanisms() []Mechanism {
	all := make([]Mechanism, 0, numMechanisms-1)
	for m := MechanismAuto + 1; m < numMechanisms; m++ {
		all = append(all, m)
	}
	return all
}

// ParseMechanism returns the mechanism of a name; "" is MechanismAuto. It
// fails with [ErrNotFound].
func ParseMechanism(name string) (Mechanism, error) {
	if name == "" {
		return MechanismAuto, nil
	}
	for m, n := range mechanismNames {
		if n == name {
			return Mechanism(m), nil
		}
	}
	return MechanismAuto, fmt.Errorf("mechanism %q: %w; use one of %s", name, ErrNotFound, strings.Join(mechanismNames[:], ", "))
}

// A MechanismSet is any of the mechanisms.
type MechanismSet uint16

func setOf(is func(Mechanism) bool) (s MechanismSet) {
	for _, m := range Mechanisms() {
		if is(m) {
			s |= 1 << m
		}
	}
	return s
}

// Has reports whether a mechanism is in the set.
func (s MechanismSet) Has(m Mechanism) bool { return s>>m&1 == 1 }

// With returns the set and a mechanism.
func (s MechanismSet) With(m Mechanism) MechanismSet { return s | 1<<m }

// first returns the first mechanism of a set that has one.
func (s MechanismSet) first() Mechanism { return Mechanism(bits.TrailingZeros16(uint16(s))) }

// List returns the mechanisms of the set, in the order of [Mechanisms].
func (s MechanismSet) List() (list []Mechanism) {
	for m := MechanismAuto + 1; m < numMechanisms; m++ {
		if s.Has(m) {
			list = append(list, m)
		}
	}
	return list
}

// MarshalJSON writes an array of names, perhaps an empty one.
func (s MechanismSet) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]Mechanism{}, s.List()...))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *MechanismSet) UnmarshalJSON(data []byte) error {
	var list []Mechanism
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*s = 0
	for _, m := range list {
		if m == MechanismAuto {
			return errors.New("auto is no mechanism of a set")
		}
		*s = s.With(m)
	}
	return nil
}

// MarshalText returns the name.
func (m Mechanism) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name. It fails with [ErrNotFound].
func (m *Mechanism) UnmarshalText(text []byte) error {
	parsed, err := ParseMechanism(string(text))
	*m = parsed
	return err
}
