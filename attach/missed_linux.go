package attach

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// linkMissed returns the kernel's count of hits that a link missed: of
// kprobe.multi since v6.7, of single kprobes since v6.9; zero for others.
func linkMissed(l link.Link) (uint64, error) {
	info, err := l.Info()
	if errors.Is(err, ebpf.ErrNotSupported) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if multi := info.KprobeMulti(); multi != nil {
		return multi.Missed, nil
	}
	if event := info.PerfEvent(); event != nil {
		if probe := event.Kprobe(); probe != nil {
			return probe.Missed, nil
		}
	}
	return 0, nil
}
