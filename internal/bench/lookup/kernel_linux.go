package lookup

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// KernelMethods load a program into the running kernel, which needs root, and
// answer for its own symbols only.
func KernelMethods() []Method { return []Method{helper, iterator} }

// load loads one program of lookup.bpf.c.
func load(in *Input, program string) (*ebpf.Collection, error) {
	if !in.Live {
		return nil, ErrNotLive
	}
	spec, err := loadLookup()
	if err != nil {
		return nil, err
	}
	for name := range spec.Programs {
		if name != program {
			delete(spec.Programs, name)
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", program, err)
	}
	return coll, nil
}

// helper asks bpf_kallsyms_lookup_name() in a program of type syscall (kernel
// 5.16 and newer), 64 names a run. What that costs is what the kernel's own
// search costs: linear before v6.2, binary since.
var helper = Method{
	Name:      "bpf-lookup",
	About:     "bpf_kallsyms_lookup_name for each function, in a program",
	Sample:    640,
	FirstOnly: true,
	Prepare: func(in *Input) (*Run, error) {
		coll, err := load(in, "kallscope_lookup")
		if err != nil {
			return nil, err
		}
		h := &helperRun{in.Wanted, coll, new([helperBatch]lookupRequest)}
		return &Run{Resolve: h.resolve, Close: func() error { coll.Close(); return nil }}, nil
	},
}

// helperBatch is BATCH of lookup.bpf.c.
const helperBatch = 64

type helperRun struct {
	wanted *Wanted
	coll   *ebpf.Collection
	batch  *[helperBatch]lookupRequest
}

func (h *helperRun) resolve() (*Answer, error) {
	a := newAnswer(h.wanted.Len())
	for from := 0; from < h.wanted.Len(); from += helperBatch {
		names := h.wanted.Names[from:min(from+helperBatch, h.wanted.Len())]
		if err := h.run(names); err != nil {
			return nil, fmt.Errorf("bpf_kallsyms_lookup_name: %w", err)
		}
		for k := range names {
			switch r := &h.batch[k]; {
			case r.Size < 2 || unix.Errno(-r.Err) == unix.ENOENT:
			case r.Err != 0:
				return nil, fmt.Errorf("bpf_kallsyms_lookup_name of %q: %w", names[k], unix.Errno(-r.Err))
			default:
				a.add(from+k, r.Addr)
			}
		}
	}
	return a, nil
}

// run fills the batch with the answers for names.
func (h *helperRun) run(names []string) error {
	for k := range h.batch {
		r := &h.batch[k]
		r.Size = 0
		if k < len(names) && len(names[k]) < len(r.Name) { // no symbol's name is longer
			n := copy(unsafe.Slice((*byte)(unsafe.Pointer(&r.Name[0])), len(r.Name)), names[k])
			r.Name[n], r.Size = 0, uint32(n)+1
		}
	}
	value := unsafe.Slice((*byte)(unsafe.Pointer(h.batch)), unsafe.Sizeof(*h.batch))
	if err := h.coll.Maps["batch"].Put(uint32(0), value); err != nil {
		return err
	}
	status, err := h.coll.Programs["kallscope_lookup"].Run(&ebpf.RunOptions{})
	if err == nil && status != 0 {
		err = fmt.Errorf("the program ended with %d", status)
	}
	if err != nil {
		return err
	}
	return h.coll.Maps["batch"].Lookup(uint32(0), value)
}

// iterator reads the symbols from an iter/ksym program (kernel 6.0 and newer),
// which spares the kernel to print them, and looks them up in a map.
var iterator = Method{
	Name:    "iter-ksym",
	About:   "a map of the functions, one pass over what an iterator writes",
	Prepare: prepareIterator,
}

func prepareIterator(in *Input) (*Run, error) {
	coll, err := load(in, "kallscope_symbols")
	if err != nil {
		return nil, err
	}
	it, err := link.AttachIter(link.IterOptions{Program: coll.Programs["kallscope_symbols"]})
	if err != nil {
		coll.Close()
		return nil, fmt.Errorf("attach kallscope_symbols: %w", err)
	}
	return &Run{
		Resolve: func() (*Answer, error) { return resolveIterator(it, in.Wanted) },
		Close: func() error {
			defer coll.Close()
			return it.Close()
		},
	}, nil
}

func resolveIterator(it *link.Iter, w *Wanted) (_ *Answer, err error) {
	r, err := it.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	table, same := wantedMap(w)
	a := newAnswer(w.Len())
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		name, addr, err := readSymbol(in)
		if errors.Is(err, io.EOF) {
			return a.finish(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("iter/ksym: %w", err)
		}
		if i, ok := table[string(name)]; ok {
			same.add(a, i, addr)
		}
	}
}

// readSymbol reads what kallscope_symbols writes of one: the address and the
// name with a NUL behind it.
func readSymbol(in *bufio.Reader) (name []byte, addr uint64, err error) {
	head, err := in.Peek(8)
	if err != nil {
		if len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	addr = binary.NativeEndian.Uint64(head)
	if _, err := in.Discard(8); err != nil {
		return nil, 0, err
	}
	name, err = in.ReadSlice(0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, fmt.Errorf("a symbol without its end: %w", err)
	}
	return name[:len(name)-1], addr, nil
}
