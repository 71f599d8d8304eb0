package kallscope

import "fmt"

// A Mechanism is a way in which the kernel runs a BPF program on a function.
type Mechanism uint8

// The mechanisms. MechanismAuto leaves the choice to the plan.
const (
	MechanismAuto Mechanism = iota
	KprobeMulti
	KretprobeMulti
	numMechanisms
)

var mechanismNames = [numMechanisms]string{
	MechanismAuto:  "auto",
	KprobeMulti:    "kprobe.multi",
	KretprobeMulti: "kretprobe.multi",
}

// String returns the name as in libbpf's section names, such as "kprobe.multi".
func (m Mechanism) String() string {
	if m >= numMechanisms {
		return fmt.Sprintf("mechanism-%d", uint8(m))
	}
	return mechanismNames[m]
}

// Mechanisms returns all mechanisms that a plan can choose.
func Mechanisms() []Mechanism {
	return []Mechanism{KprobeMulti, KretprobeMulti}
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
	return MechanismAuto, fmt.Errorf("mechanism %q: %w; use one of auto, kprobe.multi, kretprobe.multi", name, ErrNotFound)
}

// MarshalText returns the name.
func (m Mechanism) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name. It fails with [ErrNotFound].
func (m *Mechanism) UnmarshalText(text []byte) error {
	parsed, err := ParseMechanism(string(text))
	*m = parsed
	return err
}
