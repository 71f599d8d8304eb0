package kallscope

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Vmlinux is the module name of functions that are part of the kernel image.
const Vmlinux = "vmlinux"

// A Func is one entry point in kernel text, known by (Module, Addr). A
// candidate that exists in BTF only has no address but a BTFID.
type Func struct {
	// Addr is the entry address; zero when hidden, or when the function is in
	// BTF only.
	Addr uint64
	// Name is the name that was asked for where the address has several,
	// else the one that the kernel itself prints.
	Name string
	// Module is "vmlinux" or the name of a module.
	Module string
	// BTFID is the type id in the BTF of Module; set only when there is no
	// symbol of this name. [Kernel.BTFIDs] returns the ids of any function.
	BTFID uint32
}

// String returns the name as the kernel prints it: "vfs_read", or
// "ext4_readdir [ext4]" for a module.
func (f Func) String() string {
	if f.Module == Vmlinux || f.Module == "" {
		return f.Name
	}
	return f.Name + " [" + f.Module + "]"
}

// A BTFID names a BTF_KIND_FUNC: a BTF object, "vmlinux" or a module, and the
// type id in it.
type BTFID struct {
	Object string `json:"object"`
	ID     uint32 `json:"id"`
}

// String returns "#1234" for vmlinux and "nf_tables#77" for a module, which
// are also patterns.
func (b BTFID) String() string {
	if b.Object == Vmlinux {
		return fmt.Sprintf("#%d", b.ID)
	}
	return fmt.Sprintf("%s#%d", b.Object, b.ID)
}

// Hex is an address that JSON carries as a string, "0xffffffff81000000": JSON
// numbers lose digits above 2^53 in many readers. Zero is left out.
type Hex uint64

// MarshalText returns the address in hexadecimal with 0x.
func (h Hex) MarshalText() ([]byte, error) {
	return strconv.AppendUint([]byte("0x"), uint64(h), 16), nil
}

// UnmarshalText reads a hexadecimal number with 0x.
func (h *Hex) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("address %q: want hexadecimal with 0x", text)
	}
	*h = Hex(n)
	return nil
}

type funcJSON struct {
	Addr   Hex    `json:"address,omitzero"`
	Module string `json:"module"`
	Name   string `json:"name"`
	BTFID  uint32 `json:"btf_id,omitempty"`
}

func (f Func) json() funcJSON { return funcJSON{Hex(f.Addr), f.Module, f.Name, f.BTFID} }

func (j funcJSON) fn() Func { return Func{uint64(j.Addr), j.Name, j.Module, j.BTFID} }

// MarshalJSON writes address (absent when not known), module, name, btf_id.
func (f Func) MarshalJSON() ([]byte, error) { return json.Marshal(f.json()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Func) UnmarshalJSON(data []byte) error {
	var j funcJSON
	err := json.Unmarshal(data, &j)
	*f = j.fn()
	return err
}
