// Work whose calls are counted by systolltest ("count") or by strace between two marks ("plain"): a test of
// crates/test-c compares.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	systolltest "systoll.invalid/systoll/plugins/go"
)

var works = map[string]func(){
	"files": func() {
		for i := 0; i < 20; i++ {
			if _, err := os.ReadFile("/proc/self/comm"); err != nil {
				panic(err)
			}
		}
	},
	"stats": func() {
		for i := 0; i < 50; i++ {
			os.Stat("/nowhere")
			syscall.Getppid()
		}
	},
	// The runtime's handlers block all signals while they run.
	"signals": func() {
		for i := 0; i < 10; i++ {
			syscall.Kill(syscall.Getpid(), 0)
			syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGURG)
		}
	},
	// All signals get handlers that block all signals.
	"masks": func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGUSR2)
		signal.Stop(c)
	},
}

func main() {
	how, work := os.Args[1], works[os.Args[2]]
	// The runtime's own work on this thread would differ from run to run.
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	work()
	if how == "plain" {
		os.Stat("/systoll-mark")
		work()
		os.Stat("/systoll-mark")
		return
	}
	counts, err := systolltest.Calls(work)
	if err != nil {
		fmt.Println("skipped:", err)
		return
	}
	if counts.Incomplete != "" {
		panic(counts.Incomplete)
	}
	for name, calls := range counts.ByName() {
		fmt.Println(name, calls)
	}
}
