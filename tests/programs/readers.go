// Goroutines that read files: the run-time's own threads and timers call beside ours.
package main

import (
	"fmt"
	"os"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for g := 0; g < 4; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 200; i++ {
				b, err := os.ReadFile("/proc/sys/kernel/ostype")
				if err != nil {
					panic(err)
				}
				mu.Lock()
				total += len(b)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	fmt.Println(total)
}
