package systolltest

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Blocks in many goroutines at a time, while the collector and preemption send signals.
func TestMany(t *testing.T) {
	if _, err := Calls(func() {}); err != nil {
		t.Skip(err)
	}
	var all sync.WaitGroup
	for i := 1; i <= 24; i++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			for round := 0; round < 20; round++ {
				counts, err := Calls(func() {
					for j := 0; j < n; j++ {
						syscall.Getppid()
						_ = make([]byte, 1<<14)
					}
					for until := time.Now().Add(2 * time.Millisecond); time.Now().Before(until); {
					}
				})
				if err != nil || counts.Of("getppid") != n || counts.Incomplete != "" {
					t.Errorf("%d: %v %v", n, err, counts)
				}
			}
		}(i * 5)
	}
	for i := 0; i < 20; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	all.Wait()
}

// A block may start processes and goroutines, wait for them, and fail.
func TestWhatBlocksDo(t *testing.T) {
	counts, err := Calls(func() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			t.Error(err)
		}
		done := make(chan int)
		go func() { os.ReadFile("/proc/self/comm"); done <- 1 }()
		<-done
		time.Sleep(time.Millisecond)
	})
	if err != nil {
		t.Skip(err)
	}
	if counts.Of("openat") > 4 || counts.Of("waitid")+counts.Of("wait4") == 0 {
		t.Error(counts)
	}
	left := func() (left any) {
		defer func() { left = recover() }()
		Calls(func() { panic("left") })
		return nil
	}()
	if left != "left" {
		t.Error(left)
	}
	if counts, err := Calls(func() { syscall.Getppid() }); err != nil || counts.Of("total") != 1 {
		t.Error(counts, err)
	}
	if _, err := Calls(func() {
		if _, err := Calls(func() {}); err == nil {
			t.Error("a block in a block")
		}
	}); err != nil {
		t.Error(err)
	}
}
