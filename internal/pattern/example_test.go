package pattern_test

import (
	"fmt"
	"strings"

	"github.com/kallscope/kallscope/internal/pattern"
)

func Example() {
	patterns, err := pattern.ParseFile(strings.NewReader("tcp_*   # all of TCP\n!*_bh\nsyscall:openat\n"), "example.pat")
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := pattern.NewSet(patterns, pattern.SetOptions{SyscallPrefixes: pattern.SyscallPrefixes("amd64")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"tcp_sendmsg", "tcp_lock_bh", "__x64_sys_openat", "vfs_read"} {
		if i, ok := set.Match("", name); ok {
			fmt.Printf("%s: %v\n", name, patterns[i])
		}
	}
	// Output:
	// tcp_sendmsg: tcp_*
	// __x64_sys_openat: syscall:openat
}

func ExampleParse() {
	_, err := pattern.Parse("kvm:tcp_[a-z")
	fmt.Println(err)
	// Output:
	// parse pattern "kvm:tcp_[a-z": column 9: unclosed [; close the class with ], or type \[ for the character itself
}
