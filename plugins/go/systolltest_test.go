package systolltest

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestSmoke(t *testing.T) {
	counts, err := Calls(func() {
		for i := 0; i < 7; i++ {
			syscall.Getppid()
		}
		os.ReadFile("/etc/hostname")
	})
	if err != nil {
		t.Skip(err)
	}
	t.Log(counts.ByName(), counts.Of("total"), "\n"+counts.String())
	if counts.Of("getppid") != 7 || counts.Of("openat") != 1 || !strings.Contains(counts.String(), "TestSmoke") {
		t.Error(counts)
	}
}

func BenchmarkBlock(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Calls(func() {})
	}
}

func BenchmarkCall(b *testing.B) {
	Calls(func() {
		for i := 0; i < b.N; i++ {
			syscall.Getppid()
		}
	})
}
