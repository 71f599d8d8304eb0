package kallscope

// dispatch are the functions that the kernel calls on every hit of a
// kprobe.multi link: attached to, each costs every other probe a further,
// dropped hit. kprobe_multi_link_prog_run() in kernel/trace/bpf_trace.c takes
// the RCU read lock; from 7.0 on, is_endbr() is no longer inlined into
// ftrace_get_entry_ip(). TestFindDispatch in internal/bench finds them, on 6.12
// and 7.3 no others. With everything attached one getppid costs 8.0 µs with
// and 2.2 µs without them on 6.12, counted in instructions.
var dispatch = map[string]bool{
	"__rcu_read_lock":   true,
	"__rcu_read_unlock": true,
	"is_endbr":          true,
}
