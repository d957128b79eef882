// Is told of 20 signals of its own, and then waits for a line, to be signalled from outside.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// The thread that sends is the one that gets the signal, so its handler has returned before tgkill has.
// On another thread it may still run when the program exits, and the last rt_sigreturn is never made.
func init() { runtime.LockOSThread() }

func main() {
	told := make(chan os.Signal, 100)
	signal.Notify(told, syscall.SIGUSR1)
	for i := 0; i < 20; i++ {
		syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGUSR1)
		<-told
	}
	fmt.Println("\nready", os.Getpid())
	line := make([]byte, 16)
	if n, _ := os.Stdin.Read(line); n > 0 {
		os.Exit(6)
	}
}
