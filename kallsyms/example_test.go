package kallsyms_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kallscope/kallscope/kallsyms"
)

const list = `ffffffff81000000 T _stext
ffffffff81234560 t __pfx_seq_demo
ffffffff81234570 t seq_demo
ffffffff81300000 t seq_demo
ffffffffc0910010 t load_demo	[drv]
`

func Example() {
	t, err := kallsyms.Read(strings.NewReader(list), kallsyms.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Len(), "symbols,", t.State())

	for _, i := range t.ByName("seq_demo") {
		fmt.Println(t.Symbol(i))
	}
	if l, ok := t.Find(0xffffffffc0910014); ok {
		fmt.Println(l)
	}
	// Output:
	// 5 symbols, visible
	// ffffffff81234570 t seq_demo
	// ffffffff81300000 t seq_demo
	// load_demo+0x4 [drv]
}

// Module symbols come after those of vmlinux and may be very many.
func ExampleOptions_visit() {
	t, err := kallsyms.Read(strings.NewReader(list), kallsyms.Options{
		Visit: func(l *kallsyms.Line) kallsyms.Action {
			if l.Module != nil {
				return kallsyms.Stop
			}
			if kallsyms.Classify(string(l.Name)) == kallsyms.ClassPadding {
				return kallsyms.Skip
			}
			return kallsyms.Keep
		},
	})
	fmt.Println(t.Len(), t.Stopped(), err)
	// Output: 3 true <nil>
}

func ExampleTable_Resolve() {
	t, err := kallsyms.Parse([]byte(list), kallsyms.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = t.Resolve("seq_demo")
	if _, ok := errors.AsType[*kallsyms.AmbiguousError](err); ok {
		fmt.Println(err)
	}
	// Output: symbol seq_demo: 2 addresses (0xffffffff81234570 seq_demo, 0xffffffff81300000 seq_demo); choose by module or address
}

func ExampleScanner() {
	s := kallsyms.NewScanner(strings.NewReader(list), kallsyms.Options{})
	for s.Scan() {
		if l := s.Line(); l.Module != nil {
			fmt.Printf("line %d: %s in %s\n", l.Number, l.Name, l.Module)
		}
	}
	fmt.Println(s.Err())
	// Output:
	// line 5: load_demo in drv
	// <nil>
}
