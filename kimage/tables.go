package kimage

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The kernel's symbol table is a few arrays that scripts/kallsyms.c writes one
// after the other. No header says where they are, and their order has changed
// without regard to versions, distributions having taken over later patches:
//
//	until v6.3   offsets, relative_base, num_syms, names, markers, [seqs], token_table, token_index
//	since v6.4   num_syms, names, markers, token_table, token_index, offsets, relative_base, seqs
//	since v7.0   the same without relative_base
//
// Each begins at a multiple of 8, since v7.0 of 4. They are found by what must
// be true of them:
//
//   - token_index is 256 u16 that begin with 0 and rise by 2 at least, and the
//     strings that they point to, token_table, end right before it;
//   - markers are u32, every 256th symbol's place in names: they begin with 0
//     and rise by what 256 symbols can take, and end before token_table;
//   - names end right before markers, begin behind num_syms, and walking over
//     that many symbols meets each marker.

// tables is where the arrays are, in bytes from the start of a part.
type tables struct {
	numSyms, names, markers, tokens, index int
	count                                  int
}

const (
	tokenCount   = 256
	indexSize    = 2 * tokenCount
	markerStep   = 256 // symbols
	maxAlign     = 8
	minSymbol    = 2       // bytes: length and a token
	maxSymbol    = 2 + 512 // KSYM_NAME_LEN tokens
	maxTables    = 64 << 20
	maxTokenSize = 512
)

var errNoTables = fmt.Errorf("symbol table of the kernel: %w (CONFIG_KALLSYMS is off, or its form is not known)", ErrAbsent)

// A search goes through one part of an image. Its work is bounded: where
// nothing is what it looks like, everything could look like something.
type search struct {
	b     []byte
	order binary.ByteOrder
	work  int // steps left
}

// maxWork is some thirty times what a kernel takes, and a tenth of a second.
const maxWork = 1 << 25

// findTables returns the first tables in b.
func findTables(b []byte, order binary.ByteOrder) (tables, error) {
	s := &search{b: b, order: order, work: maxWork}
	for p := 0; s.work > 0; p += 4 {
		p = nextIndex(b, order, p)
		if p < 0 {
			break
		}
		t := tables{index: p, tokens: findTokens(b, order, p)}
		if t.tokens >= 0 && s.findNames(&t) {
			return t, nil
		}
	}
	return tables{}, errNoTables
}

// nextIndex returns the first place from p on that may be a token index, or -1.
func nextIndex(b []byte, order binary.ByteOrder, p int) int {
	for ; p+indexSize <= len(b); p += 4 {
		// The compiler keeps this short: nearly all places fail here.
		if b[p]|b[p+1] != 0 || b[p+2]|b[p+3] == 0 {
			continue
		}
		if isIndex(b[p:p+indexSize], order) {
			return p
		}
	}
	return -1
}

func isIndex(b []byte, order binary.ByteOrder) bool {
	last := order.Uint16(b)
	for i := 2; i < indexSize; i += 2 {
		v := order.Uint16(b[i:])
		if v < last+2 || v < last { // a character and its zero
			return false
		}
		last = v
	}
	return true
}

// findTokens returns where the token table of the index at p begins, or -1. The
// last string's length is not known, nor how much was left free behind it.
func findTokens(b []byte, order binary.ByteOrder, p int) int {
	last := int(order.Uint16(b[p+indexSize-2:]))
	for start := (p - last - 2) &^ 3; start >= 0 && p-start-last <= maxTokenSize; start -= 4 {
		if isTokenTable(b[start:p], b[p:p+indexSize], order) {
			return start
		}
	}
	return -1
}

func isTokenTable(table, index []byte, order binary.ByteOrder) bool {
	for i := 2; i < indexSize; i += 2 {
		from, to := int(order.Uint16(index[i-2:])), int(order.Uint16(index[i:]))
		if bytes.IndexByte(table[from:to], 0) != to-from-1 {
			return false
		}
	}
	last := table[order.Uint16(index[indexSize-2:]):]
	n := bytes.IndexByte(last, 0)
	return n > 0 && isPadding(last[n+1:])
}

func isPadding(b []byte) bool {
	return len(b) < maxAlign && len(bytes.TrimLeft(b, "\x00")) == 0
}

// findNames finds markers and names before the token table.
func (s *search) findNames(t *tables) bool {
	lowest := max(0, t.tokens-maxTables)
	for m := t.tokens - 8; m >= lowest && s.work > 0; m -= 4 {
		s.work--
		if s.order.Uint32(s.b[m:]) != 0 {
			continue
		}
		if n := s.markerRun(s.b[m:t.tokens]); n > 1 && s.namesBefore(t, m, n) {
			return true
		}
	}
	return false
}

// markerRun returns how many u32 at the start of b may be markers. It may be
// more than there are.
func (s *search) markerRun(b []byte) int {
	n, last := 1, uint32(0)
	for ; 4*n+4 <= len(b); n++ {
		v := s.order.Uint32(b[4*n:])
		if v < last || v-last < minSymbol*markerStep || v-last > maxSymbol*markerStep {
			break
		}
		last = v
	}
	s.work -= n
	return n
}

// namesBefore looks for names that end at m, where n markers are, or a few less
// where what follows goes on like them.
func (s *search) namesBefore(t *tables, m, n int) bool {
	for k := n; k > max(1, n-4); k-- {
		if s.namesOf(t, m, k) {
			return true
		}
	}
	return false
}

// namesOf looks for names with n markers, before which their number stands. The
// last marker says how long they are but for the symbols behind it.
func (s *search) namesOf(t *tables, m, n int) bool {
	end := m - int(s.order.Uint32(s.b[m+4*(n-1):])) - minSymbol
	for at := end &^ 3; at >= maxAlign && at >= end-maxAlign-maxSymbol*markerStep && s.work > 0; at -= 4 {
		s.work--
		for _, num := range [2]int{at - 4, at - 8} {
			count := int(s.order.Uint32(s.b[num:]))
			if count <= markerStep*(n-1) || count > markerStep*n {
				continue
			}
			if s.walk(s.b[at:m], s.b[m:], count) {
				t.numSyms, t.names, t.markers, t.count = num, at, m, count
				return true
			}
		}
	}
	return false
}

// walk says whether names has count symbols, where the markers say, and nothing
// else. A symbol is its length, from v6.1 on in two bytes if it is above 127,
// and that many tokens.
func (s *search) walk(names, markers []byte, count int) bool {
	at := 0
	for i := range count {
		if i%markerStep == 0 {
			s.work -= markerStep
			if at != int(s.order.Uint32(markers[4*(i/markerStep):])) {
				return false
			}
		}
		if at >= len(names) {
			return false
		}
		n := int(names[at])
		at++
		if n&0x80 != 0 && at < len(names) {
			n = n&0x7f | int(names[at])<<7
			at++
		}
		if at += n; n == 0 {
			return false
		}
	}
	return at <= len(names) && isPadding(names[at:])
}
