// Starts programs, some at once: forks that share memory, execs, pipes and waits.
package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	out := make([]string, 12)
	for i := range out {
		wg.Add(1)
		go func() {
			defer wg.Done()
			b, err := exec.Command("/bin/echo", fmt.Sprint(i)).Output()
			if err != nil {
				panic(err)
			}
			out[i] = strings.TrimSpace(string(b))
		}()
	}
	wg.Wait()
	if _, err := exec.Command("/nonexistent/program").Output(); err == nil {
		panic("it ran")
	}
	fmt.Println(strings.Join(out, " "))
}
