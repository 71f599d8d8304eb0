package lookup

import (
	"unsafe"

	"github.com/emirpasic/gods/v2/trees/redblacktree"
)

// rbtree keeps the wanted names in a red-black tree and looks every symbol up.
// Names that repeat share a node.
var rbtree = Method{
	Name:    "rbtree",
	About:   "a red-black tree of the functions, one pass over the symbols",
	Prepare: direct(resolveTree),
}

func resolveTree(in *Input) (*Answer, error) {
	tree := redblacktree.New[string, int32]()
	same := chain(in.Wanted, func(name string, i int32) int32 {
		next := none
		if node := tree.GetNode(name); node != nil {
			next, node.Value = node.Value, i
		} else {
			tree.Put(name, i)
		}
		return next
	})
	a := newAnswer(in.Wanted.Len())
	err := eachSymbol(in.Text, func(name []byte, addr uint64) {
		if i, ok := tree.Get(view(name)); ok {
			same.add(a, i, addr)
		}
	})
	return a.finish(), err
}

// view returns name as a string that is valid as long as name is: a copy for
// each symbol would cost more than the search.
func view(name []byte) string { return unsafe.String(unsafe.SliceData(name), len(name)) }
