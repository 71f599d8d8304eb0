package kcore

import (
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// fields are members of structs whose offsets in bytes are wanted.
type fields []struct {
	in   btfscan.Aggregate
	name string
	size uint32
	to   *uint32
}

// maxStruct is more than any of the structs has: struct module has some 1500
// bytes.
const maxStruct = 1 << 16

// find looks all of them up. A kernel whose structs have other members is one
// that this package does not know; the caller falls back to the lists.
func (f fields) find() error {
	for _, field := range f {
		offset, ok := field.in.Offset(field.name, field.size)
		if !ok || field.in.Size() > maxStruct {
			return fmt.Errorf("the kernel's BTF has no usable member %s", field.name)
		}
		*field.to = offset
	}
	return nil
}
