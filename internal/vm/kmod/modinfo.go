package kmod

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
)

// Needs is what a module asks to be loaded before it.
type Needs struct {
	// Hard dependencies: without them symbols are missing.
	Hard []string
	// Soft dependencies of the kind "pre:", which may be absent.
	Soft []string
}

// Depends returns the dependencies written in the .modinfo section of ko, a
// decompressed module.
func Depends(ko []byte) (Needs, error) {
	info, err := modinfo(ko)
	if err != nil {
		return Needs{}, fmt.Errorf("read .modinfo: %w", err)
	}
	var n Needs
	for entry := range bytes.SplitSeq(info, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "=")
		switch key {
		case "depends":
			n.Hard = append(n.Hard, splitDepends(value)...)
		case "softdep":
			n.Soft = append(n.Soft, splitSoft(value)...)
		}
	}
	return n, nil
}

func modinfo(ko []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(ko))
	if err != nil {
		return nil, err
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("no such section (not a kernel module?)")
	}
	return s.Data()
}

func splitDepends(list string) []string {
	var names []string
	for n := range strings.SplitSeq(list, ",") {
		if n != "" {
			names = append(names, normalize(n))
		}
	}
	return names
}

// splitSoft returns the names after "pre:" in "pre: a b post: c".
func splitSoft(text string) []string {
	var names []string
	pre := false
	for w := range strings.FieldsSeq(text) {
		switch {
		case w == "pre:" || w == "post:":
			pre = w == "pre:"
		case pre:
			names = append(names, normalize(w))
		}
	}
	return names
}
