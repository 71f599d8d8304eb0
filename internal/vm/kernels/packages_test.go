package kernels

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestSimulated(t *testing.T) {
	text := "Inst gcc-14-base (14.2.0-19 Debian:13.8/stable [amd64])\n" +
		"Inst libgcc-s1 (14.2.0-19 Debian:13.8/stable [amd64]) []\n" +
		"Conf gcc-14-base (14.2.0-19 Debian:13.8/stable [amd64])\n"
	qt.Check(t, qt.DeepEquals(simulated(text), []string{"gcc-14-base", "libgcc-s1"}))
	qt.Check(t, qt.IsNil(simulated("")))
}
