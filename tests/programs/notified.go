// Is told of 20 signals of its own, and then waits for a line, to be signalled from outside.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	told := make(chan os.Signal, 100)
	signal.Notify(told, syscall.SIGUSR1)
	for i := 0; i < 20; i++ {
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		<-told
	}
	fmt.Println("\nready", os.Getpid())
	line := make([]byte, 16)
	if n, _ := os.Stdin.Read(line); n > 0 {
		os.Exit(6)
	}
}
