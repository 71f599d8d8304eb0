package attach

import (
	"errors"
	"fmt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/feature"
)

// needs says what a mechanism wants of a kernel.
type needs struct {
	since  string
	option string
}

var needsOf = map[kallscope.Mechanism]needs{
	kallscope.KprobeMulti:    {"5.18", "CONFIG_FPROBE"},
	kallscope.KretprobeMulti: {"5.18", "CONFIG_FPROBE"},
	kallscope.KprobeSession:  {"6.10", "CONFIG_FPROBE"},
	kallscope.Fentry:         {"5.5", "CONFIG_DEBUG_INFO_BTF and CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"},
	kallscope.Fexit:          {"5.5", "CONFIG_DEBUG_INFO_BTF and CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"},
	kallscope.Fsession:       {"7.0", "CONFIG_DEBUG_INFO_BTF and CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"},
	kallscope.FentryMulti:    {"7.2", "CONFIG_HAVE_SINGLE_FTRACE_DIRECT_OPS"},
	kallscope.FexitMulti:     {"7.2", "CONFIG_HAVE_SINGLE_FTRACE_DIRECT_OPS"},
	kallscope.FsessionMulti:  {"7.2", "CONFIG_HAVE_SINGLE_FTRACE_DIRECT_OPS"},
	kallscope.Kprobe:         {"4.17", "CONFIG_KPROBE_EVENTS"},
	kallscope.Kretprobe:      {"4.17", "CONFIG_KPROBE_EVENTS"},
}

// Supported returns nil when the running kernel has the mechanism and this
// process may use it. Otherwise it says which of the two it is:
// [kallscope.ErrNotSupported], with what the kernel lacks, or
// [kallscope.ErrRestricted]. It asks the kernel and attaches nothing.
func Supported(m kallscope.Mechanism) error {
	return supported(m, "/", feature.Probe(m.String()))
}

// supported turns what a probe found into words.
func supported(m kallscope.Mechanism, root string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, feature.ErrPermission):
		return fmt.Errorf("%s: %w: %w%s; %s", m, kallscope.ErrRestricted, err, number(err), feature.WhyDenied(root))
	case errors.Is(err, feature.ErrParanoid):
		return fmt.Errorf("%s: %w: %w%s; run as root, or set it to 2: it is %s, and from 3 on kernels of Debian and Ubuntu ask for CAP_SYS_ADMIN where others take CAP_PERFMON",
			m, kallscope.ErrRestricted, err, number(err), feature.Sysctl("perf_event_paranoid"))
	case errors.Is(err, feature.ErrLockdown):
		return fmt.Errorf("%s: %w: kernel lockdown is %q%s; use another mechanism", m, kallscope.ErrRestricted, "confidentiality", number(err))
	case errors.Is(err, feature.ErrFtraceOff):
		return fmt.Errorf("%s: %w: %w, so nothing that is attached would be called; sysctl kernel.ftrace_enabled=1", m, kallscope.ErrRestricted, err)
	case errors.Is(err, feature.ErrNotBuilt):
		return fmt.Errorf("%s: %w: it was built without %s%s", m, kallscope.ErrNotSupported, needsOf[m].option, number(err))
	case errors.Is(err, feature.ErrTooOld):
		return fmt.Errorf("%s: %w: it is older than this mechanism (Linux %s)", m, kallscope.ErrNotSupported, needsOf[m].since)
	default:
		return fmt.Errorf("%s: %w", m, err)
	}
}
